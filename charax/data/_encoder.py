"""Encode the columns of a table as features: numbers, dates, booleans and texts, with or without missing values."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from jaxtyping import Float64

from charax.data._dates import ISO, parse_dates
from charax.data.files._columns import refuse_cells
from charax.data.files._numbers import wrong_numbers
from charax.data.files._table import Column, ColumnKind, Table

BOOLEANS = {"false": 0.0, "true": 1.0}
"""Texts that are booleans, in either case."""
_ACCEPTED = {"number": ("number", "boolean"), "boolean": ("boolean", "number"), "date": ("date",)}
_EXPECTED = {"number": "a finite number", "boolean": "true or false", "date": "a date as in the training data"}


@dataclass(frozen=True)
class ColumnEncoder:
    """How one column becomes one or more features.

    ```python
    from charax.data import ColumnEncoder

    column = ColumnEncoder("color", "text", categories=("blue", "red"))
    assert column.feature_names == ("color=blue", "color=red")
    ```
    """

    name: str
    """The name of the column."""
    kind: ColumnKind
    """What its cells are: number, boolean, date or text."""
    fill: float | None = None
    """What missing values are replaced by, the median; None for texts, and where missing values are refused."""
    missing: int = 0
    """The number of missing values that it was fitted to; if there are any, a feature marks the missing ones."""
    categories: tuple[str, ...] = ()
    """The texts that have a feature of 0 and 1 each; other texts are 0 in all of them."""
    date_format: str | None = None
    """The format of dates that are given as texts, in the notation of `datetime.strptime`, or ISO8601."""

    @property
    def feature_names(self) -> tuple[str, ...]:
        """The names of the features."""
        values = (self.name,) if self.kind != "text" else tuple(f"{self.name}={each}" for each in self.categories)
        return (*values, f"{self.name} is missing") if self.missing else values

    def apply(self, table: Table) -> Float64[np.ndarray, "rows features"]:
        """Encode the column.

        Args:
            table: A table that has it.

        Returns:
            The features.

        Raises:
            DataError: If a cell is not of this kind; the message names the row.
        """
        column = table.column(self.name)
        if self.kind == "text":
            values, missing = self._one_hot(column), column.missing
        else:
            numbers = self.numbers(table, column)
            missing = np.isnan(numbers)
            if self.fill is not None:
                numbers[missing] = self.fill
            elif missing.any():
                refuse_cells(table, self.name, missing, "a finite number")
            values = numbers[:, None]
        return np.column_stack([values, missing]) if self.missing else values

    def numbers(self, table: Table, column: Column) -> Float64[np.ndarray, "rows"]:
        """Convert the column to numbers, if it is not one of texts.

        Args:
            table: A table that has it, which errors name.
            column: The column.

        Returns:
            The numbers, with NaN for missing ones.

        Raises:
            DataError: If a cell is not of this kind; the message names the row.
        """
        if column.kind == "text":
            numbers = np.asarray([*self._parse(column.categories), np.nan])[column.values]
            wrong = np.isnan(numbers) & ~column.missing
        else:
            numbers = column.values.astype(np.float64, copy=False)
            wrong = np.isinf(numbers) if column.kind in _ACCEPTED[self.kind] else ~column.missing
        if self.kind == "boolean":
            wrong |= ~np.isin(numbers, (0, 1)) & ~np.isnan(numbers)
        if wrong.any():
            refuse_cells(table, self.name, wrong, _EXPECTED[self.kind])
        return numbers

    def _one_hot(self, column: Column) -> Float64[np.ndarray, "rows categories"]:
        texts = column.as_text()
        index = {text: i for i, text in enumerate(self.categories)}
        known = np.eye(len(self.categories) + 1)[:, :-1]  # the last row, of zeros, is for all other texts
        return known[np.asarray([*(index.get(text, -1) for text in texts.categories), -1])[texts.values]]

    def _parse(self, texts: tuple[str, ...]) -> Sequence[float] | Float64[np.ndarray, "texts"]:
        """Numbers for the texts of a file that holds this column as texts, with NaN for the wrong ones."""
        if self.kind == "date":
            return parse_dates(texts, self.date_format or ISO)
        if self.kind == "boolean":
            return [BOOLEANS.get(text.casefold(), np.nan) for text in texts]
        return [np.nan if wrong else 0.0 for wrong in wrong_numbers(texts)]


class LeftOut(NamedTuple):
    """A column that is not a feature.

    ```python
    from charax.data import LeftOut

    assert LeftOut("name", "it is different in every row").name == "name"
    ```
    """

    name: str
    """The name of the column."""
    reason: str
    """Why it is left out."""


@dataclass(frozen=True)
class TableEncoder:
    """How the columns of a table become features. It is fitted to the training split, and stored with a model.

    Numbers stay as they are, dates become days since 1970, booleans 0 and 1, and texts one feature of 0 and 1 for each
    distinct text. Missing values are replaced by the median, and marked in a feature of their own; a missing text is 0
    in all features but that one, and so is a text that was not there when the encoder was fitted. It holds plain
    values, so that it can be hashed, pickled and stored as JSON.

    ```python
    import tempfile
    from pathlib import Path
    from charax.data import load_dataset

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "plants.csv"
        rows = [f"{i % 7};{'red blue'.split()[i % 2]};{i % 3}" for i in range(30)]
        path.write_text("\\n".join(["height;color;target", *rows]))
        encoder = load_dataset(str(path)).encoder
    assert encoder.columns == ("height", "color")
    assert encoder.feature_names == ("height", "color=blue", "color=red")
    ```
    """

    encoders: tuple[ColumnEncoder, ...]
    """How each column is encoded, in the order of the features."""
    left_out: tuple[LeftOut, ...] = ()
    """The columns that are not features."""

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns that are read."""
        return tuple(encoder.name for encoder in self.encoders)

    @property
    def text_columns(self) -> tuple[str, ...]:
        """Those of them that are texts, even if all of the texts look like numbers."""
        return tuple(encoder.name for encoder in self.encoders if encoder.kind == "text")

    @property
    def feature_names(self) -> tuple[str, ...]:
        """The names of the features."""
        return tuple(name for encoder in self.encoders for name in encoder.feature_names)

    @property
    def notes(self) -> tuple[str, ...]:
        """What is done with columns that are not simply numbers, in one line per treatment."""
        kinds = {kind: [each for each in self.encoders if each.kind == kind] for kind in ("text", "date", "boolean")}
        imputed = [f"{each.name} ({each.missing} missing)" for each in self.encoders if each.missing]
        treatments = {
            "missing values replaced by the median, and marked in a column of their own": imputed,
            "texts as one column of 0 and 1 per category": [
                f"{each.name} ({len(each.categories)} categories)" for each in kinds["text"]
            ],
            "dates as days since 1970": [each.name for each in kinds["date"]],
            "booleans as 0 and 1": [each.name for each in kinds["boolean"]],
            "left out": [f"{name} ({reason})" if name else reason for name, reason in self.left_out],
        }
        return tuple(f"{what}: {_enumerate(columns)}" for what, columns in treatments.items() if columns)

    def apply(self, table: Table) -> Float64[np.ndarray, "rows features"]:
        """Encode a table, whose columns may be in any order.

        Args:
            table: A table with all of `columns`.

        Returns:
            The features.

        Raises:
            DataError: If a column or a value cannot be used; the message names the file, the row and the column.
        """
        out = np.empty((len(table), len(self.feature_names)))
        start = 0
        for encoder in self.encoders:
            features = encoder.apply(table)
            out[:, start : start + features.shape[1]] = features
            start += features.shape[1]
        return out


def _enumerate(names: list[str], limit: int = 8) -> str:
    shown = ", ".join(names[:limit])
    return shown if len(names) <= limit else f"{shown} and {len(names) - limit} more"
