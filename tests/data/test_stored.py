"""Samples that stay on disk are those that would be in memory."""

import pickle
import shutil
import zipfile

import numpy as np
import pandas as pd
import pytest

from charax.data import (
    AbstractStoredRows,
    DataError,
    load_dataset,
    load_density_data,
    load_regression,
    read_inputs,
    read_labels,
)
from charax.data._stored import Blocks, MappedRows


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


def save_zip(folder, x, y):
    shutil.make_archive(str(folder / "images"), "zip", save_images(folder, x, y))
    return folder / "images.zip"


def save_tar(folder, x, y):
    shutil.make_archive(str(folder / "all"), "tar", folder, save_images(folder, x, y).name)  # in a folder of its own
    return folder / "all.tar"


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
        (save_zip, "images", {"size": 8}),
        (save_tar, "images", {"size": 8}),
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


def table(rows=60):
    generator = np.random.default_rng(0)
    height = generator.normal(3, 2, rows)
    height[7] = np.nan
    return pd.DataFrame(
        {
            "height": height,
            "width": generator.normal(0, 1, rows),
            "color": generator.choice(["red", "blue"], rows),
            "day": pd.date_range("2024-01-01", periods=rows),
            "kind": np.where(np.arange(rows) % 2, "yes", "no"),
            "price": generator.normal(10, 3, rows),
        }
    )


def save_parquet(folder, columns=None, rows=60):
    path = folder / "table.parquet"
    frame = table(rows)
    (frame if columns is None else frame[columns]).to_parquet(path, row_group_size=8)
    return str(path)


LOADERS = {
    "classes": (load_dataset, {"target": "kind"}, None),
    "numbers": (load_regression, {"target": ("price",)}, None),
    "density": (load_density_data, {}, ["width", "price"]),
}


@pytest.mark.parametrize("name", LOADERS)
def test_a_table_on_disk_has_the_rows_of_memory(name, tmp_path, monkeypatch):
    load, options, columns = LOADERS[name]
    path = save_parquet(tmp_path, columns)
    whole = load(path, **options)
    monkeypatch.setenv("CHARAX_MAX_CELLS", "100")
    stored = load(path, **options)
    assert isinstance(stored.train.inputs, AbstractStoredRows)
    assert stored.encoder == whole.encoder
    np.testing.assert_allclose(stored.standardizer.std, whole.standardizer.std, rtol=1e-12)
    for split in ("train", "validation", "test"):
        found, expected = getattr(stored, split), getattr(whole, split)
        rows = lambda each, inputs: sorted(np.column_stack([inputs, each.targets]).round(4).tolist())
        assert rows(found, found.inputs[:]) == rows(expected, expected.inputs)
        np.testing.assert_array_equal(pickle.loads(pickle.dumps(found.inputs))[:3], found.inputs[:3])


def test_rows_are_read_group_by_group_and_shuffled_within_a_few(tmp_path, monkeypatch):
    path = save_parquet(tmp_path, ["width", "price"], rows=400)
    monkeypatch.setenv("CHARAX_MAX_MEMORY", "1000")
    read, inputs = [], load_density_data(path).train.inputs
    source = inputs.source.source
    reader = source._read
    monkeypatch.setattr(
        source, "_read", lambda path, groups, *rest: (read.extend(groups), reader(path, groups, *rest))[1]
    )
    source._groups.clear()
    order = inputs.blocks.permute(np.random.default_rng(1))
    assert sorted(order) == list(range(len(inputs)))
    assert not (np.diff(order) == 1).all()
    for start in range(0, len(order), 10):
        inputs[order[start : start + 10]]
    assert sorted(read) == list(range(50)), "every group is read once"
    assert len(source._groups) == 2 * inputs.blocks.window


def test_blocks_of_some_rows_are_those_that_have_any():
    blocks = Blocks(np.array([3, 2, 4]), 2).take(np.array([0, 2, 5, 6, 8]))
    assert blocks.sizes.tolist() == [2, 3]


@pytest.mark.parametrize(
    ("save", "load"), [(save_npz, load_regression), (save_npy, load_regression), (save_npy, load_density_data)]
)
def test_arrays_of_other_tasks_stay_on_disk(save, load, samples, tmp_path, monkeypatch):
    path = str(save(tmp_path, samples["rows"], np.linspace(0, 1, 60)))
    whole = load(path)
    monkeypatch.setenv("CHARAX_MAX_MEMORY", "1000")
    stored = load(path)
    assert isinstance(stored.test.inputs, AbstractStoredRows)
    np.testing.assert_allclose(stored.test.inputs[:], whole.test.inputs, rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(stored.test.targets, whole.test.targets)


def test_what_a_group_of_rows_lacks_is_named_by_its_row(tmp_path, monkeypatch):
    path = save_parquet(tmp_path, ["height", "width"])
    monkeypatch.setenv("CHARAX_MAX_CELLS", "100")
    with pytest.raises(DataError, match=r"table.parquet, row 8: column 'height' has nothing, not a finite number"):
        load_density_data(path).train.inputs[:]


def test_a_group_that_does_not_fit_into_memory_is_refused(tmp_path, monkeypatch):
    path = save_parquet(tmp_path)
    monkeypatch.setenv("CHARAX_MAX_CELLS", "40")
    with pytest.raises(DataError, match="a group of rows has 48 cells"):
        load_dataset(path, target="kind")


@pytest.mark.parametrize("save", [save_zip, save_tar])
def test_an_archive_has_the_images_of_its_folder(save, samples, tmp_path):
    y = np.arange(60) % 2
    archive, folder = save(tmp_path, samples["images"], y), tmp_path / "images"
    assert load_dataset(str(archive)).classes == ("0", "1")
    spec = {"shape": (8, 8, 3), "max_value": 255.0}
    (x, names), (expected, others) = read_inputs(archive, **spec), read_inputs(folder, **spec)
    np.testing.assert_array_equal(x, expected)
    assert names == others
    np.testing.assert_array_equal(read_labels(archive, names, classes=("0", "1")), [int(name[0]) for name in names])


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (lambda path: shutil.make_archive(str(path), "gztar", path), "pack them as .zip or as plain .tar"),
        (lambda path: shutil.make_archive(str(path), "zip", path / "0"), "has no class: put it into a folder"),
        (
            lambda path: path.with_suffix(".zip").write_bytes(b"PK\x05\x06" + bytes(10)),
            "compressed as a whole, or is no",
        ),
        (lambda path: zipfile.ZipFile(path.with_suffix(".zip"), "w").close(), "has no images in it"),
    ],
)
def test_archives_that_cannot_be_read_say_why(make, reason, samples, tmp_path):
    folder = save_images(tmp_path, samples["images"][:4], np.arange(4) % 2)
    make(folder)
    (archive,) = (path for path in tmp_path.iterdir() if path != folder)
    with pytest.raises(DataError, match=reason):
        load_dataset(str(archive))


def test_an_archive_of_an_unknown_version_is_refused_by_name(tmp_path):
    """zipfile raises NotImplementedError for what may come one day, and for a byte that is wrong."""
    path = tmp_path / "own.npz"
    np.savez(path, x=np.zeros((8, 2)), y=np.arange(8) % 2)
    content = bytearray(path.read_bytes())
    content[content.index(b"PK\x01\x02") + 6] = 64
    path.write_bytes(content)
    with pytest.raises(DataError, match=r"own.npz is not a valid \.npz archive \(zip file version 6\.4\)"):
        load_dataset(str(path))
