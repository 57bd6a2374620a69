"""Series in `.npz` archives: x with NaN where a value is missing, and perhaps t, lengths and y."""

from pathlib import Path

import numpy as np

from charax.data._errors import DataError
from charax.data.files._npz import read_arrays
from charax.data.files._series import RawSeries, SeriesRequest


def read_series_arrays(path: Path, request: SeriesRequest) -> RawSeries:
    """Read `x` [n, length, channels] or [n, length], `t` [length] or [n, length], `lengths` [n] and `y` [n]."""
    arrays = read_arrays(path)
    if "x" not in arrays:
        raise DataError(f"{path} has no array 'x'; it has {', '.join(arrays) or 'none'}")
    x = arrays["x"]
    if x.dtype.kind not in "biuf" or x.ndim not in (2, 3) or x.size == 0:
        raise DataError(f"{path} has x of type {x.dtype} and shape {x.shape}: give numbers, [n, length, channels]")
    x = (x[:, :, None] if x.ndim == 2 else x).astype(np.float64)
    count, length = x.shape[:2]
    t = arrays["t"] if "t" in arrays else np.arange(length)
    if t.dtype.kind not in "biuf" or t.shape not in ((length,), (count, length)):
        raise DataError(
            f"{path} has t of type {t.dtype} and shape {t.shape}: give [length] or [n, length] = {x.shape[:2]}"
        )
    times = np.broadcast_to(t.astype(np.float64), (count, length))
    lengths = _lengths(path, arrays.get("lengths"), x)
    return RawSeries(
        path,
        names=[str(i) for i in range(count)],
        times=[times[i, :n] for i, n in enumerate(lengths)],
        values=[x[i, :n] for i, n in enumerate(lengths)],
        channels=tuple(f"channel{i + 1}" for i in range(x.shape[2])),
        labels=None if request.target is None else _labels(path, arrays, count),
        where=lambda i, row: f"{path}, row {i} of x (counted from 0), position {row}",
    ).check()


def _lengths(path: Path, given: np.ndarray | None, x: np.ndarray) -> np.ndarray:
    """Up to the last position with a value, unless they are given."""
    if given is None:
        seen = np.asarray(~np.isnan(x).all(axis=2))
        last = x.shape[1] - np.argmax(seen[:, ::-1], axis=1)
        return np.where(seen.any(axis=1), last, 1)
    if given.shape != x.shape[:1] or given.dtype.kind not in "iu":
        raise DataError(f"{path} has lengths of type {given.dtype} and shape {given.shape}: give {len(x)} integers")
    wrong = (given < 1) | (given > x.shape[1])
    if wrong.any():
        row = int(np.argmax(wrong))
        raise DataError(
            f"{path} has the length {given[row]} in row {row} of lengths (counted from 0): series have 1 to "
            f"{x.shape[1]} positions"
        )
    return given


def _labels(path: Path, arrays: dict[str, np.ndarray], count: int) -> list[str]:
    if "y" not in arrays:
        raise DataError(f"{path} has no array 'y'; it has {', '.join(arrays)}")
    y = arrays["y"]
    if y.shape != (count,) or y.dtype.kind not in "biufU":
        raise DataError(f"{path} has y of type {y.dtype} and shape {y.shape}: give one class or number per series")
    return [str(value) for value in y.tolist()]
