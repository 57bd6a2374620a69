"""Samples to learn a density of."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from charax.data import TOYS, DataError, load_dataset, load_density_data, sample_toy


@given(n=st.integers(10, 60), seed=st.integers(0, 2**32))
def test_every_row_of_a_file_is_in_one_split(tmp_path_factory, n, seed):
    path = tmp_path_factory.mktemp("rows") / "rows.npz"
    x = np.random.default_rng(n).normal(size=(n, 2))
    np.savez(path, x=x)
    data = load_density_data(str(path), seed=seed)
    splits = [data.standardizer.inverse(split.inputs) for split in (data.train, data.validation, data.test)]
    assert all(len(split) > 0 for split in splits)
    np.testing.assert_allclose(np.sort(np.concatenate(splits), axis=0), np.sort(x, axis=0), atol=1e-5)
    np.testing.assert_allclose(data.train.inputs.std(axis=0), 1, atol=1e-5)


def test_named_images_are_in_the_same_splits_as_for_classification(official):
    for name, levels in (("digits", 17), ("mnist", 256), ("cifar10", 256), ("svhn", 256)):
        images, classified = load_density_data(name, seed=3), load_dataset(name, seed=3)
        assert images.levels == levels
        assert images.standardizer.max_value == levels - 1
        assert images.classes == classified.classes
        for split in ("train", "validation", "test"):
            raw, scaled = getattr(images, split), getattr(classified, split)
            np.testing.assert_array_equal(raw.targets, scaled.targets)
            np.testing.assert_array_equal(raw.inputs, np.round(classified.standardizer.inverse(scaled.inputs)))


def test_shrinking_averages_squares_to_whole_gray_levels(official):
    whole, half = load_density_data("mnist"), load_density_data("mnist", shrink=2)
    assert half.shape == (14, 14, 1)
    corner = whole.train.inputs[:, :2, :2, 0].reshape(-1, 4)
    np.testing.assert_array_equal(half.train.inputs[:, 0, 0, 0], np.round(corner.mean(axis=1)))
    with pytest.raises(DataError, match="28x28 pixels cannot be shrunk by 3"):
        load_density_data("mnist", shrink=3)


def test_a_column_called_target_is_left_out_unless_classes_are_asked_for(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text("a,target,b\n" + "".join(f"{i},{'xy'[i % 2]},{i * i}\n" for i in range(20)))
    plain, labelled = load_density_data(str(path)), load_density_data(str(path), labelled=True)
    assert plain.columns == labelled.columns == ("a", "b")
    assert (plain.classes, labelled.classes) == ((), ("x", "y"))
    assert not plain.train.targets.any()
    assert set(labelled.train.targets) == {0, 1}


def test_images_may_have_classes(tmp_path):
    np.savez(tmp_path / "x.npz", x=np.arange(20 * 16, dtype=np.uint8).reshape(20, 4, 4), y=np.arange(20) % 2)
    data = load_density_data(str(tmp_path / "x.npz"), labelled=True)
    assert (data.levels, data.classes, data.shape) == (256, ("0", "1"), (4, 4, 1))
    np.testing.assert_array_equal(data.train.inputs[:, 0, 0, 0] // 16 % 2, data.train.targets)
    np.savez(tmp_path / "x.npz", x=np.zeros((20, 4, 4)), y=np.arange(20) % 2)
    with pytest.raises(DataError, match="over integer gray levels"):
        load_density_data(str(tmp_path / "x.npz"), labelled=True)


@pytest.mark.parametrize("name", TOYS)
def test_a_toy_has_its_own_points_in_every_split(name):
    data = load_density_data(name, points=50)
    assert [len(split.inputs) for split in (data.train, data.validation, data.test)] == [50, 10, 20]
    np.testing.assert_array_equal(data.validation.inputs, sample_toy(name, 10, seed=1))
    with pytest.raises(DataError, match="points must be at least 10"):
        load_density_data(name, points=5)


def test_an_unknown_toy_is_named_with_those_there_are():
    with pytest.raises(ValueError, match="unknown toy 'spiral'; choose from circles, moons"):
        sample_toy("spiral", 10, seed=0)
