"""Columns from a pandas data frame."""

from collections.abc import Callable, Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from charax.data._errors import DataError
from charax.data.files._numbers import AmbiguousNumberError, parse_numbers
from charax.data.files._table import Column, Table, TableRequest

MISSING = (
    *("", "?", "NA", "N/A", "n/a", "#N/A", "#NA", "<NA>", "NaN", "nan", "-NaN", "-nan", "NULL", "null", "None"),
    *("1.#IND", "-1.#IND", "1.#QNAN", "-1.#QNAN", "#N/A N/A"),
)
"""Texts that stand for a missing cell: those of pandas, and the question mark of old archives."""
_INDEX_PREFIXES = ("Unnamed: ", "__index_level_")
"""How pandas names an index without a name."""


def make_table(
    path: Path,
    frame: pd.DataFrame,
    names: Sequence[str],
    locate: Callable[[], Sequence[int]],
    request: TableRequest,
    *,
    decimal: str = ".",
    has_blank_lines: bool = False,
) -> Table:
    """Make a table of a data frame whose columns are in the order of `names`.

    Records that are empty in every column are left out; those of a single column only if blank lines are among them.
    """
    locate = cache(locate)
    kept = [position for position, name in enumerate(names) if is_column(name)]
    columns: dict[str, Column] = {}
    for position in kept:
        name = names[position]
        if name in columns:
            raise DataError(f"{path} has two columns named {name!r}: rename one")
        try:
            columns[name] = _column(frame.iloc[:, position], name, request, decimal)
        except AmbiguousNumberError as error:
            text = error.args[0]
            row = int((frame.iloc[:, position].astype(str).str.strip() == text).to_numpy().argmax())
            raise DataError(
                f"{path}, row {locate()[row]}: column {name!r} has {text!r}, with decimals or thousands: "
                "write its numbers with a decimal point and without separators of thousands"
            ) from None
        except TypeError:
            raise DataError(f"{path}: column {name!r} has lists or other objects: give one value per row") from None
    keeps_all = len(columns) == 1 and not has_blank_lines
    records = np.arange(len(frame)) if keeps_all else _nonempty_records(len(frame), columns.values())
    if not len(records):
        raise DataError(f"{path} has no rows of data")
    return Table(path, columns, records, locate, unnamed=len(names) - len(kept))


def is_column(name: str) -> bool:
    """Whether a column has a name of its own, and is not an index that pandas wrote."""
    return bool(name) and not name.startswith(_INDEX_PREFIXES)


def _column(series: Any, name: str, request: TableRequest, decimal: str) -> Column:
    kind = series.dtype.kind if isinstance(series.dtype, np.dtype) else "O"
    if kind == "b":
        return Column("boolean", series.to_numpy())
    if kind in "iuf":
        return Column("number", series.to_numpy())
    if isinstance(series.dtype, pd.DatetimeTZDtype):
        series, kind = series.dt.tz_convert("UTC").dt.tz_localize(None), "M"
    if kind == "M":
        return Column("date", days_since_1970(series.to_numpy()))
    return _text_column(series, name, request, decimal)


def _text_column(series: Any, name: str, request: TableRequest, decimal: str) -> Column:
    codes, distinct = pd.factorize(series)
    is_label = name in request.labels
    # Texts that differ only in the spaces around them are one.
    index: dict[str, int] = {}
    renumbered = []
    for value in distinct:
        text = str(value).strip()
        renumbered.append(-1 if (not text if is_label else text in MISSING) else index.setdefault(text, len(index)))
    codes = np.asarray([*renumbered, -1], np.int64)[codes]
    texts = tuple(index)
    numbers = None if is_label or name in request.texts else parse_numbers(texts, decimal)
    if numbers is not None:
        return Column("number", np.asarray([*numbers, np.nan])[codes])
    return Column("text", codes, texts)


def days_since_1970(dates: np.ndarray) -> np.ndarray:
    """Convert dates to days, with NaN for a missing one."""
    days = dates.astype("datetime64[us]").astype(np.int64) / 86_400e6
    return np.where(np.isnat(dates), np.nan, days)


def _nonempty_records(count: int, columns: Iterable[Column]) -> np.ndarray:
    """The records that are not empty in every column, as those below the end of a sheet are."""
    empty = np.ones(count, bool)
    for column in columns:
        missing = column.missing
        if not missing.any():
            return np.arange(count)
        empty &= missing
    return np.flatnonzero(~empty)
