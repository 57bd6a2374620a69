"""Inputs without labels, to predict from."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from jaxtyping import Shaped

from charax.data._arrays import read_arrays
from charax.data._errors import DataError
from charax.data._images import SUFFIXES, find_images, read_images
from charax.data._tables import read_table, table_numbers


def read_inputs(
    path: Path | str,
    *,
    shape: tuple[int, ...],
    columns: Sequence[str] = (),
    white: float | None = None,
) -> tuple[Shaped[np.ndarray, "n *shape"], list[str]]:
    """Raw inputs of one `shape` from a file or a folder, and a name for each: `Standardizer.apply` comes next.

    `shape`, `columns` and `white` are those of the data that the model learned from (`Dataset.input_shape`,
    `Dataset.columns`, `Dataset.standardizer.white`). A table may have more columns than the model reads.

    ```python
    import tempfile
    from pathlib import Path
    from charax.data import read_inputs

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "new.csv"
        path.write_text("width,name,height\\n1.5,a,2\\n")
        raw, names = read_inputs(path, shape=(2,), columns=("height", "width"))
    assert raw.tolist() == [[2.0, 1.5]] and names == ["2"]
    ```
    """
    path = Path(path).expanduser()
    if not path.exists():
        raise DataError(f"{path} does not exist")
    suffix = path.suffix.lower()
    if path.is_dir() or suffix in SUFFIXES:
        return _read_pictures(path, shape, white)
    match suffix:
        case ".npz":
            return _read_batch(path, shape, white)
        case ".csv" | ".parquet":
            return _read_rows(path, shape, columns)
    raise DataError(
        f"{path} is not a kind of file that can be predicted from: give .npz, .csv, .parquet, an image or a folder"
    )


def _read_pictures(path: Path, shape: tuple[int, ...], white: float | None) -> tuple[np.ndarray, list[str]]:
    if len(shape) != 3 or shape[2] not in (1, 3):
        raise DataError(f"{path} is for pictures, but the model reads inputs of shape {shape}: give an .npz or a table")
    if white is None:
        raise DataError(f"{path}: the model learned from arrays whose brightness has no known scale: give an .npz")
    files = find_images(path) if path.is_dir() else [path]
    images = read_images(files, shape)
    names = [file.relative_to(path).as_posix() if path.is_dir() else file.name for file in files]
    return (images if white == 255 else images * (white / 255)), names


def _read_batch(path: Path, shape: tuple[int, ...], white: float | None) -> tuple[np.ndarray, list[str]]:
    x = read_arrays(path)
    if x.shape[1:] != shape:
        raise DataError(f"{path} has inputs of shape {x.shape[1:]} where the model reads {shape}")
    if white is not None:
        if x.min() < 0 or x.max() > white:
            row = int(np.argmax(((x < 0) | (x > white)).reshape(len(x), -1).any(axis=1)))
            raise DataError(f"{path} has a pixel outside 0 to {white:g} in row {row} of x (counted from 0)")
        if white > 1 and x.max() <= 1 and (x != np.round(x)).any():
            raise DataError(
                f"{path} has pixels from 0 to 1 where the model's go from 0 to {white:g}: give x * {white:g}"
            )
    return x, [str(i) for i in range(len(x))]


def _read_rows(path: Path, shape: tuple[int, ...], columns: Sequence[str]) -> tuple[np.ndarray, list[str]]:
    if len(shape) != 1:
        raise DataError(f"{path} is a table, but the model reads inputs of shape {shape}: give an image or an .npz")
    table = read_table(path)
    missing = [name for name in columns if name not in table.names]
    if missing:
        raise DataError(f"{path} has no column {missing[0]!r}, which the model reads; it has {', '.join(table.names)}")
    columns = columns or table.names
    if len(columns) != shape[0]:
        raise DataError(f"{path} has {len(columns)} columns where the model reads {shape[0]}")
    return table_numbers(table, columns), [str(number) for number in table.numbers]
