"""Tables: text files with separated columns, Parquet files and Excel workbooks, each with named columns."""

from collections.abc import Callable
from pathlib import Path

import numpy as np

from charax.data._encoder_fitting import check_texts
from charax.data._errors import DataError
from charax.data._raw import RawDataset, RawSplit, sort_classes
from charax.data.files._columns import column_labels, column_numbers, require_columns
from charax.data.files._kind import FileKind, InputSpec, NamedInputs, TableOptions, has_suffix
from charax.data.files._numbers import parse_numbers
from charax.data.files._series_tables import read_long_table
from charax.data.files._stored_table import StoredTable
from charax.data.files._table import Table, TableRequest

_TARGET = "target"
"""The column of the classes, unless another one is named."""
_FEW_FRACTIONS, _FEW_INTEGERS = 10, 20
"""So many distinct numbers may be classes, however few rows there are."""

Read = Callable[[Path, TableRequest], Table]
Store = Callable[[Path], StoredTable | None]


# Importing pandas takes longer than reading a small file of another kind.
def _read_delimited(path: Path, request: TableRequest) -> Table:
    from charax.data.files._delimited import read_delimited

    return read_delimited(path, request)


def _read_parquet(path: Path, request: TableRequest) -> Table:
    from charax.data.files._parquet import read_parquet

    return read_parquet(path, request)


def _store_parquet(path: Path) -> StoredTable | None:
    from charax.data.files._parquet import store_parquet

    return store_parquet(path)


def _store_nothing(path: Path) -> None:
    """Only a table in groups of rows can stay on disk."""


def _read_excel(path: Path, request: TableRequest) -> Table:
    from charax.data.files._excel import read_excel

    return read_excel(path, request)


def _read_labelled(read: Read, store: Store, path: Path, options: TableOptions) -> RawDataset:
    target = _TARGET if options.target is None else options.target
    request, stored = TableRequest(options.separator, labels=(target,), expected=(target,)), store(path)
    whole = read(path, request) if stored is None else stored
    require_columns(whole, (target,), hint=": name the column of the classes as the target")
    table = whole if isinstance(whole, Table) else whole.read_columns((target,), request)
    labels = column_labels(table, target)
    inputs = whole.without(target)
    if not inputs.names:
        raise DataError(f"{path} has only the target column {target!r}: add columns to learn from")
    if isinstance(inputs, Table):
        check_texts(inputs)
    _refuse_continuous(table, target)
    classes = sort_classes([labels.categories[code] for code in np.unique(labels.values)])
    index = {name: i for i, name in enumerate(classes)}
    targets = np.asarray([index.get(text, -1) for text in labels.categories], np.int32)[labels.values]
    return RawDataset(path, RawSplit(inputs, targets), classes)


def _refuse_continuous(table: Table, target: str) -> None:
    """Refuse a target that is measured and not one of a few classes."""
    texts = table.columns[target].as_text().categories
    numbers = parse_numbers(texts)
    if numbers is None:
        return
    whole = all(number.is_integer() for number in numbers)
    limit = max(_FEW_INTEGERS, len(table) / 10) if whole else min(_FEW_FRACTIONS, len(table) / 5)
    if len(set(numbers)) > limit:
        raise DataError(
            f"{table.path}: the target {target!r} looks numeric, with {len(set(numbers))} different values in "
            f"{len(table)} rows: use train regress; if they are classes, name them with words"
        )


def _read_unlabelled(read: Read, store: Store, path: Path, options: TableOptions) -> Table | StoredTable:
    table = (store(path) or read(path, TableRequest(options.separator))).without(_TARGET)
    if not table.names:
        raise DataError(f"{path} has no column but {_TARGET!r}: add columns of numbers to learn from")
    return table


def _read_inputs(read: Read, path: Path, spec: InputSpec) -> NamedInputs:
    if len(spec.shape) != 1:
        raise DataError(
            f"{path} is a table, but the model reads inputs of shape {spec.shape}: give an image or an .npz"
        )
    expected = spec.columns if spec.encoder is None else spec.encoder.columns
    texts = () if spec.encoder is None else spec.encoder.text_columns
    table = read(path, TableRequest(texts=texts, expected=expected))
    require_columns(table, expected, hint=": add it, the model was trained with it")
    if spec.encoder is not None:
        inputs = spec.encoder.apply(table)
    else:
        inputs = column_numbers(table, expected or tuple(table.names))
    if inputs.shape[1] != spec.shape[0]:
        raise DataError(f"{path} has {inputs.shape[1]} columns where the model reads {spec.shape[0]}")
    return NamedInputs(inputs, [str(number) for number in table.numbers])


def _kind(name: str, read: Read, *suffixes: str, store: Store = _store_nothing) -> FileKind:
    return FileKind(
        name=name,
        matches=has_suffix(*suffixes),
        read_labelled=lambda path, options: _read_labelled(read, store, path, options),
        read_unlabelled=lambda path, options: _read_unlabelled(read, store, path, options),
        read_inputs=lambda path, spec: _read_inputs(read, path, spec),
        read_table=read,
        store_table=store,
        read_series=lambda path, request: read_long_table(read, path, request),
    )


_TEXT = (".csv", ".tsv", ".txt")
DELIMITED = _kind(".csv, .tsv, .txt", _read_delimited, *_TEXT, *(f"{suffix}.gz" for suffix in _TEXT))
PARQUET = _kind(".parquet", _read_parquet, ".parquet", store=_store_parquet)
EXCEL = _kind(".xlsx", _read_excel, ".xlsx", ".xlsm")
