"""The digits that are part of scikit-learn: 8x8 pixels with values 0 … 16."""

from pathlib import Path

import numpy as np

from charax.data._raw import RawDataset, RawSplit
from charax.data.sources._source import DIGIT_CLASSES, Source


def _read(folder: Path) -> RawDataset:
    from sklearn.datasets import load_digits  # slow to import

    images, labels = load_digits(return_X_y=True)
    samples = RawSplit(images.reshape(-1, 8, 8, 1), np.asarray(labels, np.int32))
    return RawDataset("digits", samples, DIGIT_CLASSES, max_value=16.0)


def _find_folder() -> Path:
    import sklearn.datasets  # slow to import

    return Path(str(sklearn.datasets.__file__)).parent / "data"


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
