"""A table in memory: named columns of numbers, booleans, dates or texts, and where each row is in its file."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np
from jaxtyping import Int, Int64, Shaped

ColumnKind = Literal["number", "boolean", "date", "text"]
"""What the cells of a column are."""


class Column(NamedTuple):
    """A column without Python objects in it: one array, and for texts the distinct ones."""

    kind: ColumnKind
    values: Shaped[np.ndarray, "rows"]
    """Numbers, with NaN for a missing one; booleans as 0 and 1; dates as days since 1970; texts as indices into
    `categories`, with -1 for a missing one."""
    categories: tuple[str, ...] = ()
    """The distinct texts, in the order in which they appear."""

    @property
    def missing(self) -> Shaped[np.ndarray, "rows"]:
        """A mask of the missing cells."""
        if self.kind == "text":
            return self.values < 0
        return np.isnan(self.values) if self.values.dtype.kind == "f" else np.zeros(len(self.values), bool)

    def cell(self, row: int) -> str:
        """Name a cell, as errors do."""
        if self.missing[row]:
            return "nothing"
        value = self.values[row]
        if self.kind == "text":
            return repr(self.categories[value])
        return repr(str(day_to_text(value)) if self.kind == "date" else str(value))

    def as_text(self) -> "Column":
        """Spell the values as texts."""
        if self.kind == "text":
            return self
        if self.kind == "boolean":
            codes = np.where(self.missing, -1, np.nan_to_num(self.values.astype(float)))
            return Column("text", codes.astype(np.int64), ("False", "True"))
        distinct, codes = np.unique(self.values, return_inverse=True)
        spell = day_to_text if self.kind == "date" else str
        texts = tuple(spell(value) for value in distinct.tolist())
        return Column("text", np.where(self.missing, -1, codes), texts)


@dataclass(frozen=True)
class Table:
    """Columns of a file, or some rows of them. Selecting rows copies nothing but their indices."""

    path: Path
    """The file."""
    columns: dict[str, Column]
    """The columns by name, each with all records of the file."""
    records: Int64[np.ndarray, "rows"]
    """Which records of the file the rows are."""
    locate: Callable[[], Sequence[int]]
    """Find the number of each record, for errors and for the names of predictions: the line of a text file, the row of
    a sheet, the record (from 1) of a Parquet, the index of arrays. It may have to read the file again."""
    unnamed: int = 0
    """The number of columns without a name, which are left out."""

    @property
    def names(self) -> list[str]:
        """The names of the columns."""
        return list(self.columns)

    @property
    def numbers(self) -> list[int]:
        """The number of each row in the file."""
        return np.asarray(self.locate())[self.records].tolist()

    def __len__(self) -> int:
        return len(self.records)

    def __getitem__(self, rows: Int[np.ndarray, "chosen"]) -> "Table":
        return replace(self, records=self.records[rows])

    def column(self, name: str) -> Column:
        """Select the cells of a column in these rows."""
        column = self.columns[name]
        return column._replace(values=column.values[self.records])

    def without(self, name: str) -> "Table":
        """Leave out a column, if it is there."""
        return replace(self, columns={each: column for each, column in self.columns.items() if each != name})

    def row(self, index: int) -> str:
        """Name a row, as errors begin."""
        return f"{self.path}, row {self.locate()[int(self.records[index])]}"


class TableRequest(NamedTuple):
    """How to read a table."""

    separator: str | None = None
    """The separator of a text file; found out if left out."""
    labels: tuple[str, ...] = ()
    """Columns of names, which are texts even if they look like numbers, and of which only an empty cell is missing."""
    texts: tuple[str, ...] = ()
    """Columns that are texts even if they look like numbers."""
    expected: tuple[str, ...] = ()
    """Columns that the table should have: a hint for finding the separator."""


def day_to_text(day: float) -> str:
    """Spell a date that is given in days since 1970."""
    return str((np.datetime64("1970-01-01", "us") + np.timedelta64(round(day * 86_400e6), "us")).item())
