"""SVHN's cropped digits: MATLAB files with the images along the last axis, and 10 as the label of a zero."""

from pathlib import Path

import numpy as np

from charax.data._errors import DataError
from charax.data._raw import RawDataset, RawSplit, check_labels
from charax.data.files._matlab import read_matlab
from charax.data.sources._source import DIGIT_CLASSES, Source

_TRAIN, _TEST = "train_32x32.mat", "test_32x32.mat"


def _read(folder: Path) -> RawDataset:
    samples, test = (_read_split(folder / file) for file in (_TRAIN, _TEST))
    return RawDataset(folder / _TRAIN, samples, DIGIT_CLASSES, test=test, max_value=255.0)


def _read_split(path: Path) -> RawSplit:
    content = read_matlab(path, ("X", "y"))
    missing = {"X", "y"} - content.keys()
    if missing:
        raise DataError(f"{path} has no variable {' and no '.join(sorted(missing))}: it is not a file of SVHN's digits")
    images, labels = content["X"], content["y"]
    if images.dtype != np.uint8 or images.ndim != 4 or images.shape[:3] != (32, 32, 3):
        raise DataError(f"{path} has X of shape {images.shape} and type {images.dtype}, not 32 x 32 x 3 x n of bytes")
    if labels.dtype.kind not in "iu" or labels.size != images.shape[3]:
        raise DataError(f"{path} has {labels.size} labels of type {labels.dtype} where it has {images.shape[3]} images")
    if labels.size == 0:
        raise DataError(f"{path} has no data in it")
    digits = check_labels(labels.ravel(), low=1, high=10, source=path) % 10
    return RawSplit(np.ascontiguousarray(images.transpose(3, 0, 1, 2)), digits)


SVHN = Source(
    "svhn",
    "cropped digits of house numbers in street photographs",
    "Netzer et al., Stanford University",
    train=73_257,
    test=26_032,
    shape=(32, 32, 3),
    read=_read,
    scaling="unit",
    files={_TRAIN: "e26dedcc434d2e4c54c9b2d4a06d8373", _TEST: "eb5a983be6a315427106f1b164d9cef3"},
    mirrors=("http://ufldl.stanford.edu/housenumbers/",),
)
