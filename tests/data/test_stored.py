"""Samples that stay on disk are those that would be in memory."""

import pickle

import numpy as np
import pytest

from charax.data import AbstractStoredRows, DataError, load_dataset
from charax.data._stored import MappedRows


def save_npz(folder, x, y):
    np.savez(folder / "data.npz", y=y, x=x)
    return folder / "data.npz"


def save_npy(folder, x, y):
    np.save(folder / "x.npy", x)
    np.save(folder / "y.npy", y)
    return folder / "x.npy"


def save_images(folder, x, y):
    from PIL import Image

    for number, (image, label) in enumerate(zip(x, y, strict=True)):
        (folder / "images" / str(label)).mkdir(parents=True, exist_ok=True)
        Image.fromarray(image).save(folder / "images" / str(label) / f"{number:03}.png")
    return folder / "images"


@pytest.fixture
def samples():
    generator = np.random.default_rng(0)
    return {
        "rows": generator.normal(3, 2, (60, 5)).astype(np.float32),
        "gray": generator.random((60, 8, 8)),
        "images": generator.integers(0, 256, (60, 8, 8, 3), dtype=np.uint8),
    }


@pytest.mark.parametrize(
    ("save", "kind", "options"),
    [
        (save_npz, "rows", {}),
        (save_npz, "gray", {}),
        (save_npz, "images", {}),
        (save_npy, "rows", {}),
        (save_images, "images", {"size": 8}),
    ],
)
def test_samples_on_disk_are_those_in_memory(save, kind, options, samples, tmp_path, monkeypatch):
    path = save(tmp_path, samples[kind], np.arange(60) % 2)
    whole = load_dataset(str(path), **options)
    monkeypatch.setenv("CHARAX_MAX_MEMORY", "1000")
    stored = load_dataset(str(path), **options)
    assert isinstance(whole.train.inputs, np.ndarray)
    assert stored.standardizer.max_value == whole.standardizer.max_value
    np.testing.assert_allclose(stored.standardizer.mean, whole.standardizer.mean, rtol=1e-12)
    np.testing.assert_allclose(stored.standardizer.std, whole.standardizer.std, rtol=1e-12)
    for name in ("train", "validation", "test"):
        split, expected = getattr(stored, name), getattr(whole, name)
        assert isinstance(split.inputs, AbstractStoredRows)
        assert split.inputs.shape == expected.inputs.shape
        np.testing.assert_array_equal(split.targets, expected.targets)
        np.testing.assert_allclose(split.inputs[np.array([2, 0, 3])], expected.inputs[[2, 0, 3]], rtol=1e-6, atol=1e-6)
        np.testing.assert_allclose(pickle.loads(pickle.dumps(split.inputs))[:2], expected.inputs[:2], atol=1e-6)


def test_a_standard_deviation_from_parts_is_that_of_all(samples, tmp_path, monkeypatch):
    path = save_npy(tmp_path, samples["rows"], np.arange(60) % 2)
    whole = load_dataset(str(path)).standardizer
    monkeypatch.setattr("charax.data._stored._PART_BYTES", 100)
    monkeypatch.setenv("CHARAX_MAX_MEMORY", "1000")
    parts = load_dataset(str(path)).standardizer
    np.testing.assert_allclose(parts.std, whole.std, rtol=1e-12)
    assert len(load_dataset(str(path), max_samples=30).train.inputs) == 20


def test_what_is_compressed_is_read_into_memory(samples, tmp_path, monkeypatch):
    np.savez_compressed(tmp_path / "data.npz", x=samples["rows"], y=np.arange(60) % 2)
    monkeypatch.setenv("CHARAX_MAX_MEMORY", "1000")
    assert isinstance(load_dataset(str(tmp_path / "data.npz")).train.inputs, np.ndarray)


def test_a_row_that_is_not_finite_is_named_when_it_is_read(tmp_path):
    x = np.ones((20, 3), np.float32)
    x[7, 1] = np.nan
    np.save(tmp_path / "x.npy", x)
    rows = MappedRows(tmp_path / "x.npy", 128, x.shape, x.dtype)
    assert rows[:7].shape == (7, 3)
    with pytest.raises(DataError, match="NaN or infinity in row 7 of x"):
        rows[np.array([9, 7])]


def test_other_data_have_another_digest(samples, tmp_path):
    digests = set()
    for change in (0, 1):
        np.save(tmp_path / "x.npy", samples["rows"] + np.float32(change))
        digests.add(MappedRows(tmp_path / "x.npy", 128, (60, 5), np.dtype(np.float32)).digest())
    assert len(digests) == 2


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (lambda folder: (folder / "y.npy").unlink(), "put their labels next to them, in y.npy"),
        (lambda folder: (folder / "y.npy").write_bytes(b"no"), "not a valid .npy file"),
        (lambda folder: (folder / "x.npy").write_bytes((folder / "x.npy").read_bytes()[:-8]), "truncated"),
        (lambda folder: np.save(folder / "x.npy", np.ones((5, 60), np.float64).T), "in C order"),
    ],
)
def test_files_that_cannot_be_mapped_are_named(damage, reason, samples, tmp_path, monkeypatch):
    path = save_npy(tmp_path, samples["rows"], np.arange(60) % 2)
    damage(tmp_path)
    monkeypatch.setenv("CHARAX_MAX_MEMORY", "1000")
    with pytest.raises(DataError, match=reason):
        load_dataset(str(path))


def test_images_on_disk_are_not_shrunk(samples, tmp_path, monkeypatch):
    path = save_npz(tmp_path, samples["images"], np.arange(60) % 2)
    monkeypatch.setenv("CHARAX_MAX_MEMORY", "1000")
    with pytest.raises(DataError, match="too large to be shrunk"):
        load_dataset(str(path), shrink=2)
