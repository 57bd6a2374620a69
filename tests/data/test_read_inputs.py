import numpy as np
import pytest
from PIL import Image
from sklearn.datasets import load_digits

from charax.data import DataError, DataWarning, load_dataset, read_inputs


def test_a_picture_of_a_digit_comes_back_as_the_digit(tmp_path):
    """A model of `digits`, whose brightest pixels have the value 16, reads 8-bit images and arrays alike."""
    digits = load_dataset("digits")
    image = load_digits(return_X_y=True)[0][7].reshape(8, 8)
    Image.fromarray(np.round(image * 255 / 16).astype(np.uint8)).save(tmp_path / "seven.png")
    np.savez(tmp_path / "seven.npz", x=image[None])
    max_value = digits.standardizer.max_value
    picture, names = read_inputs(tmp_path / "seven.png", shape=digits.input_shape, max_value=max_value)
    array, rows = read_inputs(tmp_path / "seven.npz", shape=digits.input_shape, max_value=max_value)
    assert (names, rows) == (["seven.png"], ["0"])
    apply = digits.standardizer.apply
    np.testing.assert_allclose(apply(picture), apply(array), atol=1 / 255)
    np.testing.assert_allclose(apply(array)[0, ..., 0], image / 16)


def test_a_folder_is_read_in_order_with_its_subfolders(tmp_path):
    (tmp_path / "b").mkdir()
    for i, name in enumerate(("c.png", "b/a.png", "a.png")):
        Image.new("RGB", (4, 3), (i, i, i)).save(tmp_path / name)
    (tmp_path / "notes.txt").touch()
    raw, names = read_inputs(tmp_path, shape=(3, 4, 3), max_value=255.0)
    assert names == ["a.png", "b/a.png", "c.png"]
    assert raw[:, 0, 0, 0].tolist() == [2, 1, 0]


def test_channels_follow_the_model(tmp_path):
    Image.new("RGB", (4, 4), (255, 0, 0)).save(tmp_path / "red.png")
    Image.new("L", (4, 4), 9).save(tmp_path / "grey.png")
    with pytest.warns(DataWarning, match="1 converted to grey"):
        grey, _ = read_inputs(tmp_path / "red.png", shape=(4, 4, 1), max_value=255.0)
    with pytest.warns(DataWarning, match="1 converted to colour"):
        colour, _ = read_inputs(tmp_path / "grey.png", shape=(4, 4, 3), max_value=255.0)
    assert grey[0, 0, 0].tolist() == [76]  # Pillow's own conversion gives the same
    assert colour[0, 0, 0].tolist() == [9, 9, 9]


def test_a_table_is_read_by_the_names_of_its_columns(tmp_path):
    path = tmp_path / "new.csv"
    path.write_text("target,b,a\nx,1,2\n\ny,3,4\n")
    raw, names = read_inputs(path, shape=(2,), columns=("a", "b"))
    assert raw.tolist() == [[2, 1], [4, 3]]
    assert names == ["2", "4"]


BAD = {
    "a picture for a table": ("i.png", {"shape": (4,)}, r"reads inputs of shape \(4,\)"),
    "no scale": ("i.png", {"shape": (3, 5, 1)}, "brightness has no known scale"),
    "a table for pictures": ("t.csv", {"shape": (3, 5, 1), "max_value": 255.0}, r"t\.csv is a table"),
    "no column": ("t.csv", {"shape": (2,), "columns": ("a", "c")}, r"t\.csv has no column 'c'; it has a, b"),
    "columns": ("t.csv", {"shape": (3,)}, "2 columns where the model reads 3"),
    "text": ("t.csv", {"shape": (2,)}, r"t\.csv, row 3: column 'b' has 'x'"),
    "shape": ("x.npz", {"shape": (2, 2, 3)}, r"x\.npz has inputs of shape \(2, 2, 1\) .* reads \(2, 2, 3\)"),
    "scaled already": (
        "x.npz",
        {"shape": (2, 2, 1), "max_value": 255.0},
        "from 0 to 1 where the model's go from 0 to 255",
    ),
    "too bright": ("x.npz", {"shape": (2, 2, 1), "max_value": 0.2}, "outside 0 to 0.2 in row 0"),
    "no images": ("empty", {"shape": (3, 5, 1), "max_value": 255.0}, "empty has no images"),
    "no kind": ("a.doc", {"shape": (2,)}, r"a\.doc is not a kind of file"),
    "nothing": ("nothing.npz", {"shape": (2,)}, r"nothing\.npz does not exist"),
}


@pytest.mark.parametrize("case", BAD)
def test_what_the_model_cannot_read_is_a_sentence_with_the_file(tmp_path, case):
    Image.new("L", (5, 3)).save(tmp_path / "i.png")
    (tmp_path / "t.csv").write_text("a,b\n1,2\n3,x\n" if case == "text" else "a,b\n1,2\n")
    np.savez(tmp_path / "x.npz", x=np.full((1, 2, 2), 0.5))
    (tmp_path / "empty").mkdir()
    (tmp_path / "a.doc").touch()
    name, model, message = BAD[case]
    with pytest.raises(DataError, match=message):
        read_inputs(tmp_path / name, **model)
