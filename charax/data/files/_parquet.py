"""Parquet tables."""

from importlib import import_module
from pathlib import Path
from typing import Any

from charax.data._errors import DataError
from charax.data._limits import check_limit
from charax.data.files._frames import make_table
from charax.data.files._parquet_pages import check_pages
from charax.data.files._table import Table, TableRequest


def read_parquet(path: Path, request: TableRequest) -> Table:
    """Read a Parquet file; its records are numbered from 1."""
    try:
        # An optional dependency, so the import is one that type checkers do not follow.
        arrow, parquet = import_module("pyarrow"), import_module("pyarrow.parquet")
    except ImportError:
        raise DataError(f"{path} needs pyarrow to be read: pip install 'charax[parquet]'") from None
    try:
        with parquet.ParquetFile(path) as file:
            _check_size(path, file.metadata)
            check_pages(path, file.metadata)
            schema = file.schema_arrow
        for field in schema:
            _check_type(path, field)
        texts = [field.name for field in schema if str(field.type) in ("string", "large_string")]
        # A text that is repeated is stored once, and must be in memory only once, too.
        with parquet.ParquetFile(path, read_dictionary=texts) as file:
            content = _without_objects(arrow, file.read())
        names = content.column_names
        # Texts become categories: one Python string for each distinct one. Each column is freed when it is converted.
        frame = content.to_pandas(
            ignore_metadata=True,
            strings_to_categorical=True,
            date_as_object=False,
            split_blocks=True,
            self_destruct=True,
        )
        del content
    except DataError:
        raise
    except Exception as error:  # a damaged file makes the parser fail in any way it can
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise DataError(f"{path} cannot be read as a Parquet file: {reason}") from None
    return make_table(path, frame, names, lambda: range(1, len(frame) + 1), request)


def _without_objects(arrow: Any, content: Any) -> Any:
    """Replace the columns of which pandas would make one Python object for each row."""
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
