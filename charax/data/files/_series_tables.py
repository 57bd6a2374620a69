"""Series in long tables: a row per series and time, a column per channel."""

from collections.abc import Callable
from pathlib import Path

import numpy as np

from charax.data._errors import DataError
from charax.data.files._columns import column_labels, refuse_cells, require_columns, require_series_columns
from charax.data.files._numbers import wrong_numbers
from charax.data.files._series import RawSeries, SeriesRequest
from charax.data.files._table import Table, TableRequest
from charax.data.files._times import read_times


def read_long_table(read: Callable[[Path, TableRequest], Table], path: Path, request: SeriesRequest) -> RawSeries:
    """Group the rows of a table by series. An empty cell of a channel is a missing value."""
    labels = (request.series,) if request.target is None else (request.series, request.target)
    required = (request.series, request.time, *(() if request.target is None else (request.target,)))
    expected = (*required, *request.channels)
    table = read(path, TableRequest(request.separator, labels=labels, expected=expected))
    require_series_columns(table, request.series, request.time)
    if request.target is not None:
        hint = ": every row needs the target of its series; add it, or name its column in training (--target)"
        require_columns(table, (request.target,), hint=hint)
    require_columns(table, request.channels, hint=": the training data have it; add it, with empty cells if missing")
    channels = request.channels or tuple(name for name in table.names if name not in required)
    if not channels:
        raise DataError(f"{path} has no columns of channels besides {', '.join(table.names)}: add one")
    clock = read_times(table, request.time)
    values = np.stack([_numbers(table, name) for name in channels], axis=1)
    series = column_labels(table, request.series)
    order = np.argsort(series.values, kind="stable")
    groups = np.split(order, np.flatnonzero(np.diff(series.values[order])) + 1)
    groups.sort(key=lambda rows: int(rows[0]))
    return RawSeries(
        path,
        names=[series.categories[series.values[rows[0]]] for rows in groups],
        times=[clock.values[rows] for rows in groups],
        values=[values[rows] for rows in groups],
        channels=channels,
        labels=None if request.target is None else _labels(table, request.target, groups),
        where=lambda i, row: table.row(int(groups[i][row])),
        time_kind=clock.kind,
        spell=lambda i, row: clock.spell(int(groups[i][row])),
    ).check()


def _numbers(table: Table, name: str) -> np.ndarray:
    """A column of numbers, with NaN where a cell is empty."""
    column, expected = table.column(name), "a finite number or an empty cell"
    if column.kind == "date":
        refuse_cells(table, name, ~column.missing, expected)
    if column.kind == "text":
        wrong = np.asarray([*wrong_numbers(column.categories), False])[column.values]
        if wrong.any():
            refuse_cells(table, name, wrong, expected)
        return np.full(len(table), np.nan)
    numbers = column.values.astype(np.float64)
    if np.isinf(numbers).any():
        refuse_cells(table, name, np.isinf(numbers), expected)
    return numbers


def _labels(table: Table, target: str, groups: list[np.ndarray]) -> list[str]:
    column = column_labels(table, target)
    for rows in groups:
        other = column.values[rows] != column.values[rows[0]]
        if other.any():
            row = int(rows[np.argmax(other)])
            raise DataError(
                f"{table.row(row)}: the target {target!r} changes within a series, from {column.cell(int(rows[0]))} to "
                f"{column.cell(row)}: give every series one value"
            )
    return [column.categories[column.values[rows[0]]] for rows in groups]
