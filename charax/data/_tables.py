"""Tables: CSV and Parquet files of numbers, with a column of classes."""

import csv
import math
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

import numpy as np
from jaxtyping import Float64

from charax.data._dataset import Labelled, Raw, index_classes
from charax.data._errors import DataError


class Table(NamedTuple):
    """Cells as the file has them, and the number of each row: the line in a CSV, the record (from 1) in a Parquet."""

    path: Path
    names: list[str]
    rows: Sequence[Sequence[object]]
    numbers: Sequence[int]


def read_labelled_table(path: Path, target: str | None) -> Raw:
    """The numbers of every column but the target, and the target as classes."""
    table = read_table(path)
    target = "target" if target is None else target
    if target not in table.names:
        raise DataError(f"{path} has no column {target!r}: name the target column, one of {', '.join(table.names)}")
    columns = tuple(name for name in table.names if name != target)
    if not columns:
        raise DataError(f"{path} has only the target column {target!r}: add columns of numbers to learn from")
    position = table.names.index(target)
    labels = []
    for number, row in zip(table.numbers, table.rows, strict=True):
        label = "" if row[position] is None else str(row[position]).strip()
        if not label:
            raise DataError(f"{path}, row {number}: the target column {target!r} is empty")
        labels.append(label)
    targets, classes = index_classes(labels)
    return Raw(path, Labelled(table_numbers(table, columns), targets), classes, columns=columns)


def read_table(path: Path) -> Table:
    """A `.csv` with a first line of column names, or a `.parquet`."""
    table = _read_parquet(path) if path.suffix.lower() == ".parquet" else _read_csv(path)
    if not table.rows:
        raise DataError(f"{path} has no rows of data")
    repeated = [name for i, name in enumerate(table.names) if name in table.names[:i]]
    if repeated:
        raise DataError(f"{path} has two columns named {repeated[0]!r}: rename one")
    return table


def table_numbers(table: Table, columns: Sequence[str]) -> Float64[np.ndarray, "rows columns"]:
    """The named columns, which must hold a finite number in every row."""
    positions = [table.names.index(name) for name in columns]
    out = np.empty((len(table.rows), len(columns)))
    for i, (number, row) in enumerate(zip(table.numbers, table.rows, strict=True)):
        for j, position in enumerate(positions):
            value = _as_number(row[position])
            if value is None:
                cell = row[position]
                found = "nothing" if cell is None or not str(cell).strip() else repr(str(cell))
                raise DataError(
                    f"{table.path}, row {number}: column {columns[j]!r} has {found} where a finite number belongs"
                )
            out[i, j] = value
    return out


def _as_number(cell: object) -> float | None:
    try:
        value = float(cell)  # pyright: ignore[reportArgumentType]  # what is no number raises
    except (TypeError, ValueError, OverflowError):
        return None
    return value if math.isfinite(value) else None


def _read_csv(path: Path) -> Table:
    rows, numbers = [], []
    try:
        # `utf-8-sig` also reads what spreadsheets write, with a mark at the start.
        with path.open(encoding="utf-8-sig", newline="") as file:
            reader = csv.reader(file, strict=True)
            names = [name.strip() for name in next(reader, [])]
            for row in reader:
                if not row:
                    continue
                if len(row) != len(names):
                    raise DataError(
                        f"{path}, row {reader.line_num}: {len(row)} cells where there are {len(names)} columns"
                    )
                rows.append(row)
                numbers.append(reader.line_num)
    except UnicodeDecodeError as error:
        raise DataError(f"{path} is not text in UTF-8 ({error.reason}): save it as a UTF-8 CSV") from None
    except (csv.Error, OSError) as error:
        raise DataError(f"{path} cannot be read as a CSV after row {numbers[-1] if numbers else 1}: {error}") from None
    if names and all(_as_number(name) is not None for name in names):
        raise DataError(f"{path}, row 1: there are numbers where the names of the columns belong; add a line of names")
    return Table(path, names, rows, numbers)


def _read_parquet(path: Path) -> Table:
    try:
        # An extra that need not be there, so the import is one that type checkers do not follow.
        arrow, parquet = import_module("pyarrow"), import_module("pyarrow.parquet")
    except ImportError:
        raise DataError(f"{path} needs pyarrow to be read: pip install 'charax[parquet]'") from None
    try:
        content = parquet.ParquetFile(path).read()
        names, columns = content.column_names, [column.to_pylist() for column in content.columns]
    except (arrow.ArrowException, OSError, ValueError) as error:
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise DataError(f"{path} cannot be read as a Parquet file: {reason}") from None
    rows = list(zip(*columns, strict=True))
    return Table(path, names, rows, range(1, len(rows) + 1))
