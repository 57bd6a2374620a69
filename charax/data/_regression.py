"""Data for regression: rows of features and one or more numbers to predict from them."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
from jaxtyping import Float32, Float64, Shaped

from charax.data._dataset import encode, fit_table
from charax.data._encoder import TableEncoder
from charax.data._encoder_fitting import check_texts, fit_encoder
from charax.data._errors import DataError
from charax.data._standardizer import Standardizer
from charax.data._stored import AbstractStoredRows, MappedRows, fit_standardizer, standardize_rows, take_rows
from charax.data.files._columns import column_numbers, require_columns
from charax.data.files._dispatch import find_path, read_table, store_table
from charax.data.files._layout import Separator
from charax.data.files._npy import NPY, read_neighbours
from charax.data.files._npz import NPZ, read_pair
from charax.data.files._numbers import is_number
from charax.data.files._stored_table import StoredTable
from charax.data.files._table import Column, Table, TableRequest

REGRESSION_DATASETS = ("diabetes",)
"""Data sets for regression by name: scikit-learn's diabetes, in its original units."""
_TARGET = "target"
"""The column of the target, unless others are named."""
_MIN_SAMPLES = 10


class RegressionSplit(NamedTuple):
    """The training, validation or test split of data for regression.

    ```python
    from charax.data import load_regression

    inputs, targets = load_regression("diabetes").test
    assert inputs.shape == (88, 10) and targets.shape == (88, 1)
    ```
    """

    inputs: Float32[np.ndarray, "n features"]
    """Standardized features; `AbstractStoredRows` if they are too large for memory."""
    targets: Float32[np.ndarray, "n targets"]
    """Standardized targets."""


@dataclass(frozen=True)
class RegressionData:
    """Rows of features and targets in three splits, standardized as it suits the first of them.

    ```python
    from charax.data import load_regression

    diabetes = load_regression("diabetes")
    assert diabetes.targets == ("target",) and 152 < diabetes.target_standardizer.mean[0] < 156
    ```
    """

    name: str
    """The name or the path by which they were loaded."""
    train: RegressionSplit
    """The training split."""
    validation: RegressionSplit
    """The split on which the best weights are selected."""
    test: RegressionSplit
    """The test split."""
    targets: tuple[str, ...]
    """The names of the targets."""
    standardizer: Standardizer
    """How raw features were scaled, after the columns of a table were encoded."""
    target_standardizer: Standardizer
    """How raw targets were scaled."""
    encoder: TableEncoder | None = None
    """How the columns of a table were encoded as features; None for arrays."""

    @property
    def notes(self) -> tuple[str, ...]:
        """What was done with the columns of a table that are not simply numbers, one line each."""
        return () if self.encoder is None else self.encoder.notes


class _Raw(NamedTuple):
    """Rows in the units of their file."""

    path: Path
    inputs: Shaped[np.ndarray, "n features"] | AbstractStoredRows | Table | StoredTable
    targets: Float64[np.ndarray, "n targets"]
    names: tuple[str, ...]


