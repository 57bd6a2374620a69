"""Small files in the official formats, written as their publishers write them."""

import gzip
import io
import struct
import tarfile
from pathlib import Path

import numpy as np
import pytest
import scipy.io

TRAIN, TEST = 40, 10


def labels_of(count: int) -> np.ndarray:
    return np.arange(count, dtype=np.uint8) % 10


def write_idx(path: Path, array: np.ndarray, *, magic: int | None = None):
    header = struct.pack(f">{array.ndim + 1}I", 0x800 + array.ndim if magic is None else magic, *array.shape)
    path.write_bytes(gzip.compress(header + array.tobytes()))


def write_cifar(path: Path, members: dict[str, bytes]):
    with tarfile.open(path, "w:gz") as archive:
        for name, content in members.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))


def cifar_records(pixels: np.ndarray) -> bytes:
    """NHWC bytes as records of a label and three planes of colour."""
    planes = pixels.transpose(0, 3, 1, 2).reshape(len(pixels), -1)
    return np.concatenate([labels_of(len(pixels))[:, None], planes], axis=1).tobytes()


def pixels_of(count: int, *shape: int) -> np.ndarray:
    return np.random.default_rng(count).integers(0, 256, (count, *shape), dtype=np.uint8)


@pytest.fixture
def official(tmp_path, monkeypatch) -> Path:
    """A folder for CHARAX_DATA with MNIST, CIFAR-10 and SVHN of a few images each."""
    for name in ("mnist", "cifar10", "svhn"):
        (tmp_path / name).mkdir()
    for part, count in (("train", TRAIN), ("t10k", TEST)):
        write_idx(tmp_path / f"mnist/{part}-images-idx3-ubyte.gz", pixels_of(count, 28, 28))
        write_idx(tmp_path / f"mnist/{part}-labels-idx1-ubyte.gz", labels_of(count))
    half = TRAIN // 2
    train = pixels_of(TRAIN, 32, 32, 3)
    write_cifar(
        tmp_path / "cifar10/cifar-10-binary.tar.gz",
        {
            "cifar-10-batches-bin/batches.meta.txt": b"airplane\n",
            "cifar-10-batches-bin/data_batch_1.bin": cifar_records(train[:half]),
            "cifar-10-batches-bin/data_batch_2.bin": cifar_records(train[half:]),
            "cifar-10-batches-bin/test_batch.bin": cifar_records(pixels_of(TEST, 32, 32, 3)),
        },
    )
    for part, count in (("train", TRAIN), ("test", TEST)):
        digits = labels_of(count)[:, None]
        write_svhn(tmp_path / f"svhn/{part}_32x32.mat", pixels_of(count, 32, 32, 3), np.where(digits == 0, 10, digits))
    monkeypatch.setenv("CHARAX_DATA", str(tmp_path))
    return tmp_path


def write_svhn(path: Path, pixels: np.ndarray, labels: np.ndarray):
    scipy.io.savemat(path, {"X": pixels.transpose(1, 2, 3, 0), "y": labels}, do_compression=True)


@pytest.fixture
def formats():
    """The writers above, for tests that write a file with something wrong in it."""
    from types import SimpleNamespace

    return SimpleNamespace(
        write_idx=write_idx,
        write_cifar=write_cifar,
        write_svhn=write_svhn,
        cifar_records=cifar_records,
        pixels_of=pixels_of,
        labels_of=labels_of,
    )
