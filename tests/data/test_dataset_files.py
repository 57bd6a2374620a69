import numpy as np
import pytest
from PIL import Image

from charax.data import DataError, DataWarning, load_dataset, read_inputs


def write_csv(path, rows: int = 30):
    lines = ["height,kind,width"] + [f"{i},{'ab'[i % 2]},{1e9 + i % 5}" for i in range(rows)]
    path.write_text("\n".join(lines) + "\n")
    return path


def write_folder(root, classes=("cat", "dog"), count: int = 5, mode: str = "L"):
    for level, name in enumerate(classes):
        (root / name).mkdir(parents=True)
        for i in range(count):
            Image.new(mode, (6, 4), 10 * level + i).save(root / name / f"{i}.png")
    return root


# ---- the good path --------------------------------------------------------------------------------


def test_a_csv_is_standardised_by_its_training_part(tmp_path):
    data = load_dataset(str(write_csv(tmp_path / "plants.csv")), target="kind")
    assert data.columns == ("height", "width")
    assert data.classes == ("a", "b")
    assert [len(part.targets) for part in (data.train, data.validation, data.test)] == [20, 4, 6]
    np.testing.assert_allclose(data.train.inputs.mean(0), 0, atol=1e-6)
    np.testing.assert_allclose(data.train.inputs.std(0), 1, atol=1e-6)  # also far from zero
    everything = np.concatenate([data.train.inputs, data.validation.inputs, data.test.inputs])
    heights = np.round(everything[:, 0] * data.standardizer.std[0] + data.standardizer.mean[0])
    assert sorted(heights) == list(range(30))


def test_the_target_column_is_called_target_unless_named(tmp_path):
    path = tmp_path / "numbers.csv"
    path.write_text("\ufefftarget,a\n" + "".join(f"{label},{label}.5\n" for label in (10, 9, 2) * 4))
    data = load_dataset(str(path))
    assert data.classes == ("2", "9", "10")


def test_a_constant_column_is_left_out(tmp_path):
    path = tmp_path / "constant.csv"
    path.write_text("target,a,b\n" + "".join(f"{i % 2},{i},7\n" for i in range(12)))
    data = load_dataset(str(path))
    assert data.columns == ("a",)
    assert data.encoder.notes == ("left out: b (constant)",)


def test_an_npz_may_hold_rows_or_images_and_labels_or_names(tmp_path):
    path = tmp_path / "own.npz"
    y = np.arange(12) % 3
    np.savez(path, x=np.random.default_rng(0).normal(size=(12, 5)), y=y)
    rows = load_dataset(str(path))
    assert rows.input_shape == (5,)
    assert rows.classes == ("0", "1", "2")
    assert rows.standardizer.max_value is None
    np.savez(path, x=np.arange(12 * 16, dtype=np.uint8).reshape(12, 4, 4), y=np.array(["x", "z", "y"])[y])
    images = load_dataset(str(path))
    assert images.input_shape == (4, 4, 1)
    assert images.classes == ("x", "y", "z")
    assert images.standardizer.max_value == 255


def test_a_folder_of_images_has_a_class_for_each_subfolder(tmp_path):
    write_folder(tmp_path / "pets")
    (tmp_path / "pets/cat/.DS_Store").touch()
    data = load_dataset(str(tmp_path / "pets"))
    assert data.classes == ("cat", "dog")
    assert data.input_shape == (4, 6, 1)
    raw = data.train.inputs * data.standardizer.std[0] + data.standardizer.mean[0]
    np.testing.assert_array_equal(np.round(raw[:, 0, 0, 0]) >= 10, data.train.targets == 1)


def test_one_colour_image_makes_the_folder_colour(tmp_path):
    write_folder(tmp_path / "pets")
    Image.new("RGB", (6, 4), "red").save(tmp_path / "pets/cat/0.png")
    with pytest.warns(DataWarning, match="of 10 images, 9 converted to colour"):
        assert load_dataset(str(tmp_path / "pets")).input_shape == (4, 6, 3)


def test_images_of_different_sizes_are_resized_and_the_centre_is_cut_out(tmp_path):
    write_folder(tmp_path / "pets")
    wide = np.zeros((8, 24), np.uint8)
    wide[:, 8:16] = 200  # the centre
    Image.fromarray(wide).save(tmp_path / "pets/cat/0.png")
    with pytest.warns(DataWarning, match=r"pets: of 10 images, 10 resized to 4 x 4 pixels"):
        assert load_dataset(str(tmp_path / "pets")).input_shape == (4, 4, 1)
    with pytest.warns(DataWarning, match="10 resized to 2 x 2 pixels"):
        assert load_dataset(str(tmp_path / "pets"), size=2).input_shape == (2, 2, 1)
    with pytest.warns(DataWarning, match=r"0\.png: of 1 images, 1 resized to 4 x 4 pixels"):
        raw, _ = read_inputs(tmp_path / "pets/cat/0.png", shape=(4, 4, 1), max_value=255.0)
    assert (np.abs(raw.astype(int) - 200) <= 12).all()  # and not the black margins


