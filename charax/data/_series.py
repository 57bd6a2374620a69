"""Time series: rows of (series, time, values), at times that need not be regular."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
from jaxtyping import Float32, Int32

from charax.data._columns import open_table
from charax.data._errors import DataError
from charax.data._tables import Table, table_numbers


class Observations(NamedTuple):
    """Values of some series at some times since the start of each, where it had its starting value."""

    start: Float32[np.ndarray, "n values"]
    t: Float32[np.ndarray, "n"]
    context: Float32[np.ndarray, "n known"]
    value: Float32[np.ndarray, "n values"]
    series: Int32[np.ndarray, "n"]
    """The number of the series, in the order of the file."""

    def take(self, rows: np.ndarray) -> "Observations":
        """Some of them."""
        return Observations(*(part[rows] for part in self))


class SeriesColumns(NamedTuple):
    """How the columns of a file of series are called."""

    series: str
    time: str
    values: tuple[str, ...]
    context: tuple[str, ...] = ()


@dataclass(frozen=True)
class SeriesData:
    """Three parts of the observations of some series: of each, the last ones are the test part."""

    name: str
    train: Observations
    validation: Observations
    test: Observations
    columns: SeriesColumns
    names: tuple[str, ...]
    origins: tuple[float, ...]
    """The time at which each series starts."""


HIDDEN = "paper"
"""The paper's series, as data."""


def sample_hidden(
    points: int, between: tuple[float, float], *, seed: Sequence[int], noise: float = 0.0
) -> Observations:
    """The paper's series: u(x, t) at random times and hidden places x in [1, 2], from u(1, 0).

    ```python
    from charax.data import sample_hidden

    later = sample_hidden(100, (2.0, 3.0), seed=[0])
    assert later.t.min() >= 2 and abs(later.start - 2 / 3).max() < 1e-6
    ```
    """
    random = np.random.default_rng(seed)
    t, x = random.uniform(*between, points), random.uniform(1, 2, points)
    u = 2 * x * np.exp(t) / (2 * np.exp(t) + 1) + noise * random.normal(size=points)
    single = lambda values: values.astype(np.float32)[:, None]
    start = single(np.full(points, 2 / 3))
    nothing = np.zeros((points, 0), np.float32)
    return Observations(start, t.astype(np.float32), nothing, single(u), np.zeros(points, np.int32))


