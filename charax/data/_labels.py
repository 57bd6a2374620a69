"""New samples with labels, to evaluate a trained model on; and columns of a table as they are."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from jaxtyping import Float64, Int32

from charax.data._errors import DataError
from charax.data.files._columns import column_labels, column_numbers, require_columns
from charax.data.files._dispatch import find_path, read_table
from charax.data.files._images import IMAGE_ARCHIVE
from charax.data.files._npz import NPZ, read_arrays
from charax.data.files._table import TableRequest

_TARGET = "target"
"""The column of the target, unless another one is named."""


class TextColumns(NamedTuple):
    """Columns of a table as texts.

    ```python
    from charax.data import TextColumns

    assert TextColumns(("id",), [["007"]]).names == ("id",)
    ```
    """

    names: tuple[str, ...]
    """Their names."""
    rows: list[list[str]]
    """Their cells; empty where a value is missing."""


def read_labels(
    path: Path | str, names: Sequence[str], *, classes: Sequence[str], target: str | None = None
) -> Int32[np.ndarray, "n"]:
    """Read the classes of new samples, as indices into the classes that a model knows.

    Args:
        path: A table with a column of classes, an `.npz` with `y`, or a folder or an archive with a subfolder per
            class.
        names: The names of the samples, as `read_inputs` returns them.
        classes: The classes that the model knows.
        target: The column of the classes in a table; "target" if left out.

    Returns:
        One index per sample.

    Raises:
        DataError: If there are no classes in the file, or others than the model knows.

    ```python
    import tempfile
    from pathlib import Path
    from charax.data import read_labels

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "new.csv"
        path.write_text("height,kind\\n1.5,b\\n2.5,a\\n")
        assert read_labels(path, ["2", "3"], classes=("a", "b"), target="kind").tolist() == [1, 0]
    ```
    """
    path = find_path(path)
    if path.is_dir() or IMAGE_ARCHIVE.matches(path):
        labels = [Path(name).parts[0] if len(Path(name).parts) > 1 else "" for name in names]
    elif NPZ.matches(path):
        labels = [str(label) for label in _read_y(path).tolist()]
    else:
        name = target or _TARGET
        table = read_table(path, TableRequest(labels=(name,), expected=(name,)))
        require_columns(table, (name,), hint=": name the column of the classes as the model was trained with it")
        column = column_labels(table, name)
        labels = [column.categories[code] for code in column.values]
    index = {name: i for i, name in enumerate(classes)}
    for name, label in zip(names, labels, strict=True):
        if label not in index:
            known = ", ".join(classes)
            raise DataError(f"{path}, input {name}: the model does not know the class {label!r}; it knows {known}")
    return np.asarray([index[label] for label in labels], np.int32)


def read_targets(path: Path | str, targets: Sequence[str]) -> Float64[np.ndarray, "n targets"]:
    """Read the numbers that a regressor should predict for new samples.

    Args:
        path: A table with the columns of the targets, or an `.npz` with `y`.
        targets: The names of the targets.

    Returns:
        One row per sample, in the units of the file.

    Raises:
        DataError: If a target is missing, or is not a finite number; the message names the row.

    ```python
    import tempfile
    from pathlib import Path
    from charax.data import read_targets

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "new.csv"
        path.write_text("height,price\\n1.5,10\\n2.5,20\\n")
        assert read_targets(path, ("price",)).tolist() == [[10], [20]]
    ```
    """
    path = find_path(path)
    if NPZ.matches(path):
        y = _read_y(path)
        y = y[:, None] if y.ndim == 1 else y
        if y.shape[1:] != (len(targets),) or y.dtype.kind not in "biuf" or not np.isfinite(y).all():
            raise DataError(f"{path} has y of shape {y.shape}: give {len(targets)} finite numbers per sample")
        return y.astype(np.float64)
    table = read_table(path, TableRequest(expected=tuple(targets)))
    require_columns(table, targets, hint=": add it, to compare the predictions with")
    return column_numbers(table, targets)


def read_texts(path: Path | str, names: Sequence[str] | None = None) -> TextColumns:
    """Read columns of a table as the texts that are in the file.

    Args:
        path: A table.
        names: The columns; all of them if left out.

    Returns:
        The texts.

    Raises:
        DataError: If the file is not a table, or lacks a column.

    ```python
    import tempfile
    from pathlib import Path
    from charax.data import read_texts

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "new.csv"
        path.write_text("id,height\\n007,1.50\\n")
        assert read_texts(path).rows == [["007", "1.50"]]
    ```
    """
    path = find_path(path)
    if path.is_dir() or NPZ.matches(path):
        raise DataError(f"{path} is not a table, so it has no columns to keep")
    if names is None:
        names = read_table(path, TableRequest()).names
    table = read_table(path, TableRequest(labels=tuple(names), expected=tuple(names)))
    require_columns(table, names)
    columns = [table.column(name).as_text() for name in names]
    cells = [[("" if code < 0 else column.categories[code]) for code in column.values] for column in columns]
    return TextColumns(tuple(names), [list(row) for row in zip(*cells, strict=True)])


def _read_y(path: Path) -> np.ndarray:
    return read_arrays(path, ("y",))["y"]
