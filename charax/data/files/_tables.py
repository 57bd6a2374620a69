"""Tables: `.csv` files with a first line of column names, and `.parquet` files."""

import csv
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

from charax.data._errors import DataError
from charax.data._raw import RawDataset, RawSplit, index_classes
from charax.data.files._columns import as_number, column_labels, column_numbers, require_columns
from charax.data.files._kind import FileKind, InputSpec, NamedInputs, Table, UnlabelledInputs, has_suffix

_TARGET = "target"
"""The column of the classes, unless another one is named."""


def _read_csv(path: Path) -> Table:
    rows, numbers = [], []
    try:
        # `utf-8-sig` also reads the byte order mark that spreadsheets write.
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
    if names and all(as_number(name) is not None for name in names):
        raise DataError(f"{path}, row 1: there are numbers instead of column names: add a first line of column names")
    return _checked(Table(path, names, rows, numbers))


def _read_parquet(path: Path) -> Table:
    try:
        # An optional dependency, so the import is one that type checkers do not follow.
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
    return _checked(Table(path, names, rows, range(1, len(rows) + 1)))


def _checked(table: Table) -> Table:
    if not table.rows:
        raise DataError(f"{table.path} has no rows of data")
    repeated = [name for i, name in enumerate(table.names) if name in table.names[:i]]
    if repeated:
        raise DataError(f"{table.path} has two columns named {repeated[0]!r}: rename one")
    return table


def _labelled(table: Table, target: str | None) -> RawDataset:
    target = _TARGET if target is None else target
    require_columns(table, (target,), hint=": name the column of the classes as the target")
    columns = tuple(name for name in table.names if name != target)
    if not columns:
        raise DataError(f"{table.path} has only the target column {target!r}: add columns of numbers to learn from")
    targets, classes = index_classes(column_labels(table, target))
    return RawDataset(table.path, RawSplit(column_numbers(table, columns), targets), classes, columns=columns)


def _unlabelled(table: Table) -> UnlabelledInputs:
    columns = tuple(name for name in table.names if name != _TARGET)
    if not columns:
        raise DataError(f"{table.path} has no column but {_TARGET!r}: add columns of numbers to learn from")
    return UnlabelledInputs(column_numbers(table, columns), columns)


def _inputs(table: Table, spec: InputSpec) -> NamedInputs:
    if len(spec.shape) != 1:
        raise DataError(
            f"{table.path} is a table, but the model reads inputs of shape {spec.shape}: give an image or an .npz"
        )
    require_columns(table, spec.columns, hint=": add it, the model was trained with it")
    columns = spec.columns or tuple(table.names)
    if len(columns) != spec.shape[0]:
        raise DataError(f"{table.path} has {len(columns)} columns where the model reads {spec.shape[0]}")
    return NamedInputs(column_numbers(table, columns), [str(number) for number in table.numbers])


def _kind(suffix: str, read: Callable[[Path], Table]) -> FileKind:
    return FileKind(
        name=suffix,
        matches=has_suffix(suffix),
        read_labelled=lambda path, target: _labelled(read(path), target),
        read_unlabelled=lambda path: _unlabelled(read(path)),
        read_inputs=lambda path, spec: _inputs(read(path), spec),
        read_table=read,
    )


CSV = _kind(".csv", _read_csv)
PARQUET = _kind(".parquet", _read_parquet)