def load_series(
    name: str,
    *,
    series: str = "series",
    time: str = "time",
    context: Sequence[str] = (),
    seed: int = 0,
    points: int = 200,
) -> SeriesData:
    """The paper's series, by the name "paper", or those of a `.csv`, `.parquet` or `.npz` file.

    A file has a column that names the series, one of times, columns of values, and perhaps `context`: columns that are
    known beforehand and stay the same along a series. The first row of a series is its starting value; of the rest
    the last fifth is the test part, and what comes before that, half as long, chooses the weights.

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
    if name == HIDDEN:
        seen = sample_hidden(points, (0.0, 1.0), seed=[seed, 0], noise=0.1)
        test = sample_hidden(2000, (0.0, 1.0), seed=[seed, 1])
        cut, rows = points // 5, np.arange(points)
        columns = SeriesColumns(series, time, ("u",))
        return SeriesData(name, seen.take(rows[cut:]), seen.take(rows[:cut]), test, columns, ("paper",), (0.0,))
    if not Path(name).expanduser().exists():
        raise DataError(f"{name} is neither a file that exists nor {HIDDEN!r}, the paper's series")
    table = open_table(name)
    values = tuple(column for column in table.names if column not in (series, time, *context))
    columns = SeriesColumns(series, time, values, tuple(context))
    _check_columns(table, columns)
    groups = _group(table, columns)
    numbers = table_numbers(table, (time, *values, *context))
    parts: list[list[Observations]] = [[], [], []]
    for index, (label, rows) in enumerate(groups.items()):
        if len(rows) < 4:
            raise DataError(
                f"{table.path}, row {table.numbers[rows[-1]]}: series {label!r} has {len(rows)} rows; at least 4 are "
                "needed, to start from, to learn from, to choose by and to test"
            )
        _check_order(table, numbers[rows, 0], rows, label)
        later = rows[1:]
        tests = max(1, len(later) // 5)
        chosen = max(1, tests // 2)
        whole = _observe(numbers, len(values), rows[0], later, index)
        cuts = np.split(np.arange(len(later)), [len(later) - tests - chosen, len(later) - tests])
        for part, cut in zip(parts, cuts, strict=True):
            part.append(whole.take(cut))
    train, validation, test = (Observations(*map(np.concatenate, zip(*part, strict=True))) for part in parts)
    origins = tuple(float(numbers[rows[0], 0]) for rows in groups.values())
    return SeriesData(Path(name).stem, train, validation, test, columns, tuple(groups), origins)


class Asked(NamedTuple):
    """What to forecast: observations whose values are not known, and how to name them."""

    observations: Observations
    names: list[str]
    times: np.ndarray


def read_asked(path: Path | str, columns: SeriesColumns) -> Asked:
    """Times to forecast from a file like the one that was learned from.

    The first row of each series has its starting value; in the other rows the columns of values may be empty.
    """
    table = open_table(path)
    _check_columns(table, columns)
    groups = _group(table, columns)
    firsts = {rows[0] for rows in groups.values()}
    known = table_numbers(table, (columns.time, *columns.context))
    whole = table_numbers(
        table._replace(
            rows=[table.rows[i] for i in sorted(firsts)], numbers=[table.numbers[i] for i in sorted(firsts)]
        ),
        columns.values,
    )
    values = np.zeros((len(table.rows), len(columns.values)))
    values[sorted(firsts)] = whole
    numbers = np.concatenate([known[:, :1], values, known[:, 1:]], axis=1)
    observed, names, times = [], [], []
    for index, (label, rows) in enumerate(groups.items()):
        _check_order(table, numbers[rows, 0], rows, label)
        observed.append(_observe(numbers, len(columns.values), rows[0], rows, index))
        names += [label] * len(rows)
        times.append(numbers[rows, 0])
    return Asked(Observations(*map(np.concatenate, zip(*observed, strict=True))), names, np.concatenate(times))


def _check_columns(table: Table, columns: SeriesColumns) -> None:
    for name in (columns.series, columns.time, *columns.values, *columns.context):
        if name not in table.names:
            raise DataError(f"{table.path} has no column {name!r}; it has {', '.join(table.names)}")
    if not columns.values:
        raise DataError(f"{table.path} has no column of values beside {', '.join(table.names)}")


def _group(table: Table, columns: SeriesColumns) -> dict[str, list[int]]:
    """The rows of each series, in the order of the file."""
    position = table.names.index(columns.series)
    groups: dict[str, list[int]] = {}
    for i, row in enumerate(table.rows):
        label = "" if row[position] is None else str(row[position]).strip()
        if not label:
            raise DataError(f"{table.path}, row {table.numbers[i]}: the column {columns.series!r} is empty")
        groups.setdefault(label, []).append(i)
    return groups


def _check_order(table: Table, times: np.ndarray, rows: list[int], label: str) -> None:
    steps = np.diff(times)
    if (steps > 0).all():
        return
    first = int(np.argmax(steps <= 0))
    what = "repeats the time" if steps[first] == 0 else "goes back in time from"
    raise DataError(
        f"{table.path}, row {table.numbers[rows[first + 1]]}: series {label!r} {what} {times[first]:g}"
        + ("" if steps[first] == 0 else f" to {times[first + 1]:g}")
        + ": sort the rows of each series by time and keep one for each"
    )


def _observe(numbers: np.ndarray, values: int, first: int, rows: Sequence[int], index: int) -> Observations:
    chosen, single = numbers[list(rows)], np.float32
    t = (chosen[:, 0] - numbers[first, 0]).astype(single)
    start = np.broadcast_to(numbers[first, 1 : 1 + values], (len(chosen), values)).astype(single)
    # Context is what is known at the start.
    context = np.broadcast_to(numbers[first, 1 + values :], (len(chosen), numbers.shape[1] - 1 - values)).astype(single)
    return Observations(
        start, t, context, chosen[:, 1 : 1 + values].astype(single), np.full(len(chosen), index, np.int32)
    )
