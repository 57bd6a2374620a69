"""Excel workbooks: the first sheet, with the names of the columns in its first row."""

import warnings
import zipfile
from importlib.util import find_spec
from pathlib import Path

import pandas as pd

from charax.data._errors import DataError
from charax.data.files._frames import make_table
from charax.data.files._table import Table, TableRequest


def read_excel(path: Path, request: TableRequest) -> Table:
    """Read the first sheet of a workbook; its rows have the numbers that a spreadsheet shows."""
    if find_spec("openpyxl") is None:
        raise DataError(f"{path} needs openpyxl to be read: pip install 'charax[excel]'")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about styles and formats, which are not read
            sheet = pd.read_excel(path, header=None, engine="openpyxl", keep_default_na=False, na_values=[""])
    except (OSError, ValueError, KeyError, TypeError, zipfile.BadZipFile) as error:
        raise DataError(f"{path} cannot be read as an Excel workbook: {error}") from None
    if sheet.empty:
        raise DataError(f"{path} has no rows of data")
    names = ["" if pd.isna(name) else str(name).strip() for name in sheet.iloc[0]]
    frame = sheet.iloc[1:].reset_index(drop=True).infer_objects()
    return make_table(path, frame, names, lambda: range(2, len(frame) + 2), request)