def load_regression(
    name: str, *, seed: int = 0, target: Sequence[str] = (), separator: Separator | None = None
) -> RegressionData:
    """Load data for regression: a named data set, or the user's own file.

    An own file is a table as for `load_dataset`, whose targets are columns of numbers and whose other columns are
    encoded as features (`TableEncoder`); or an `.npz` with `x`, one row of features per sample, and `y`, one number or
    one row of numbers per sample; or an `x.npy` with `y.npy` next to it. 70% of the rows are to train on, 10% to
    validate and 20% to test. Features that are too large for memory stay on disk.

    Args:
        name: A name, one of `REGRESSION_DATASETS`, or a path.
        seed: Seed of the splits.
        target: The columns to predict from the others, in a table; "target" if left out.
        separator: The separator of the columns of a text file; found out if left out.

    Returns:
        The splits and their description.

    Raises:
        DataError: If the data cannot be read, or a target is not a finite number; the message names the file, the row
            and the fix.

    ```python
    from charax.data import load_regression

    assert load_regression("diabetes", target=("bmi", "bp")).train.targets.shape == (310, 2)
    ```
    """
    raw = _read(name, tuple(target), separator)
    count = len(raw.targets)
    if count < _MIN_SAMPLES:
        raise DataError(f"{raw.path} has {count} rows: give at least {_MIN_SAMPLES}, to train, validate and test")
    order = np.random.default_rng(seed).permutation(count)
    test, validation = max(1, count // 5), max(1, count // 10)
    rows = [order[test + validation :], order[test : test + validation], order[:test]]
    if isinstance(raw.inputs, StoredTable):
        rows = [np.sort(each) for each in rows]  # it is read from its beginning to its end
    _check_varied(raw, rows[0])
    table = raw.inputs.take(rows[0]) if isinstance(raw.inputs, StoredTable) else raw.inputs
    encoder = fit_table(table[rows[0]] if isinstance(table, Table) else table, fit_encoder)
    features = encode(raw.inputs, encoder)
    parts = [take_rows(features, each) for each in rows]
    inputs, targets = fit_standardizer(parts[0], max_value=None), Standardizer.fit(raw.targets[rows[0]])
    splits = [
        RegressionSplit(standardize_rows(part, inputs), targets.apply(raw.targets[each]))
        for part, each in zip(parts, rows, strict=True)
    ]
    return RegressionData(
        name, *splits, targets=raw.names, standardizer=inputs, target_standardizer=targets, encoder=encoder
    )


def _read(name: str, target: tuple[str, ...], separator: Separator | None) -> _Raw:
    if name in REGRESSION_DATASETS:
        return _from_table(_diabetes(), target)
    path = find_path(name, REGRESSION_DATASETS)
    if not NPZ.matches(path) and not NPY.matches(path):
        request = TableRequest(separator, expected=target or (_TARGET,))
        return _from_table(store_table(path) or read_table(path, request), target)
    if target:
        raise DataError(f"{path} has arrays, whose target is y: leave out the target, or give a table")
    return _check_arrays(path, *(read_pair if NPZ.matches(path) else read_neighbours)(path))


def _from_table(whole: Table | StoredTable, target: tuple[str, ...]) -> _Raw:
    names = target or (_TARGET,)
    if len(set(names)) < len(names):
        raise DataError(f"the targets {', '.join(names)} have a column twice: give each once")
    require_columns(whole, names, hint=": name the columns to predict as the target")
    table = whole if isinstance(whole, Table) else whole.read_columns(names, TableRequest())
    for each in names:
        _refuse_classes(table, each)
    targets, inputs = column_numbers(table, names), whole
    for each in names:
        inputs = inputs.without(each)
    if not inputs.names:
        raise DataError(f"{whole.path} has no column but the targets {', '.join(names)}: add columns to learn from")
    if isinstance(inputs, Table):
        check_texts(inputs)
    return _Raw(whole.path, inputs, targets, names)


def _refuse_classes(table: Table, name: str) -> None:
    """Refuse a target of booleans, or of texts most of which are not numbers."""
    column = table.column(name)
    if column.kind == "text":
        numbers = np.asarray([*map(is_number, column.categories), False])[column.values]
        if 2 * numbers.sum() >= (~column.missing).sum():
            return  # numbers with a few texts among them: the error about the first of these is better
    elif column.kind != "boolean":
        return
    row = int(np.argmin(column.missing))
    raise DataError(
        f"{table.row(row)}: the target {name!r} has {column.cell(row)} and looks like classes: use train classify"
    )


def _check_arrays(path: Path, x: np.ndarray | MappedRows, y: np.ndarray) -> _Raw:
    for name, array in (("x", x), ("y", y)):
        if array.dtype.kind in "bU" and name == "y":
            raise DataError(f"{path} has y of type {array.dtype}, which looks like classes: use train classify")
        if array.dtype.kind not in "biuf":
            raise DataError(f"{path} has {name} of type {array.dtype}: give numbers")
    if x.ndim != 2 or 0 in x.shape:
        raise DataError(f"{path} has x of shape {x.shape}: give one row of features per sample")
    if y.ndim not in (1, 2) or y.size == 0 or len(y) != len(x):
        raise DataError(
            f"{path} has y of shape {y.shape} where x has {len(x)} samples: give one number, or one row of numbers, "
            "per sample"
        )
    y = y.reshape(len(y), -1).astype(np.float64)
    names = ("y",) if y.shape[1] == 1 else tuple(f"y{i + 1}" for i in range(y.shape[1]))
    for name, array in (("x", x), ("y", y)):
        if isinstance(array, MappedRows):
            continue  # looked at when it is read
        wrong = ~np.isfinite(array)
        if wrong.any():
            row, column = np.argwhere(wrong)[0]
            raise DataError(
                f"{path} has {array[row, column]} in row {row}, column {column} of {name} (counted from 0): remove or "
                "impute it"
            )
    return _Raw(path, x, y, names)


def _check_varied(raw: _Raw, rows: np.ndarray) -> None:
    targets = raw.targets[rows]
    constant = np.flatnonzero(np.ptp(targets, axis=0) <= 1e-12 * np.abs(targets).max(axis=0))
    if constant.size:
        name = raw.names[constant[0]]
        raise DataError(f"{raw.path}: the target {name!r} is {targets[0, constant[0]]:g} in all training rows")


def _diabetes() -> Table:
    from sklearn.datasets import load_diabetes

    bunch = load_diabetes(scaled=False)
    columns = {name: Column("number", bunch.data[:, i]) for i, name in enumerate(bunch.feature_names)}  # pyright: ignore[reportAttributeAccessIssue]
    columns[_TARGET] = Column("number", bunch.target)  # pyright: ignore[reportAttributeAccessIssue]
    count = len(bunch.target)  # pyright: ignore[reportAttributeAccessIssue]
    return Table(Path("diabetes"), columns, np.arange(count), lambda: range(count))
