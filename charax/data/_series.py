"""Time series: rows of (series, time, values), at times that need not be regular."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
from jaxtyping import Int

from charax.data._errors import DataError
from charax.data._names import TimeKind
from charax.data._samples import Observations
from charax.data.files._columns import (
    column_labels,
    column_numbers,
    refuse_cells,
    require_columns,
    require_series_columns,
)
from charax.data.files._dispatch import find_path, read_table
from charax.data.files._table import Table, TableRequest
from charax.data.files._times import Times, check_time_kind, read_times
from charax.data.sources._paper_series import PAPER_SERIES, sample_paper_series

_MIN_ROWS = 4


class SeriesColumns(NamedTuple):
    """The names of the columns of a file of series.

    ```python
    from charax.data import SeriesColumns

    columns = SeriesColumns("city", "day", ("temperature",), context=("altitude",))
    assert columns.values == ("temperature",)
    ```
    """

    series: str
    """The column that names the series."""
    time: str
    """The column of the times."""
    values: tuple[str, ...]
    """The columns to forecast."""
    context: tuple[str, ...] = ()
    """The columns that are known from the start of a series."""


@dataclass(frozen=True)
class SeriesData:
    """Observations of some series in three splits: of each series, the last ones are for the test.

    ```python
    from charax.data import load_series

    data = load_series("paper")
    assert data.columns.values == ("u",) and len(data.train.t) == 160
    ```
    """

    name: str
    """The name of the data, or of the file without its suffix."""
    train: Observations
    """The training split."""
    validation: Observations
    """The split on which the best weights are selected."""
    test: Observations
    """The test split."""
    columns: SeriesColumns
    """The names of the columns."""
    names: tuple[str, ...]
    """The names of the series."""
    origins: tuple[float, ...]
    """The time at which each series starts."""
    time_kind: TimeKind = "number"
    """What the times are."""


class ForecastRequest(NamedTuple):
    """What to forecast, one entry per row of the answer.

    ```python
    import tempfile
    from pathlib import Path
    from charax.data import SeriesColumns, read_forecast_times

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "new.csv"
        path.write_text("series,time,u\\na,3,1\\na,5,\\n")
        request = read_forecast_times(path, SeriesColumns("series", "time", ("u",)))
    assert request.names == ["a", "a"] and request.observations.t.tolist() == [0.0, 2.0]
    ```
    """

    observations: Observations
    """Where each series starts, and the times since then; their values are not known."""
    names: list[str]
    """The name of the series."""
    times: list[str]
    """The time as the file spells it."""


def load_series(
    name: str,
    *,
    series: str = "series",
    time: str = "time",
    context: Sequence[str] = (),
    seed: int = 0,
    points: int = 200,
) -> SeriesData:
    """Load the paper's time series, or those of a table or an `.npz` file.

    A file has a column that names the series, a column of times, columns of values, and perhaps columns that are known
    from the start of a series and do not change along it. The first row of a series is its initial value. Of the
    others, the last fifth is the test split; the validation split comes before it and is half as long.

    Args:
        name: "paper", or a path.
        series: The column that names the series.
        time: The column of times or dates, increasing within each series.
        context: Columns that are known from the start of a series.
        seed: Seed of the paper's series.
        points: The number of observations of the paper's series.

    Returns:
        The series.

    Raises:
        DataError: If the file cannot be read, lacks a column, or is not in order; the message names the file, the row
            and the fix.

    ```python
    import tempfile
    from pathlib import Path
    from charax.data import load_series

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "two.csv"
        rows = [f"{name},{time},{time**2}" for name in "ab" for time in (0, 1, 1.5, 4, 5, 6)]
        path.write_text("\\n".join(["series,time,height", *rows]))
        data = load_series(str(path))
    assert data.columns.values == ("height",) and data.test.t.tolist() == [6.0, 6.0]
    ```
    """
    if name == PAPER_SERIES:
        return _paper_series(SeriesColumns(series, time, ("u",)), seed, points)
    path = find_path(name, (PAPER_SERIES,))
    table = read_table(path, TableRequest(labels=(series,), expected=(series, time)))
    values = tuple(column for column in table.names if column not in (series, time, *context))
    columns = SeriesColumns(series, time, values, tuple(context))
    groups = _group_rows(table, columns, hint=": give --context the names of some of these")
    times = _read_times(table, time)
    numbers = np.column_stack([times.values, column_numbers(table, (*values, *context))])
    splits: list[list[Observations]] = [[], [], []]
    for index, (label, rows) in enumerate(groups.items()):
        if len(rows) < _MIN_ROWS:
            raise DataError(
                f"{table.row(int(rows[-1]))}: series {label!r} has {len(rows)} rows; at least {_MIN_ROWS} "
                "are needed, to start from, to train, to validate and to test: add some, or remove the series"
            )
        _check_order(table, times, rows, label)
        later = rows[1:]
        test_rows = max(1, len(later) // 5)
        held_out = test_rows + max(1, test_rows // 2)
        observed = _observe(numbers, len(values), int(rows[0]), later, index)
        cuts = np.split(np.arange(len(later)), [len(later) - held_out, len(later) - test_rows])
        for split, cut in zip(splits, cuts, strict=True):
            split.append(observed.take(cut))
    origins = tuple(float(numbers[rows[0], 0]) for rows in groups.values())
    train, validation, test = map(_concatenate, splits)
    return SeriesData(path.stem, train, validation, test, columns, tuple(groups), origins, times.kind)


def read_forecast_times(
    path: Path | str, columns: SeriesColumns, *, time_kind: TimeKind | None = None
) -> ForecastRequest:
    """Read the times to forecast from a file like the one that was learned from.

    The first row of each series has its initial value; in the other rows the columns of values may be empty.

    Args:
        path: A table or an `.npz`.
        columns: The names of its columns, `SeriesData.columns` of the training data.
        time_kind: `SeriesData.time_kind` of the training data; None to accept both kinds of times.

    Returns:
        What to forecast.

    Raises:
        DataError: If the file cannot be read, lacks a column or an initial value, has another kind of times, or is not
            in order.

    ```python
    import tempfile
    from pathlib import Path
    from charax.data import load_series, read_forecast_times

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "new.csv"
        path.write_text("series,time,u\\na,0,0.67\\na,1.5,\\n")
        request = read_forecast_times(path, load_series("paper").columns)
    assert request.times == ["0", "1.5"]
    ```
    """
    expected = (columns.series, columns.time)
    table = read_table(find_path(path), TableRequest(labels=(columns.series,), expected=expected))
    groups = _group_rows(table, columns, hint=": the training data have it; add it")
    firsts = np.sort([rows[0] for rows in groups.values()])
    clock = _read_times(table, columns.time)
    check_time_kind(table.path, clock.kind, time_kind)
    context = column_numbers(table, columns.context)
    values = np.zeros((len(table), len(columns.values)))
    values[firsts] = column_numbers(table[firsts], columns.values)
    numbers = np.column_stack([clock.values, values, context])
    observed, names, times = [], [], []
    for index, (label, rows) in enumerate(groups.items()):
        _check_order(table, clock, rows, label)
        observed.append(_observe(numbers, len(columns.values), int(rows[0]), rows, index))
        names += [label] * len(rows)
        times += [clock.spell(int(row)) for row in rows]
    return ForecastRequest(_concatenate(observed), names, times)


def _paper_series(columns: SeriesColumns, seed: int, points: int) -> SeriesData:
    seen = sample_paper_series(points, (0.0, 1.0), seed=[seed, 0], noise=0.1)
    test = sample_paper_series(2000, (0.0, 1.0), seed=[seed, 1])
    cut, rows = points // 5, np.arange(points)
    return SeriesData(
        PAPER_SERIES, seen.take(rows[cut:]), seen.take(rows[:cut]), test, columns, (PAPER_SERIES,), (0.0,)
    )


def _group_rows(table: Table, columns: SeriesColumns, hint: str) -> dict[str, Int[np.ndarray, "_"]]:
    """The rows of each series, in the order of the file."""
    require_series_columns(table, columns.series, columns.time)
    require_columns(table, (*columns.values, *columns.context), hint)
    if not columns.values:
        raise DataError(f"{table.path} has no column of values besides {', '.join(table.names)}: add one")
    labels = column_labels(table, columns.series)
    order = np.argsort(labels.values, kind="stable")
    groups = np.split(order, np.flatnonzero(np.diff(labels.values[order])) + 1)
    return {labels.categories[labels.values[rows[0]]]: rows for rows in sorted(groups, key=lambda rows: rows[0])}


def _read_times(table: Table, name: str) -> Times:
    times = read_times(table, name)
    empty = np.isnan(times.values)
    if empty.any():
        refuse_cells(table, name, empty, "a finite number or a date")
    return times


def _check_order(table: Table, times: Times, rows: Int[np.ndarray, "n"], label: str) -> None:
    steps = np.diff(times.values[rows])
    if (steps > 0).all():
        return
    first = int(np.argmax(steps <= 0))
    before, after = (times.spell(int(row)) for row in rows[first : first + 2])
    what = "repeats the time" if steps[first] == 0 else "goes back in time from"
    raise DataError(
        f"{table.row(int(rows[first + 1]))}: series {label!r} {what} {before}"
        + ("" if steps[first] == 0 else f" to {after}")
        + ": sort the rows of each series by time and keep one row per time"
    )


def _observe(numbers: np.ndarray, values: int, first: int, rows: Int[np.ndarray, "n"], index: int) -> Observations:
    """The rows of one series, from columns of the time, the values and the context."""
    chosen = numbers[rows]
    at_start = np.broadcast_to(numbers[first], chosen.shape)
    single = lambda part: part.astype(np.float32)
    return Observations(
        start=single(at_start[:, 1 : 1 + values]),
        t=single(chosen[:, 0] - numbers[first, 0]),
        context=single(at_start[:, 1 + values :]),
        value=single(chosen[:, 1 : 1 + values]),
        series=np.full(len(chosen), index, np.int32),
    )


def _concatenate(parts: Sequence[Observations]) -> Observations:
    return Observations(*map(np.concatenate, zip(*parts, strict=True)))
