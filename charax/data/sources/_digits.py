"""The digits that are part of scikit-learn: 8x8 pixels with values 0 … 16."""

from importlib.util import find_spec
from pathlib import Path

import numpy as np

from charax.data._raw import RawDataset, RawSplit
from charax.data.sources._source import DIGIT_CLASSES, Source


def _read(folder: Path) -> RawDataset:
    file = folder / "digits.csv.gz"
    if file.is_file():  # without importing scikit-learn, which takes longer than everything else before training
        table = np.loadtxt(file, delimiter=",")
        images, labels = table[:, :-1], table[:, -1]
    else:
        from sklearn.datasets import load_digits

        images, labels = load_digits(return_X_y=True)
    samples = RawSplit(images.reshape(-1, 8, 8, 1), np.asarray(labels, np.int32))
    return RawDataset("digits", samples, DIGIT_CLASSES, max_value=16.0)


def _find_folder() -> Path:
    package = find_spec("sklearn")
    folders = package.submodule_search_locations if package else None
    return Path(folders[0] if folders else "", "datasets", "data")


DIGITS = Source(
    "digits",
    "handwritten digits in 17 gray levels; split by the seed; part of scikit-learn, nothing to download",
    "scikit-learn",
    train=1_797,
    test=0,
    shape=(8, 8, 1),
    read=_read,
    scaling="unit",
    augmentation="affine",  # they are few, and slanted in many ways
    find_folder=_find_folder,
)
