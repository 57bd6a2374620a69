"""Columns of a table: finite numbers or labels in every row, with errors that name the row."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

import numpy as np
from jaxtyping import Bool, Float64

from charax.data._dates import AmbiguousDateError, find_date_format
from charax.data._errors import DataError
from charax.data.files._numbers import wrong_numbers
from charax.data.files._table import Column, Table

CORRECT = "correct it, or remove such rows"
"""What to do about a cell that is not what is expected."""
_FILL = "fill it, or remove such rows"
"""What to do about an empty one."""


class Columns(NamedTuple):
    """Some columns of a file, with a finite number in every row.

    ```python
    import tempfile
    from pathlib import Path
    from charax.data import read_points

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "points.csv"
        path.write_text("t,x\\n0.5,1\\n")
        columns = read_points(path, ("x",))
    assert columns.names == ("x", "t") and columns.select(("t",)).tolist() == [[0.5]]
    ```
    """

    path: Path
    """The file."""
    names: tuple[str, ...]
    """The names of the columns."""
    values: Float64[np.ndarray, "rows columns"]
    """The numbers."""
    numbers: Sequence[int]
    """The number of each row in the file."""

    def select(self, names: Sequence[str]) -> Float64[np.ndarray, "rows selected"]:
        """Select columns.

        Args:
            names: Their names.

        Returns:
            The numbers, with the columns in this order.
        """
        return self.values[:, [self.names.index(name) for name in names]]

    def row(self, wrong: np.ndarray) -> str:
        """Name the first row that is wrong, as errors begin.

        Args:
            wrong: A mask of the rows.

        Returns:
            The file and the row.
        """
        return f"{self.path}, row {self.numbers[int(np.argmax(wrong))]}"


def read_columns(table: Table, names: Sequence[str]) -> Columns:
    """Select columns, which must exist and hold a finite number in every row."""
    require_columns(table, names)
    return Columns(table.path, tuple(names), column_numbers(table, names), table.numbers)


def numbered_columns(table: Table, letter: str) -> tuple[str, ...]:
    """Find the column `x`, or the columns `x1`, `x2` … without gaps."""
    if letter in table.names:
        return (letter,)
    found = []
    while f"{letter}{len(found) + 1}" in table.names:
        found.append(f"{letter}{len(found) + 1}")
    if not found:
        raise DataError(
            f"{table.path} has no column {letter!r} and no {letter}1, {letter}2 …; it has {', '.join(table.names)}"
        )
    return tuple(found)


def require_columns(table: Any, names: Sequence[str], hint: str = "") -> None:
    """Check that a table, in memory or on disk, has some columns; `hint` is added to the error."""
    missing = [name for name in names if name not in table.names]
    if missing:
        raise DataError(f"{table.path} has no column {missing[0]!r}; it has {', '.join(table.names)}{hint}")


def require_series_columns(table: Any, series: str, time: str) -> None:
    """Check that a long table has the columns that tell which series and which time a row belongs to."""
    hint = ": every row needs its series and its time; add them, or name their columns in training (--series, --time)"
    require_columns(table, (series, time), hint=hint)


def column_numbers(table: Table, names: Sequence[str], *, fix: str = CORRECT) -> Float64[np.ndarray, "rows columns"]:
    """Convert columns to numbers, which must be finite in every row; `fix` is what to do about one that is not."""
    out = np.empty((len(table), len(names)))
    for j, name in enumerate(names):
        column = table.column(name)
        check_numbers(table, name, column, fix=fix)
        out[:, j] = column.values
        wrong = ~np.isfinite(out[:, j])
        if wrong.any():
            refuse_cells(table, name, wrong, "a finite number", fix=fix)
    return out


def column_labels(table: Table, name: str) -> Column:
    """Convert a column to texts, which must not be missing in any row."""
    column = table.column(name).as_text()
    if column.missing.any():
        row = table.row(int(np.argmax(column.missing)))
        raise DataError(f"{row}: column {name!r} is empty: fill it in, or remove the row")
    return column


def find_column_dates(table: Table, name: str, texts: Sequence[str]) -> str | None:
    """Find the format in which all texts of a column are dates; None if they are not dates."""
    try:
        return find_date_format(texts)
    except AmbiguousDateError as error:
        column = table.column(name)
        row = int(np.argmax(column.values == column.categories.index(error.args[0])))
        raise DataError(
            f"{table.row(row)}: column {name!r} has the date {error.args[0]!r}, with the day or the month first: "
            "write its dates as year-month-day"
        ) from None


def check_numbers(table: Table, name: str, column: Column, *, fix: str = CORRECT) -> None:
    """Refuse a column of dates or texts, by the first cell because of which it is one."""
    if column.kind == "date":
        refuse_cells(table, name, ~column.missing, "a finite number", fix=fix)
    if column.kind == "text":
        wrong = np.asarray([*wrong_numbers(column.categories), True])[column.values]
        refuse_cells(table, name, wrong, "a finite number", fix=fix)


def refuse_cells(
    table: Table, name: str, wrong: Bool[np.ndarray, "rows"], expected: str, *, fix: str = CORRECT
) -> NoReturn:
    """Raise the error about cells that are not what is expected. It names the first of them in the file."""
    rows = np.flatnonzero(wrong)
    row, column = int(rows[np.argmin(table.records[rows])]), table.column(name)
    what = _FILL if column.missing[row] else fix
    raise DataError(f"{table.row(row)}: column {name!r} has {column.cell(row)}, not {expected}: {what}")
