"""Series as rows of features, so that the ensemble trains them like any other rows."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Array, Float, Float32, Int

from charax.data import Standardizer

ArrayLike = Any


class SeriesArrays(NamedTuple):
    """Series of different lengths, padded to the longest."""

    times: Float[np.ndarray, "n length"]
    """The time since the first observation; behind the end it increases further."""
    values: Float[np.ndarray, "n length channels"]
    """The observations; NaN where one is missing and behind the end."""
    lengths: Int[np.ndarray, "n"]
    """The number of observations of each series."""

    @classmethod
    def read(cls, X: ArrayLike, times: ArrayLike | None) -> "SeriesArrays":
        """Check and pad series.

        Args:
            X: An array of shape (n_series, length, n_channels), or a sequence of arrays of shape (length, n_channels).
            times: Their times, in the same form without the last axis; 0, 1, 2 … if None.

        Returns:
            The series.

        Raises:
            ValueError: If the shapes do not fit, a value is infinite or the times of a series do not increase.
        """
        series = [_as_series(one, i) for i, one in enumerate(X)]
        if not series:
            raise ValueError("There are no series in X.")
        channels = {one.shape[1] for one in series}
        if len(channels) > 1:
            raise ValueError(f"All series must have the same number of channels, got {sorted(channels)}.")
        clocks = [np.arange(float(len(one))) for one in series] if times is None else _as_clocks(times, series)
        count, length = len(series), max(map(len, series))
        out = cls(
            np.zeros((count, length)),
            np.full((count, length, channels.pop()), np.nan),
            np.asarray([len(one) for one in series]),
        )
        for i, (clock, one) in enumerate(zip(clocks, series, strict=True)):
            n = len(one)
            out.times[i, :n], out.values[i, :n] = clock - clock[0], one
            out.times[i, n:] = out.times[i, n - 1] + np.arange(1, length - n + 1) * max(out.times[i, n - 1], 1.0)
        return out

    def pack(self, standardizer: Standardizer, duration: float) -> Float32[np.ndarray, "n features"]:
        """Scale the series, and put times, values and length of each into one row.

        Args:
            standardizer: The units of the channels.
            duration: The unit of time.

        Returns:
            Rows of `length * (channels + 1) + 1` features.
        """
        count = len(self.lengths)
        parts = (self.times / duration, standardizer.apply(self.values).reshape(count, -1), self.lengths[:, None])
        return np.concatenate(parts, axis=1).astype(np.float32)


def unpack(
    rows: Float[Array, "n features"], channels: int
) -> tuple[Float[Array, "n length"], Float[Array, "n length channels"], Int[Array, "n"]]:
    """The times, values and lengths of packed rows. A row of padding is a series of one observation."""
    length = (rows.shape[1] - 1) // (channels + 1)
    values = rows[:, length:-1].reshape(rows.shape[0], length, channels)
    return rows[:, :length], values, rows[:, -1].astype(int).clip(1)


def _as_series(one: ArrayLike, number: int) -> Float[np.ndarray, "length channels"]:
    array = np.asarray(one, np.float64)
    if array.ndim != 2 or not array.size:
        raise ValueError(
            f"Series {number} of X has the shape {array.shape}: give arrays of shape (length, n_channels); a single "
            "channel is X[..., None]."
        )
    if np.isinf(array).any():
        raise ValueError(f"Series {number} of X has an infinite value: missing values are NaN.")
    return array


def _as_clocks(times: ArrayLike, series: Sequence[np.ndarray]) -> list[np.ndarray]:
    clocks = [np.asarray(one, np.float64) for one in times]
    if [clock.shape for clock in clocks] != [one.shape[:1] for one in series]:
        raise ValueError("times must have one time for each observation of each series of X.")
    for number, clock in enumerate(clocks):
        if not (np.isfinite(clock).all() and (np.diff(clock) > 0).all()):
            raise ValueError(f"The times of series {number} must be finite and increase.")
    return clocks
