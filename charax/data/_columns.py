"""Named columns of numbers from a table or an archive, with a name for every row that an error can tell."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from jaxtyping import Float64

from charax.data._arrays import read_npz
from charax.data._errors import DataError
from charax.data._tables import Table, read_table, table_numbers


def open_table(path: Path | str) -> Table:
    """A `.csv`, `.parquet` or `.npz` as a table. Of an archive, `x` with d columns becomes x1 … xd."""
    path = Path(path).expanduser()
    if not path.exists():
        raise DataError(f"{path} does not exist")
    match path.suffix.lower():
        case ".csv" | ".parquet":
            return read_table(path)
        case ".npz":
            return _tabulate(path)
    raise DataError(f"{path} is not a kind of file that can be read: give .csv, .parquet or .npz")


def _tabulate(path: Path) -> Table:
    columns: dict[str, np.ndarray] = {}
    for name, array in read_npz(path).items():
        if array.ndim == 1:
            columns[name] = array
        elif array.ndim == 2:
            single = array.shape[1] == 1
            columns |= {name if single else f"{name}{i + 1}": array[:, i] for i in range(array.shape[1])}
        else:
            raise DataError(f"{path} has {name} of shape {array.shape}: give one number, or one row, for every sample")
    lengths = {name: len(column) for name, column in columns.items()}
    if len(set(lengths.values())) != 1 or 0 in lengths.values():
        raise DataError(f"{path} has arrays of different lengths, or empty ones: {lengths}")
    rows = list(zip(*(column.tolist() for column in columns.values()), strict=True))
    return Table(path, list(columns), rows, range(len(rows)))


class Columns(NamedTuple):
    """Some columns of a table: finite numbers in every row."""

    path: Path
    names: tuple[str, ...]
    values: Float64[np.ndarray, "rows columns"]
    numbers: Sequence[int]

    def pick(self, names: Sequence[str]) -> Float64[np.ndarray, "rows picked"]:
        """Some of the columns, in this order."""
        return self.values[:, [self.names.index(name) for name in names]]

    def row(self, wrong: np.ndarray) -> str:
        """The first row that is wrong, for an error to begin with."""
        return f"{self.path}, row {self.numbers[int(np.argmax(wrong))]}"


def read_columns(table: Table, names: Sequence[str]) -> Columns:
    """Columns that must be there."""
    missing = [name for name in names if name not in table.names]
    if missing:
        raise DataError(f"{table.path} has no column {missing[0]!r}; it has {', '.join(table.names)}")
    return Columns(table.path, tuple(names), table_numbers(table, names), table.numbers)


def numbered(table: Table, letter: str) -> tuple[str, ...]:
    """The columns `x`, or `x1`, `x2` … without gaps."""
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
