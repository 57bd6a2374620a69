import os
from pathlib import Path

import numpy as np
import pytest

from charax.data import DATASETS, DataError, load_dataset

REAL = os.environ.get("CHARAX_DATA")
MNIST, CIFAR, SVHN = "mnist/train-images-idx3-ubyte.gz", "cifar10/cifar-10-binary.tar.gz", "svhn/train_32x32.mat"
LABELS = "mnist/train-labels-idx1-ubyte.gz"


def test_digits_are_split_three_ways_and_lie_in_the_unit_interval():
    digits = load_dataset("digits")
    sizes = [len(part.targets) for part in (digits.train, digits.validation, digits.test)]
    assert sum(sizes) == DATASETS["digits"].train
    assert sizes[1] == pytest.approx(180, abs=5)
    assert sizes[2] == pytest.approx(360, abs=5)
    assert digits.train.inputs.shape[1:] == (8, 8, 1)
    assert (digits.train.inputs.min(), digits.train.inputs.max()) == (0, 1)
    np.testing.assert_array_equal(np.unique(digits.train.inputs * 16), np.arange(17))


def test_digits_are_those_of_scikit_learn_and_are_read_without_importing_it():
    source = DATASETS["digits"]
    assert source.find_folder is not None
    folder = source.find_folder()
    assert (folder / "digits.csv.gz").is_file()
    ours, theirs = (source.read(each).samples for each in (folder, folder / "nowhere"))
    np.testing.assert_array_equal(ours.inputs, theirs.inputs)
    np.testing.assert_array_equal(ours.targets, theirs.targets)


@pytest.mark.parametrize("name", ["mnist", "cifar10", "svhn"])
def test_an_official_test_part_stays_the_test_part_in_its_order(official, formats, name):
    data = load_dataset(name, seed=3)
    shape = DATASETS[name].shape
    pixels = formats.pixels_of(10, *shape[: 2 if name == "mnist" else 3]).reshape(10, *shape)
    np.testing.assert_array_equal(data.test.targets, np.arange(10))
    np.testing.assert_array_equal(data.test.inputs, data.standardizer.apply(pixels))
    assert len(data.train.targets) == 30
    assert len(data.validation.targets) == 10  # one of each class, although a tenth of four rounds to none
    assert data.train.inputs.shape[1:] == shape == data.input_shape


@pytest.mark.parametrize("name", DATASETS)
def test_scaling_and_augmentation_are_those_of_the_source(official, name):
    data, source = load_dataset(name), DATASETS[name]
    assert data.augmentation == source.augmentation == {"digits": "affine", "cifar10": "flip-crop"}.get(name, "none")
    assert source.scaling == ("standardize" if name == "cifar10" else "unit")
    unit = data.train.inputs.min() == 0 and data.train.inputs.max() == 1
    assert unit == (source.scaling == "unit")


@pytest.mark.parametrize("name", ["mnist", "svhn"])
def test_gray_and_house_number_pixels_are_divided_by_255(official, name):
    data = load_dataset(name)
    assert data.augmentation == "none"
    assert data.standardizer.max_value == 255
    pixels = data.train.inputs * 255
    np.testing.assert_allclose(pixels, np.round(pixels), atol=1e-4)
    assert pixels.min() == 0
    assert pixels.max() == 255


def test_cifar_is_standardised_by_its_training_part_and_asks_for_flips_and_crops(official):
    data = load_dataset("cifar10")
    assert data.augmentation == "flip-crop"
    np.testing.assert_allclose(data.train.inputs.mean((0, 1, 2)), 0, atol=1e-5)
    np.testing.assert_allclose(data.train.inputs.std((0, 1, 2)), 1, atol=1e-4)
    assert abs(data.test.inputs.mean()) > 1e-5
    assert data.classes[:2] == ("airplane", "automobile")


def test_the_label_ten_of_svhn_is_a_zero(official):
    data = load_dataset("svhn")
    assert data.classes[0] == "0"
    assert sorted(set(data.train.targets.tolist())) == list(range(10))


def test_the_seed_moves_samples_between_training_and_validation_only(official):
    first, again, other = (load_dataset("mnist", seed=seed) for seed in (0, 0, 1))
    np.testing.assert_array_equal(first.validation.inputs, again.validation.inputs)
    assert not np.array_equal(first.validation.inputs, other.validation.inputs)
    np.testing.assert_array_equal(first.test.inputs, other.test.inputs)