def test_transparent_pixels_become_white(tmp_path):
    Image.new("RGBA", (4, 4), (255, 0, 0, 0)).save(tmp_path / "clear.png")
    with pytest.warns(DataWarning, match="1 put on a white background"):
        raw, _ = read_inputs(tmp_path / "clear.png", shape=(4, 4, 3), max_value=255.0)
    assert (raw == 255).all()


def test_a_size_for_anything_but_a_folder_is_refused(tmp_path):
    with pytest.raises(DataError, match="digits is not a folder or an archive of images"):
        load_dataset("digits", size=4)


def test_parquet_reads_like_csv(tmp_path):
    arrow = pytest.importorskip("pyarrow", reason="the extra charax[parquet] is not installed")
    from pyarrow import parquet  # pyright: ignore[reportMissingImports]

    kind, height = ["b", "a"] * 6, [float(i) for i in range(12)]
    parquet.write_table(arrow.table({"kind": kind, "height": height}), tmp_path / "t.parquet")
    data = load_dataset(str(tmp_path / "t.parquet"), target="kind")
    assert data.classes == ("a", "b")
    assert data.columns == ("height",)
    height[4] = float("inf")
    parquet.write_table(arrow.table({"kind": kind, "height": height}), tmp_path / "t.parquet")
    with pytest.raises(DataError, match=r"t\.parquet, row 5: column 'height' has 'inf', not a finite number"):
        load_dataset(str(tmp_path / "t.parquet"), target="kind")
    (tmp_path / "t.parquet").write_bytes(b"PAR1 not really")
    with pytest.raises(DataError, match=r"t\.parquet cannot be read as a Parquet file"):
        load_dataset(str(tmp_path / "t.parquet"), target="kind")


def test_parquet_without_its_extra_names_the_command(tmp_path, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "pyarrow", None)
    (tmp_path / "t.parquet").touch()
    with pytest.raises(DataError, match=r"pip install 'charax\[parquet\]'"):
        load_dataset(str(tmp_path / "t.parquet"))


# ---- bad input ------------------------------------------------------------------------------------

BAD_CSV = {
    "text for a number": ("a,target\n1,x\nblue,y\n", r"t\.csv, row 3: column 'a' has 'blue', not a finite number"),
    "a word among numbers": (
        "a,target\n" + "".join(f"{i},{i % 2}\n" for i in range(60)) + "1o,1\n",
        "row 62: column 'a' has '1o', not a finite number",
    ),
    "not finite": (
        "a,target\n" + "".join(f"{i},{i % 2}\n" for i in range(60)) + "inf,1\n",
        "row 62: column 'a' has 'inf', not a finite number",
    ),
    "nothing but empty cells": (
        "a,target\n" + "".join(f",{i % 2}\n" for i in range(60)),
        r"no column to learn from\. Left out: a \(empty\)",
    ),
    "a quoted line break before": ('a,target\n1,"x\nx"\nblue,y\n', "row 4: column 'a' has 'blue'"),
    "an empty target": ("a,target\n1,x\n2, \n", "row 3: column 'target' is empty"),
    "a short row": ("a,target\n1,x\n2\n", "row 3: 1 cells where there are 2"),
    "no such target": ("a,b\n1,x\n", r"no column 'target'; it has a, b: name the column of the classes"),
    "only a target": ("target\nx\n", "only the target column"),
    "numbers for names": ("1,2\n3,4\n", "row 1: there are numbers instead of column names"),
    "two of a name": ("a,a,target\n1,2,x\n", "two columns named 'a'"),
    "no rows": ("a,target\n", "no rows of data"),
    "nothing": ("", "no rows of data"),
    "one class": ("a,target\n" + "1,x\n" * 5, "only the class 'x'"),
    "a class too small": ("a,target\n" + "1,x\n" * 5 + "1,y\n", "class 'y' has only 1 sample"),
    "not text": (b"\xff\xfe\x00", "not text in UTF-8"),
    "an open quote": ('a,target\n1,"x\n', r"t\.csv, row 2: cannot be read: unexpected end of data"),
}


@pytest.mark.parametrize("case", BAD_CSV)
def test_a_bad_csv_is_a_sentence_with_the_file_and_the_row(tmp_path, case):
    content, message = BAD_CSV[case]
    (tmp_path / "t.csv").write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(DataError, match=message) as caught:
        load_dataset(str(tmp_path / "t.csv"))
    assert str(tmp_path / "t.csv") in str(caught.value)


