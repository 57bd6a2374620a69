"""Parquet tables."""

from importlib import import_module
from pathlib import Path

from charax.data._errors import DataError
from charax.data.files._frames import make_table
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
            content = file.read()
        # Texts become categories: one Python string for each distinct one.
        frame = content.to_pandas(ignore_metadata=True, strings_to_categorical=True, date_as_object=False)
    except (arrow.ArrowException, OSError, ValueError) as error:
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise DataError(f"{path} cannot be read as a Parquet file: {reason}") from None
    return make_table(path, frame, content.column_names, lambda: range(1, len(frame) + 1), request)