def _truncate(path: Path):
    path.write_bytes(path.read_bytes()[: path.stat().st_size * 2 // 3])


def _alter(path: Path):
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 0xFF
    path.write_bytes(content)


@pytest.mark.parametrize("damage", [_truncate, _alter], ids=["truncated", "altered"])
@pytest.mark.parametrize("file", [MNIST, LABELS, CIFAR, SVHN])
def test_a_damaged_file_is_named(official, file, damage):
    damage(official / file)
    with pytest.raises(DataError, match=Path(file).name.replace(".", r"\.")):
        load_dataset(Path(file).parent.name)


WRONG = {
    "magic number": (
        MNIST,
        lambda path, f: f.write_idx(path, f.pixels_of(40, 28, 28), magic=2052),
        r"train-images.* magic number 2052 .* 2051",
    ),
    "images for labels": (LABELS, lambda path, f: f.write_idx(path, f.pixels_of(40, 28, 28)), "magic number 2051"),
    "another count": (LABELS, lambda path, f: f.write_idx(path, f.labels_of(39)), "39 labels where .* 40 images"),
    "no images": (MNIST, lambda path, f: f.write_idx(path, f.pixels_of(0, 28, 28)), "no data in it"),
    "label": (
        LABELS,
        lambda path, f: f.write_idx(path, np.where(np.arange(40) == 19, 10, f.labels_of(40)).astype(np.uint8)),
        "train-labels.* label 10 in row 19",
    ),
    "empty class": (
        LABELS,
        lambda path, f: f.write_idx(path, f.labels_of(40) % 7),
        "train-labels.* class '7' has no samples",
    ),
    "half a record": (
        CIFAR,
        lambda path, f: f.write_cifar(path, {"a/data_batch_1.bin": b"\0" * 5000, "a/test_batch.bin": b""}),
        r"data_batch_1\.bin has 5000 bytes",
    ),
    "no test batch": (
        CIFAR,
        lambda path, f: f.write_cifar(path, {"a/data_batch_1.bin": f.cifar_records(f.pixels_of(40, 32, 32, 3))}),
        r"no test_batch\.bin",
    ),
    "cifar label": (
        CIFAR,
        lambda path, f: f.write_cifar(path, {"a/data_batch_1.bin": b"\x0b" + b"\0" * 3072}),
        r"data_batch_1\.bin has the label 11 in row 0",
    ),
    "svhn label": (
        SVHN,
        lambda path, f: f.write_svhn(path, f.pixels_of(40, 32, 32, 3), f.labels_of(40)[:, None]),
        "label 0 in row 0 .* from 1 to 10",
    ),
    "svhn sizes": (
        SVHN,
        lambda path, f: f.write_svhn(path, f.pixels_of(40, 16, 16, 3), f.labels_of(40)[:, None]),
        r"X of shape \(16, 16, 3, 40\)",
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_file_with_something_wrong_in_it_says_where(official, formats, case):
    file, write, message = WRONG[case]
    write(official / file, formats)
    with pytest.raises(DataError, match=message) as caught:
        load_dataset(Path(file).parent.name)
    assert "\n" not in str(caught.value)


def test_names_in_an_archive_lead_nowhere(official, formats, tmp_path):
    records = formats.cifar_records(formats.pixels_of(40, 32, 32, 3))
    members = {"../../data_batch_1.bin": records, "/etc/evil": b"x", "../evil.bin": b"x", "test_batch.bin": records}
    formats.write_cifar(official / CIFAR, members)
    before = set(tmp_path.parent.rglob("*"))
    assert len(load_dataset("cifar10").test.targets) == 40
    assert set(tmp_path.parent.rglob("*")) == before


@pytest.mark.skipif(not REAL, reason="CHARAX_DATA is not set, so there are no real files to read")
@pytest.mark.parametrize("name", ["mnist", "cifar10", "svhn"])
def test_the_real_files_can_be_read(name):
    if not (Path(str(REAL)) / name).is_dir():
        pytest.skip(f"CHARAX_DATA has no folder {name}")
    data = load_dataset(name)
    assert data.input_shape == DATASETS[name].shape
    assert len(data.train.targets) >= 8_000
    assert set(data.test.targets.tolist()) == set(range(10))
    if name == "mnist":
        assert len(data.train.targets) + len(data.validation.targets) == 60_000
        np.testing.assert_array_equal(data.test.targets[:5], [7, 2, 1, 0, 4])
        assert data.train.inputs.mean() == pytest.approx(0.1307, abs=1e-3)