X, Y = np.ones((6, 4)), np.array([0, 0, 0, 1, 1, 1])
BAD_NPZ = {
    "no y": ({"x": X}, "no array 'y'; it has x"),
    "a pickle": ({"x": X, "y": np.array([{}] * 6)}, "pickled objects"),
    "text": ({"x": X.astype(str), "y": Y}, "x of type <U32: give numbers"),
    "NaN": ({"x": np.where(np.arange(6)[:, None] == 2, np.nan, X), "y": Y}, "NaN or infinity in row 2"),
    "channels first": ({"x": np.ones((6, 3, 8, 8)), "y": Y}, r"channels first: give x\.transpose"),
    "one axis": ({"x": np.ones(6), "y": Y}, r"x of shape \(6,\)"),
    "another count": ({"x": X, "y": Y[:5]}, r"y of shape \(5,\) where x has 6"),
    "a negative label": ({"x": X, "y": Y - 1}, "label -1 in row 0"),
    "an empty class": ({"x": X, "y": Y * 2}, r"class 1 has no samples .* up to 2 \(in row 3"),
    "fractions": ({"x": X, "y": Y * 0.5}, "y of type float64"),
}


@pytest.mark.parametrize("case", BAD_NPZ)
def test_a_bad_npz_is_a_sentence_with_the_file(tmp_path, case):
    arrays, message = BAD_NPZ[case]
    np.savez(tmp_path / "t.npz", **arrays)
    with pytest.raises(DataError, match=message) as caught:
        load_dataset(str(tmp_path / "t.npz"))
    assert str(tmp_path / "t.npz") in str(caught.value)


def test_a_damaged_npz_is_named_and_an_array_by_itself_too(tmp_path):
    path = tmp_path / "t.npz"
    np.savez_compressed(path, x=np.random.default_rng(0).normal(size=(6, 4)), y=Y)
    whole = path.read_bytes()
    altered = bytearray(whole)
    altered[100] ^= 0xFF
    with (tmp_path / "a.npy").open("wb") as file:
        np.save(file, X)
    for content in (whole[:200], bytes(altered), b"", b"hello", (tmp_path / "a.npy").read_bytes()):
        path.write_bytes(content)
        with pytest.raises(DataError, match=r"t\.npz is not an? (valid )?\.npz archive"):
            load_dataset(str(path))


BAD_FOLDER = {
    "an unreadable image": (lambda root: (root / "cat/0.png").write_bytes(b"\x89PNG no"), r"cat/0\.png cannot be read"),
    "a truncated image": (
        lambda root: (root / "cat/0.png").write_bytes((root / "cat/0.png").read_bytes()[:-20]),
        r"cat/0\.png cannot be read",
    ),
    "no image at all": (lambda root: (root / "cat/notes.txt").write_text("hello"), r"cat/notes\.txt cannot be read"),
    "an empty class": (lambda root: (root / "emu").mkdir(), "emu is empty"),
    "sixteen bits": (lambda root: Image.new("I;16", (6, 4)).save(root / "dog/0.png"), r"dog/0\.png has more than 8"),
    "an image in no class": (lambda root: Image.new("L", (6, 4)).save(root / "0.png"), r"0\.png has no class"),
    "a folder in a class": (lambda root: (root / "cat/old").mkdir(), "cat/old is a folder inside a class"),
}


@pytest.mark.parametrize("case", BAD_FOLDER)
def test_a_bad_folder_is_a_sentence_with_the_file(tmp_path, case):
    damage, message = BAD_FOLDER[case]
    damage(write_folder(tmp_path / "pets"))
    with pytest.raises(DataError, match=message):
        load_dataset(str(tmp_path / "pets"))


def test_what_is_not_there_or_of_no_known_kind_is_a_sentence(tmp_path):
    with pytest.raises(DataError, match=r"nothing\.csv does not exist, and is not one of digits, mnist, cifar10, svhn"):
        load_dataset(str(tmp_path / "nothing.csv"))
    (tmp_path / "model.pkl").touch()
    with pytest.raises(
        DataError, match=r"model\.pkl is not a kind of file .*: give \.npz, \.npy, \.csv, .* or a folder of images"
    ):
        load_dataset(str(tmp_path / "model.pkl"))
    with pytest.raises(DataError, match="has no subfolders"):
        load_dataset(str(tmp_path))


def test_what_a_file_holds_is_quoted_in_one_short_line(tmp_path):
    (tmp_path / "own.csv").write_text('"two\nlines\x1b[2J",' + "c" * 5000 + "\n1,2\n")
    with pytest.raises(DataError, match=r"two\\nlines\\x1b\[2J, c+ … c+: name the column of the classes") as refused:
        load_dataset(str(tmp_path / "own.csv"))
    assert len(str(refused.value)) < 1000
