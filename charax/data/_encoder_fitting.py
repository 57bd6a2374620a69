"""Fit an encoder to the training split of a table."""

from dataclasses import replace

import numpy as np

from charax.data._dates import find_date_format
from charax.data._encoder import BOOLEANS, ColumnEncoder, LeftOut, TableEncoder
from charax.data._errors import DataError
from charax.data.files._columns import check_numbers, column_numbers, find_column_dates
from charax.data.files._numbers import is_number
from charax.data.files._table import Column, Table

MAX_CATEGORIES = 50
"""A column with more distinct texts than this, or than half of the rows, is left out: its texts are names."""


def fit_encoder(table: Table) -> TableEncoder:
    """Decide how to encode each column, and compute the medians."""
    encoders, left_out = [], _unnamed(table)
    for name in table.names:
        fitted = _fit_column(table, name)
        if isinstance(fitted, LeftOut):
            left_out.append(fitted)
        else:
            encoders.append(fitted)
    if not encoders:
        reasons = ", ".join(f"{name} ({reason})" for name, reason in left_out)
        raise DataError(f"{table.path} has no column to learn from. Left out: {reasons}")
    return TableEncoder(tuple(encoders), tuple(left_out))


def fit_numeric_encoder(table: Table) -> TableEncoder:
    """Encode numbers as they are. Everything else is refused, and so are missing values: they have no density."""
    for name, column in table.columns.items():
        if column.kind == "boolean":
            raise DataError(f"{table.path}: column {name!r} has booleans, which have no density: remove it")
        column_numbers(table, (name,), fix="write numbers instead, or remove the column")
    return TableEncoder(tuple(ColumnEncoder(name, "number") for name in table.names), tuple(_unnamed(table)))


def check_texts(table: Table) -> None:
    """Refuse a column of texts that is meant to be of numbers: it has many texts, and half of the cells are numbers."""
    for name in table.names:
        column = table.column(name)
        if column.kind != "text" or not _are_names(column):
            continue
        numbers = np.asarray([*map(is_number, column.categories), False])[column.values]
        if 2 * numbers.sum() >= (~column.missing).sum() and find_date_format(column.categories) is None:
            check_numbers(table, name, column)


def _fit_column(table: Table, name: str) -> ColumnEncoder | LeftOut:
    column = table.column(name)
    missing = int(column.missing.sum())
    if missing == len(table):
        return LeftOut(name, "empty")
    if (column.values == column.values[0]).all():
        return LeftOut(name, "constant")
    if column.kind != "text":
        return _fill(ColumnEncoder(name, column.kind, missing=missing), table, column)
    texts = _texts(column)
    if BOOLEANS.keys() >= {text.casefold() for text in texts}:
        return _fill(ColumnEncoder(name, "boolean", missing=missing), table, column)
    date_format = find_column_dates(table, name, texts)
    if date_format is not None:
        return _fill(ColumnEncoder(name, "date", missing=missing, date_format=date_format), table, column)
    if _are_names(column):
        return LeftOut(name, f"{len(texts)} different texts in {len(table)} rows")
    return ColumnEncoder(name, "text", missing=missing, categories=tuple(sorted(texts)))


def _fill(encoder: ColumnEncoder, table: Table, column: Column) -> ColumnEncoder:
    """Add the median."""
    numbers = encoder.numbers(table, column)
    if encoder.missing:
        numbers = numbers[~np.isnan(numbers)]
    return replace(encoder, fill=float(np.median(numbers, overwrite_input=True)))


def _texts(column: Column) -> list[str]:
    """The distinct texts of these rows, which may be fewer than those of the file."""
    return [column.categories[code] for code in np.unique(column.values) if code >= 0]


def _are_names(column: Column) -> bool:
    distinct = len(np.unique(column.values[~column.missing]))
    return distinct > min(MAX_CATEGORIES, len(column.values) / 2)


def _unnamed(table: Table) -> list[LeftOut]:
    return [LeftOut("", "a column without a name")] * table.unnamed
