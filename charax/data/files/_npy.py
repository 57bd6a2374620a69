"""NumPy files: `x.npy`, and `y.npy` next to it where there are classes."""

from pathlib import Path
from typing import Any

import numpy as np

from charax.data._errors import DataError
from charax.data._limits import LIMITS, check_limit, check_regular
from charax.data._raw import RawDataset
from charax.data._stored import MappedRows
from charax.data.files._kind import FileKind, TableOptions, has_suffix
from charax.data.files._npz import check_inputs, label_samples, map_array


def _read_labelled(path: Path, options: TableOptions) -> RawDataset:
    x, y = read_neighbours(path)
    return label_samples(path, check_inputs(path, x), y)


def _read_unlabelled(path: Path, options: TableOptions) -> Any:
    return check_inputs(path, _open(path))


def read_neighbours(path: Path) -> tuple[np.ndarray | MappedRows, np.ndarray]:
    """Read `x.npy` and `y.npy`; the samples stay on disk if they are too large for memory."""
    labels = path.with_name("y.npy")
    if path.name != "x.npy" or not labels.is_file():
        raise DataError(f"{path} has no labels: name the samples x.npy, and put their labels next to them, in y.npy")
    return _open(path), _load(labels)


def _open(path: Path) -> np.ndarray | MappedRows:
    if path.stat().st_size <= LIMITS["memory"].value:
        return _load(path)
    with path.open("rb") as file:
        stored = map_array(path, file)
    if stored is None:
        raise DataError(f"{path} cannot be read row by row: save it again with numpy.save, in C order")
    return stored


def _load(path: Path) -> np.ndarray:
    check_regular(path)
    check_limit("bytes", path.stat().st_size, path)
    try:
        return np.load(path, allow_pickle=False)
    except Exception as error:  # a damaged file makes its reader fail in any way it can
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise DataError(f"{path} is not a valid .npy file ({reason}): save it again with numpy.save") from None


NPY = FileKind(name=".npy", matches=has_suffix(".npy"), read_labelled=_read_labelled, read_unlabelled=_read_unlabelled)
