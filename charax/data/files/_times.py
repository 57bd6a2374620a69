"""Times of series as files spell them: numbers, or dates, which become days since 1970."""

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
from jaxtyping import Float64

from charax.data._dates import parse_dates, wrong_dates
from charax.data._errors import DataError
from charax.data._names import TimeKind
from charax.data.files._columns import find_column_dates, refuse_cells
from charax.data.files._numbers import wrong_numbers
from charax.data.files._table import Table


class Times(NamedTuple):
    """A column of times."""

    values: Float64[np.ndarray, "rows"]
    """Numbers, or days since 1970; NaN where a cell is empty."""
    kind: TimeKind
    """What the cells are."""
    spell: Callable[[int], str]
    """Spells the time in a row, a date as the file does, so that it is read as the same time."""


def read_times(table: Table, name: str) -> Times:
    """Read the column of the times.

    Args:
        table: A long table.
        name: The name of the column.

    Returns:
        The times.

    Raises:
        DataError: If a cell is neither a finite number nor a date, or if dates may have the day or the month first.
    """
    column = table.column(name)
    if column.kind == "text":
        return _read_texts(table, name)
    numbers = column.values.astype(np.float64)
    if np.isinf(numbers).any():
        refuse_cells(table, name, np.isinf(numbers), "a finite number or a date")
    if column.kind != "date":
        return Times(numbers, "number", lambda row: spell_number(float(numbers[row])))
    texts = column.as_text()
    return Times(numbers, "date", lambda row: texts.categories[texts.values[row]])


def _read_texts(table: Table, name: str) -> Times:
    column = table.column(name)
    texts = column.categories
    date_format = find_column_dates(table, name, texts)
    if texts and date_format is None:
        # Of numbers among which something else is, this is what is wrong, and likewise of dates.
        wrong = min(wrong_numbers(texts), list(wrong_dates(texts)), key=sum)
        refuse_cells(table, name, np.asarray([*wrong, False])[column.values], "a finite number or a date")
    days = parse_dates(texts, date_format) if date_format else np.empty(0)
    return Times(np.asarray([*days, np.nan])[column.values], "date", lambda row: texts[column.values[row]])


def spell_number(number: float) -> str:
    """The shortest text of a number that is read as the same number."""
    return repr(number).removesuffix(".0")


def check_time_kind(path: Path, found: TimeKind, trained: TimeKind | None) -> None:
    """Refuse dates where the training data have numbers, and the reverse; None for a run that did not store which."""
    if trained in (None, found):
        return
    if trained == "date":
        raise DataError(f"{path} has numbers as times where the training data have dates: give dates")
    raise DataError(f"{path} has dates as times where the training data have numbers: give numbers in the same unit")
