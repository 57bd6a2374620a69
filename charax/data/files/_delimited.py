"""Text files with separated columns: `.csv`, `.tsv` and `.txt`, compressed by gzip or not."""

import warnings
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd

from charax.data._errors import DataError
from charax.data.files._frames import MISSING, make_table
from charax.data.files._layout import Layout, find_layout
from charax.data.files._lines import (
    check_lines,
    check_widths,
    count_characters,
    is_compressed,
    locate_records,
    read_sample,
    translate_errors,
)
from charax.data.files._table import Table, TableRequest

# Every number is the one nearest to its text, as in Python; since 3.1 pandas has no other converter.
_EXACT: dict[str, Any] = (
    {} if tuple(map(int, pd.__version__.split(".")[:2])) >= (3, 1) else {"float_precision": "round_trip"}
)


def read_delimited(path: Path, request: TableRequest) -> Table:
    """Read a text file with a first line of column names."""
    preferred = "tab" if ".tsv" in (suffix.lower() for suffix in path.suffixes[-2:]) else None
    layout = find_layout(
        path, read_sample(path), separator=request.separator, expected=request.expected, preferred=preferred
    )
    check_lines(path, len(layout.names))
    frame = _read_frame(path, layout, request)
    locate = partial(locate_records, path, layout.separator, len(frame))
    return make_table(path, frame, layout.names, locate, request, decimal=layout.decimal)


def _read_frame(path: Path, layout: Layout, request: TableRequest) -> pd.DataFrame:
    width, labels = len(layout.names), {*request.labels}
    options: dict[str, Any] = {
        "sep": layout.separator,
        "decimal": layout.decimal,
        "header": 0,
        "names": range(width),
        "index_col": False,
        "dtype": {i: str for i, name in enumerate(layout.names) if name in {*labels, *request.texts}},
        "na_values": {i: [""] if name in labels else list(MISSING) for i, name in enumerate(layout.names)},
        "keep_default_na": False,
        "skipinitialspace": layout.spaced,
        "encoding": "utf-8",
        "compression": "gzip" if is_compressed(path) else None,
        **_EXACT,
    }
    try:
        with translate_errors(path), warnings.catch_warnings():
            # A first row with too many cells is only a warning to pandas.
            warnings.simplefilter("error", pd.errors.ParserWarning)
            warnings.simplefilter("error", pd.errors.DtypeWarning)
            try:
                frame = pd.read_csv(path, **options)
            except pd.errors.DtypeWarning:  # parts of the file have different types, such as numbers and texts
                frame = pd.read_csv(path, **options, low_memory=False)
    except (pd.errors.ParserError, pd.errors.ParserWarning, pd.errors.EmptyDataError) as error:
        check_widths(path, layout.separator, width)
        raise DataError(f"{path} cannot be read as a table: {error}") from None
    if width > 1 and frame[width - 1].isna().any() and _may_be_ragged(path, layout, len(frame)):
        check_widths(path, layout.separator, width)
    return frame


def _may_be_ragged(path: Path, layout: Layout, records: int) -> bool:
    """Whether a row may end early: pandas fills such rows up with missing cells."""
    counts = count_characters(path, layout.separator)
    return counts.quotes > 0 or counts.separators < (records + 1) * (len(layout.names) - 1)
