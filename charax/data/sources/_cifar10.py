"""CIFAR-10's binary version: records of one label byte and 3,072 pixel bytes, in a tar archive."""

import re
import tarfile
from pathlib import Path

import numpy as np

from charax.data._errors import DataError
from charax.data._limits import check_limit, check_passed
from charax.data._raw import RawDataset, RawSplit, check_labels
from charax.data.sources._gzip import open_gzip
from charax.data.sources._source import Source

_FILE = "cifar-10-binary.tar.gz"
_CLASSES = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")
_RECORD = 1 + 3 * 32 * 32
_BATCH = re.compile(r"(?:.*/)?(data_batch_\d+|test_batch)\.bin")


def _read(folder: Path) -> RawDataset:
    """Read every `data_batch_*.bin` in order, and `test_batch.bin`, however many records they have."""
    path = folder / _FILE
    batches = _read_batches(path)
    training = [batches[name] for name in sorted(batches, key=lambda name: (len(name), name)) if name != "test_batch"]
    if not training or "test_batch" not in batches:
        missing = "test_batch.bin" if training else "data_batch_1.bin"
        raise DataError(f"{path} has no {missing} in it: it is not the binary version of CIFAR-10")
    samples = RawSplit(*(np.concatenate(arrays) for arrays in zip(*training, strict=True)))
    return RawDataset(path, samples, _CLASSES, test=batches["test_batch"], max_value=255.0)


def _read_batches(path: Path) -> dict[str, RawSplit]:
    # Members are read into memory and never written to disk, so their names cannot lead anywhere.
    batches = {}
    try:
        with open_gzip(path) as stream, tarfile.open(fileobj=stream, mode="r|") as archive:
            for number, member in enumerate(archive, start=1):
                check_passed("members", number, path)
                match = _BATCH.fullmatch(member.name)
                if match and member.isreg():
                    if member.issparse():
                        raise DataError(f"{path}: {member.name} has holes, which a file of images has not")
                    check_limit("bytes", member.size, f"{path}: {member.name}")
                    file = archive.extractfile(member)
                    assert file is not None  # a regular file always has content
                    batches[match[1]] = _read_records(file.read(), f"{path}: {member.name}")
            while stream.read(1 << 20):  # to its end, where its checksum is
                pass
    except (tarfile.TarError, RecursionError, ValueError) as error:
        if isinstance(error, DataError):
            raise
        raise DataError(f"{path} is not a valid tar archive ({error}): delete it and fetch it again") from None
    return batches


def _read_records(content: bytes, source: str) -> RawSplit:
    if len(content) == 0 or len(content) % _RECORD:
        raise DataError(
            f"{source} has {len(content)} bytes, which is not a multiple of {_RECORD}, the size of a record"
        )
    records = np.frombuffer(content, np.uint8).reshape(-1, _RECORD)
    images = records[:, 1:].reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1)
    return RawSplit(images, check_labels(records[:, 0], low=0, high=9, source=source))


CIFAR10 = Source(
    "cifar10",
    "small color photographs of ten kinds of objects, binary version",
    "Krizhevsky, University of Toronto",
    train=50_000,
    test=10_000,
    shape=(32, 32, 3),
    read=_read,
    scaling="standardize",
    augmentation="flip-crop",
    files={_FILE: "c32a1d4ab5d03f1284b67883e8d87530"},
    mirrors=("https://www.cs.toronto.edu/~kriz/",),
)
