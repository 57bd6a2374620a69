"""SVHN's cropped digits: MATLAB files with the images in the last axis, and 10 as the label of a zero."""

from pathlib import Path

import numpy as np

from charax.data._dataset import Labelled, Raw
from charax.data._errors import DataError
from charax.data._labels import check_labels


def read_svhn(folder: Path) -> Raw:
    """The training and the test file."""
    classes = tuple(str(digit) for digit in range(10))
    path = folder / "train_32x32.mat"
    samples, test = _read_part(path), _read_part(folder / "test_32x32.mat")
    return Raw(path, samples, classes, test=test, white=255.0)


def _read_part(path: Path) -> Labelled:
    import scipy.io  # slow to import, and needed by one data set only

    try:
        content = scipy.io.loadmat(path, variable_names=("X", "y"))
    except Exception as error:  # a damaged file makes the parser stumble in any way it can
        raise DataError(
            f"{path} is not a sound MATLAB file ({type(error).__name__}: {error}): delete it and fetch it again"
        ) from None
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
    return Labelled(np.ascontiguousarray(images.transpose(3, 0, 1, 2)), digits)
