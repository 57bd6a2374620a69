"""Columns of a table: finite numbers or labels in every row, with errors that name the row."""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from jaxtyping import Float64

from charax.data._errors import DataError
from charax.data.files._kind import Table


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


def require_columns(table: Table, names: Sequence[str], hint: str = "") -> None:
    """Check that a table has some columns; `hint` is added to the error."""
    missing = [name for name in names if name not in table.names]
    if missing:
        raise DataError(f"{table.path} has no column {missing[0]!r}; it has {', '.join(table.names)}{hint}")


def column_numbers(table: Table, names: Sequence[str]) -> Float64[np.ndarray, "rows columns"]:
    """Convert columns to numbers, which must be finite in every row."""
    positions = [table.names.index(name) for name in names]
    out = np.empty((len(table.rows), len(names)))
    for i, (number, row) in enumerate(zip(table.numbers, table.rows, strict=True)):
        for j, position in enumerate(positions):
            value = as_number(row[position])
            if value is None:
                cell = row[position]
                found = "nothing" if cell is None or not str(cell).strip() else repr(str(cell))
                raise DataError(f"{table.path}, row {number}: column {names[j]!r} has {found}, not a finite number")
            out[i, j] = value
    return out


def column_labels(table: Table, name: str) -> list[str]:
    """Convert a column to labels, which must not be empty in any row."""
    position = table.names.index(name)
    labels = []
    for number, row in zip(table.numbers, table.rows, strict=True):
        label = "" if row[position] is None else str(row[position]).strip()
        if not label:
            raise DataError(f"{table.path}, row {number}: column {name!r} is empty")
        labels.append(label)
    return labels


def as_number(cell: object) -> float | None:
    """Convert a cell to a finite number, or to None if it is not one."""
    try:
        value = float(cell)  # pyright: ignore[reportArgumentType]  # what is no number raises
    except (TypeError, ValueError, OverflowError):
        return None
    return value if math.isfinite(value) else None
