"""MNIST's own format: a magic number, the sizes, and bytes."""

import struct
from pathlib import Path

import numpy as np
from jaxtyping import UInt8

from charax.data._compressed import gunzip
from charax.data._dataset import Labelled, Raw
from charax.data._errors import DataError
from charax.data._labels import check_labels

_IMAGES, _LABELS = 2051, 2049


def read_mnist(folder: Path) -> Raw:
    """The four files of MNIST."""
    classes = tuple(str(digit) for digit in range(10))
    samples, test = (_read_part(folder, part) for part in ("train", "t10k"))
    return Raw(folder / "train-labels-idx1-ubyte.gz", samples, classes, test=test, white=255.0)


def _read_part(folder: Path, part: str) -> Labelled:
    images_path = folder / f"{part}-images-idx3-ubyte.gz"
    labels_path = folder / f"{part}-labels-idx1-ubyte.gz"
    images, labels = _read_idx(images_path, _IMAGES), _read_idx(labels_path, _LABELS)
    if len(images) != len(labels):
        raise DataError(f"{labels_path} has {len(labels)} labels where {images_path.name} has {len(images)} images")
    return Labelled(images[..., None], check_labels(labels, low=0, high=9, source=labels_path))


def _read_idx(path: Path, magic: int) -> UInt8[np.ndarray, "n *shape"]:
    content = gunzip(path)
    found = int.from_bytes(content[:4], "big")
    if found != magic:
        what = "images" if magic == _IMAGES else "labels"
        raise DataError(f"{path} has the magic number {found} where IDX {what} have {magic}: it is not such a file")
    axes = magic & 0xFF  # the magic number's last byte counts the axes
    start = 4 + 4 * axes
    if len(content) < start:
        raise DataError(f"{path} is truncated: it ends within its header")
    shape = struct.unpack_from(f">{axes}I", content, 4)
    expected = int(np.prod(shape, dtype=object))
    if len(content) - start != expected:
        raise DataError(f"{path} has {len(content) - start} bytes of data where its header promises {expected}")
    if expected == 0:
        raise DataError(f"{path} has no data in it")
    return np.frombuffer(content, np.uint8, offset=start).reshape(shape)
