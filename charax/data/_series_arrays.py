"""Series of different lengths as arrays, and their units."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
from jaxtyping import Float32, Int, Int32, Shaped

from charax.data._errors import DataError
from charax.data._limits import check_limit
from charax.data._standardizer import Standardizer
from charax.data.files._series import RawSeries


class SeriesSplit(NamedTuple):
    """The training, validation or test split of whole series.

    ```python
    import numpy as np
    from charax.data import SeriesSplit

    one = SeriesSplit(
        np.zeros((1, 2), np.float32), np.zeros((1, 2, 3), np.float32), np.array([2], np.int32), np.array([0], np.int32)
    )
    assert one.take(np.array([0, 0])).values.shape == (2, 2, 3)
    ```
    """

    times: Float32[np.ndarray, "n length"]
    """The time since the first observation, in units of the mean duration; behind the end it increases further."""
    values: Float32[np.ndarray, "n length channels"]
    """Standardized values; NaN where one is missing, and behind the end."""
    lengths: Int32[np.ndarray, "n"]
    """The number of observations of each series."""
    targets: Shaped[np.ndarray, "n"]
    """Class indices, or standardized numbers."""

    def take(self, rows: np.ndarray) -> "SeriesSplit":
        """Select series.

        Args:
            rows: Their indices, or a mask.

        Returns:
            The selected series.
        """
        return SeriesSplit(*(part[rows] for part in self))


@dataclass(frozen=True)
class SeriesScaling:
    """The channels of series and their units, as plain numbers.

    ```python
    from charax.data import SeriesScaling, Standardizer

    scaling = SeriesScaling(("height",), Standardizer((0.0,), (2.0,)), duration=4.0, length=3.0)
    assert scaling.standardizer.std == (2.0,)
    ```
    """

    channels: tuple[str, ...]
    """The names of the channels."""
    standardizer: Standardizer
    """How values are scaled."""
    duration: float
    """The mean duration of a training series, which is the unit of time."""
    length: float
    """The mean number of observations of a training series."""

    @classmethod
    def fit(
        cls,
        channels: tuple[str, ...],
        times: Sequence[Shaped[np.ndarray, "_"]],
        values: Sequence[Shaped[np.ndarray, "_ channels"]],
        path: Path,
    ) -> "SeriesScaling":
        """Compute the units from the training series.

        Args:
            channels: The names of the channels.
            times: The times of each series.
            values: The values of each series; NaN where one is missing.
            path: The file, for errors.

        Returns:
            The units.

        Raises:
            DataError: If a channel has no value at all.
        """
        rows = np.concatenate(values)
        empty = np.isnan(rows).all(axis=0)
        if empty.any():
            raise DataError(
                f"{path}: the channel {channels[int(np.argmax(empty))]!r} has no value in any of the {len(values)} "
                "training series: leave it out"
            )
        mean, std = np.nanmean(rows, axis=0), np.nanstd(rows, axis=0)
        std = np.where(std > 1e-12 * np.abs(mean), std, 1.0)
        durations = [float(each[-1] - each[0]) for each in times]
        return cls(
            channels,
            Standardizer(tuple(mean.tolist()), tuple(std.tolist())),
            duration=float(np.mean(durations)) or 1.0,
            length=float(np.mean([len(each) for each in times])),
        )

    def split(
        self,
        raw: RawSeries,
        rows: Int[np.ndarray, "n"],
        values: Sequence[Shaped[np.ndarray, "_ channels"]],
        *,
        length: int,
    ) -> SeriesSplit:
        """Standardize series and pad them to a common length.

        Args:
            raw: The series of a file.
            rows: Those to take.
            values: The values of these series, in the order of `rows`.
            length: The length to pad to.

        Returns:
            The series, with zeros as their targets.

        Raises:
            DataError: If times that differ are equal in single precision, or that is more than the limit of cells.
        """
        cells = len(rows) * length * len(self.channels)
        check_limit("cells", cells, raw.path, "has, with all series as long as the longest,")
        out_times = np.zeros((len(rows), length), np.float32)
        out_values = np.full((len(rows), length, len(self.channels)), np.nan, np.float32)
        lengths = np.asarray([len(each) for each in values], np.int32)
        for i, (row, each) in enumerate(zip(rows, values, strict=True)):
            t, n = raw.times[row], len(each)
            scaled = ((t - t[0]) / self.duration).astype(np.float32)
            equal = np.diff(scaled) <= 0
            if equal.any():
                raise DataError(
                    f"{raw.where(int(row), int(np.argmax(equal)) + 1)}: series {raw.names[row]!r} has two times that "
                    f"are too close, next to a mean duration of {self.duration:g}: merge these rows"
                )
            out_times[i, :n], out_times[i, n:] = scaled, scaled[-1] + np.arange(1, length - n + 1)
            with np.errstate(over="ignore"):  # an infinite value makes the solve of its series fail
                out_values[i, :n] = self.standardizer.apply(each)
        return SeriesSplit(out_times, out_values, lengths, np.zeros(len(rows), np.int32))
