"""Parquet tables."""

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from charax.data._errors import DataError
from charax.data._limits import LIMITS, check_limit
from charax.data.files._frames import is_column, make_table
from charax.data.files._parquet_pages import check_pages
from charax.data.files._stored_table import StoredTable
from charax.data.files._table import Table, TableRequest


def read_parquet(path: Path, request: TableRequest) -> Table:
    """Read a Parquet file; its records are numbered from 1."""
    with _explaining(path) as parquet:
        with parquet.ParquetFile(path) as file:
            _check_size(path, file.metadata)
            check_pages(path, file.metadata, range(file.metadata.num_row_groups))
            schema = file.schema_arrow
        frame, names = _read_frame(parquet, path, schema, lambda file: file.read())
    return make_table(path, frame, names, lambda: range(1, len(frame) + 1), request)


def store_parquet(path: Path) -> StoredTable | None:
    """A Parquet file that stays on disk; None if it fits into memory."""
    with _explaining(path) as parquet, parquet.ParquetFile(path) as file:
        metadata, schema = file.metadata, file.schema_arrow
        cells = metadata.num_rows * metadata.num_columns
        if cells <= min(LIMITS["cells"].value, LIMITS["memory"].value // 8):
            return None
        check_limit("lines", metadata.num_rows, path)
        check_limit("columns", metadata.num_columns, path)
        groups = [metadata.row_group(i) for i in range(metadata.num_row_groups)]
        for group in groups:
            check_limit("bytes", group.total_byte_size, f"{path}: a group of rows", "unpacks to")
            check_limit("cells", group.num_rows * metadata.num_columns, f"{path}: a group of rows")
        for field in schema:
            _check_type(path, field)
        sizes = np.asarray([group.num_rows for group in groups if group.num_rows], np.int64)
        if len(sizes) != len(groups) or (sizes < 0).any() or sizes.sum() != metadata.num_rows:
            raise ValueError("its groups of rows are empty, or do not have as many rows as the file")
    names = tuple(name for name in schema.names if is_column(name))
    return StoredTable(path, names, sizes, np.arange(metadata.num_rows), read_groups)


def read_groups(path: Path, groups: Sequence[int], columns: Sequence[str], request: TableRequest) -> Table:
    """Read some columns of some groups of rows."""
    with _explaining(path) as parquet:
        with parquet.ParquetFile(path) as file:
            sizes = [file.metadata.row_group(i).num_rows for i in range(file.metadata.num_row_groups)]
            check_pages(path, file.metadata, groups, columns)
            schema = file.schema_arrow
        read = lambda file: file.read_row_groups(list(groups), columns=list(columns))
        frame, names = _read_frame(parquet, path, schema, read)
    starts = np.cumsum(sizes) - sizes
    records = lambda: np.concatenate([np.arange(sizes[group]) + starts[group] + 1 for group in groups]).tolist()
    return replace(make_table(path, frame, names, records, request), records=np.arange(len(frame)))


@contextlib.contextmanager
def _explaining(path: Path) -> Iterator[Any]:
    """pyarrow's module, and errors that name the file."""
    try:
        # An optional dependency, so the import is one that type checkers do not follow.
        _, parquet = import_module("pyarrow"), import_module("pyarrow.parquet")
    except ImportError:
        raise DataError(f"{path} needs pyarrow to be read: pip install 'charax[parquet]'") from None
    try:
        yield parquet
    except DataError:
        raise
    except Exception as error:  # a damaged file makes the parser fail in any way it can
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise DataError(f"{path} cannot be read as a Parquet file: {reason}") from None


def _read_frame(parquet: Any, path: Path, schema: Any, read: Callable[[Any], Any]) -> tuple[Any, list[str]]:
    """A data frame, and the names of its columns."""
    for field in schema:
        _check_type(path, field)
    texts = [field.name for field in schema if str(field.type) in ("string", "large_string")]
    # A text that is repeated is stored once, and must be in memory only once, too.
    with parquet.ParquetFile(path, read_dictionary=texts) as file:
        content = _without_objects(read(file))
    names = content.column_names
    # Texts become categories: one Python string for each distinct one. Each column is freed when it is converted.
    options = {"strings_to_categorical": True, "date_as_object": False, "split_blocks": True, "self_destruct": True}
    return content.to_pandas(ignore_metadata=True, **options), names


def _without_objects(content: Any) -> Any:
    """Replace the columns of which pandas would make one Python object for each row."""
    arrow: Any = import_module("pyarrow")
    for index, field in enumerate(content.schema):
        column = content.column(index)
        if arrow.types.is_decimal(field.type):
            content = content.set_column(index, field.name, column.cast(arrow.float64()))
        elif arrow.types.is_time(field.type) or (arrow.types.is_boolean(field.type) and column.null_count):
            content = content.set_column(index, field.name, column.dictionary_encode())
    return content


def _check_size(path: Path, metadata: Any) -> None:
    check_limit("lines", metadata.num_rows, path)
    check_limit("columns", metadata.num_columns, path)
    check_limit("cells", metadata.num_rows * metadata.num_columns, path)
    groups = [metadata.row_group(i) for i in range(metadata.num_row_groups)]
    check_limit("bytes", sum(max(group.total_byte_size, 0) for group in groups), path, "unpacks to")
    if sum(group.num_rows for group in groups) != metadata.num_rows:
        raise ValueError("its groups of rows do not have as many rows as the file")


def _check_type(path: Path, field: Any) -> None:
    kind = str(field.type)
    if field.type.num_fields or kind.startswith(("list", "large_list", "fixed_size", "binary", "large_binary")):
        raise DataError(f"{path}: column {field.name!r} has lists or other objects: give one value per row")
