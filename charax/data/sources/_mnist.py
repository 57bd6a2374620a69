"""MNIST, in the IDX format: a magic number, the sizes, and bytes."""

import math
import struct
from pathlib import Path

import numpy as np
from jaxtyping import UInt8

from charax.data._errors import DataError
from charax.data._limits import check_limit
from charax.data._raw import RawDataset, RawSplit, check_labels
from charax.data.sources._gzip import open_gzip
from charax.data.sources._source import DIGIT_CLASSES, Source

_IMAGES, _LABELS = 2051, 2049


def _read(folder: Path) -> RawDataset:
    samples, test = (_read_split(folder, split) for split in ("train", "t10k"))
    return RawDataset(folder / "train-labels-idx1-ubyte.gz", samples, DIGIT_CLASSES, test=test, max_value=255.0)


def _read_split(folder: Path, split: str) -> RawSplit:
    images_path = folder / f"{split}-images-idx3-ubyte.gz"
    labels_path = folder / f"{split}-labels-idx1-ubyte.gz"
    images, labels = _read_idx(images_path, _IMAGES), _read_idx(labels_path, _LABELS)
    if len(images) != len(labels):
        raise DataError(f"{labels_path} has {len(labels)} labels where {images_path.name} has {len(images)} images")
    return RawSplit(images[..., None], check_labels(labels, low=0, high=9, source=labels_path))


def _read_idx(path: Path, magic: int) -> UInt8[np.ndarray, "n *shape"]:
    axes = magic & 0xFF  # the magic number's last byte counts the axes
    with open_gzip(path) as file:
        header = file.read(4 + 4 * axes)
        shape = _read_shape(path, header, magic)
        expected = math.prod(shape)
        check_limit("bytes", expected, path, "promises")
        content = file.read(expected + 1)  # to its end, where its checksum is
        if len(content) != expected:
            found = "more" if len(content) > expected else len(content)
            raise DataError(f"{path} has {found} bytes of data where its header promises {expected}")
    if expected == 0:
        raise DataError(f"{path} has no data in it")
    return np.frombuffer(content, np.uint8).reshape(shape)


def _read_shape(path: Path, header: bytes, magic: int) -> tuple[int, ...]:
    found = int.from_bytes(header[:4], "big")
    if found != magic:
        what = "images" if magic == _IMAGES else "labels"
        raise DataError(
            f"{path} has the magic number {found} where IDX {what} have {magic}: it is another kind of file"
        )
    axes = magic & 0xFF
    if len(header) < 4 + 4 * axes:
        raise DataError(f"{path} is truncated within its header: delete it and fetch it again")
    return struct.unpack_from(f">{axes}I", header, 4)


MNIST = Source(
    "mnist",
    "handwritten digits",
    "LeCun, Cortes, Burges",
    train=60_000,
    test=10_000,
    shape=(28, 28, 1),
    read=_read,
    scaling="unit",
    files={
        "train-images-idx3-ubyte.gz": "f68b3c2dcbeaaa9fbdd348bbdeb94873",
        "train-labels-idx1-ubyte.gz": "d53e105ee54ea40749a09fcbcd1e9432",
        "t10k-images-idx3-ubyte.gz": "9fb629c4189551a2d022fa330f9573f3",
        "t10k-labels-idx1-ubyte.gz": "ec29112dd5afa0611ce80d1b7f02629c",
    },
    mirrors=(
        "https://ossci-datasets.s3.amazonaws.com/mnist/",
        "https://storage.googleapis.com/cvdf-datasets/mnist/",
    ),
)
