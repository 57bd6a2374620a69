"""Excel workbooks: the first sheet, with the names of the columns in its first row."""

import math
import warnings
import zipfile
from collections.abc import Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pandas as pd

from charax.data._errors import DataError
from charax.data._limits import LIMITS, check_limit, check_passed
from charax.data.files._archives import check_directory, check_members
from charax.data.files._frames import make_table
from charax.data.files._table import Table, TableRequest

_ERRORS = ("#DIV/0!", "#N/A", "#NAME?", "#NULL!", "#NUM!", "#REF!", "#VALUE!")
"""What a formula without a value shows."""
_MAX_ROWS = 1_048_576
"""Of a sheet, by its format."""


def read_excel(path: Path, request: TableRequest) -> Table:
    """Read the first sheet of a workbook; its rows have the numbers that a spreadsheet shows."""
    if find_spec("openpyxl") is None:
        raise DataError(f"{path} needs openpyxl to be read: pip install 'charax[excel]'")
    check_directory(path)
    try:
        with zipfile.ZipFile(path) as archive:
            check_members(path, archive.infolist())
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about styles and formats, which are not read
            rows = _read_rows(path)
    except DataError:
        raise
    except Exception as error:  # a damaged workbook makes its reader fail in any way it can
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise DataError(f"{path} cannot be read as an Excel workbook: {reason}") from None
    if not rows:
        raise DataError(f"{path} has no rows of data")
    width = max(map(len, rows))
    names, *rest = ([*row, *[math.nan] * (width - len(row))] for row in rows)
    frame = pd.DataFrame(rest, columns=range(width), dtype=object).infer_objects()
    return make_table(
        path,
        frame,
        ["" if pd.isna(name) else str(name).strip() for name in names],
        lambda: range(2, len(frame) + 2),
        request,
        has_blank_lines=True,
    )


def _read_rows(path: Path) -> list[Sequence[Any]]:
    """The rows up to the last one with a value, each up to its last value."""
    # A cell may claim any row and column, and all those before it are empty ones: they are counted as they come.
    book = import_module("openpyxl").load_workbook(path, read_only=True, data_only=True, keep_links=False)
    rows: list[Sequence[Any]] = []
    width = last = 0
    most_lines, most_cells = min(LIMITS["lines"].value, _MAX_ROWS), LIMITS["cells"].value
    try:
        sheet = book.worksheets[0]
        sheet.reset_dimensions()
        for values in sheet.iter_rows(values_only=True):
            row = [math.nan if value is None else _convert(value) for value in values]
            while row and _is_missing(row[-1]):
                row.pop()
            rows.append(row or ())
            if len(row) > width:
                width = len(row)
                check_limit("columns", width, path)
            if row:
                last = len(rows)
            if len(rows) > most_lines or len(rows) * width > most_cells:
                check_passed("lines", len(rows), path)
                check_passed("cells", len(rows) * width, path)
                raise DataError(f"{path} has a cell below row {_MAX_ROWS:,}, where every sheet ends")
    finally:
        book.close()
    return rows[:last]


def _convert(value: Any) -> Any:
    if value == "" or (isinstance(value, str) and value in _ERRORS):
        return math.nan
    # A sheet has no integers: 3 may be stored as 3.0.
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _is_missing(value: Any) -> bool:
    return isinstance(value, float) and math.isnan(value)
