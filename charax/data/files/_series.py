"""Whole series as a reader finds them: any times, missing values, different lengths."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
from jaxtyping import Float64

from charax.data._errors import DataError
from charax.data._names import TimeKind
from charax.data.files._layout import Separator
from charax.data.files._times import spell_number


class SeriesRequest(NamedTuple):
    """How to read a file of series; the names of columns have no meaning for other files than tables."""

    series: str = "series"
    """The column that names the series."""
    time: str = "time"
    """The column of the times."""
    target: str | None = None
    """The column of the class or the number that belongs to a series; None if there is none to read."""
    channels: tuple[str, ...] = ()
    """The columns of the channels; all others if empty."""
    separator: Separator | None = None
    """The separator of a text file; found out if left out."""


@dataclass(frozen=True)
class RawSeries:
    """Series in the units of their file. NaN is a missing value."""

    path: Path
    """The file."""
    names: list[str]
    """What each series is called: a name, a line or an index."""
    times: list[Float64[np.ndarray, "_"]]
    """The times of each series, in increasing order."""
    values: list[Float64[np.ndarray, "_ channels"]]
    """The observations of each series."""
    channels: tuple[str, ...]
    """The names of the channels."""
    labels: list[str] | None
    """The class or the number of each series, as the file spells it; None if it has none."""
    where: Callable[[int, int], str]
    """Names an observation of a series, as errors begin."""
    time_kind: TimeKind = "number"
    """What the times are."""
    spell: Callable[[int, int], str] | None = None
    """Spells the time of an observation, a date as the file does; as a number if left out."""

    def spell_time(self, i: int, row: int) -> str:
        """Spell the time of an observation, so that it is read as the same time.

        Args:
            i: The series.
            row: The observation.

        Returns:
            A number or a date.
        """
        return spell_number(float(self.times[i][row])) if self.spell is None else self.spell(i, row)

    def check(self) -> "RawSeries":
        """Refuse series that cannot be put in order.

        Returns:
            The same series.

        Raises:
            DataError: If there are none, a time is not finite, repeats or goes backwards, or a value is infinite.
        """
        if not self.names:
            raise DataError(f"{self.path} has no series")
        for i, (times, values) in enumerate(zip(self.times, self.values, strict=True)):
            self._check_times(i, times)
            infinite = np.isinf(values).any(axis=1)
            if infinite.any():
                raise DataError(
                    f"{self.where(i, int(np.argmax(infinite)))}: series {self.names[i]!r} has an infinite value: leave "
                    "it empty if it is missing"
                )
        return self

    def _check_times(self, i: int, times: np.ndarray) -> None:
        wrong = ~np.isfinite(times)
        if wrong.any():
            raise DataError(
                f"{self.where(i, int(np.argmax(wrong)))}: series {self.names[i]!r} has no finite time there: fill it "
                "in, or remove the row"
            )
        back = np.flatnonzero(np.diff(times) <= 0)
        if len(back):
            first = int(back[0])
            repeats = times[first + 1] == times[first]
            raise DataError(
                f"{self.where(i, first + 1)}: series {self.names[i]!r} "
                + ("repeats the time" if repeats else "goes back in time from")
                + f" {self.spell_time(i, first)}"
                + ("" if repeats else f" to {self.spell_time(i, first + 1)}")
                + ": sort the rows of each series by time and keep one row per time"
            )
