"""Read a file or a folder by its kind. This is the only place that chooses among the kinds."""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TypeVar

from charax.data._errors import DataError
from charax.data._limits import check_regular
from charax.data._raw import RawDataset
from charax.data.files._images import IMAGE, IMAGE_ARCHIVE, IMAGE_FOLDER
from charax.data.files._kind import FileKind, InputSpec, NamedInputs, TableOptions, Unlabelled
from charax.data.files._npy import NPY
from charax.data.files._npz import NPZ
from charax.data.files._series import RawSeries, SeriesRequest
from charax.data.files._stored_table import StoredTable
from charax.data.files._table import Table, TableRequest
from charax.data.files._tables import DELIMITED, EXCEL, PARQUET
from charax.data.files._ts import TS

KINDS: tuple[FileKind, ...] = (NPZ, NPY, DELIMITED, PARQUET, EXCEL, TS, IMAGE, IMAGE_ARCHIVE, IMAGE_FOLDER)
"""Every kind of file that can be read. A new one is a module with its readers, and an entry here."""

_ReaderT = TypeVar("_ReaderT")


def read_labelled(path: Path, options: TableOptions) -> RawDataset:
    """Read samples with classes."""
    return _find_reader(path, lambda kind: kind.read_labelled)(path, options)


def read_unlabelled(path: Path, options: TableOptions) -> Unlabelled:
    """Read samples without classes."""
    return _find_reader(path, lambda kind: kind.read_unlabelled)(path, options)


def read_named_inputs(path: Path, spec: InputSpec) -> NamedInputs:
    """Read inputs for a trained model."""
    return _find_reader(path, lambda kind: kind.read_inputs)(path, spec)


def read_table(path: Path, request: TableRequest) -> Table:
    """Read named columns."""
    return _find_reader(path, lambda kind: kind.read_table)(path, request)


def store_table(path: Path) -> StoredTable | None:
    """Named columns that stay on disk; None if they fit into memory, or if only whole files of this kind are read."""
    stores = (kind.store_table for kind in KINDS if kind.store_table is not None and kind.matches(path))
    return next((store(path) for store in stores), None)


def read_raw_series(path: Path, request: SeriesRequest) -> RawSeries:
    """Read whole series."""
    return _find_reader(path, lambda kind: kind.read_series)(path, request)


def holds_images(path: Path) -> bool:
    """Whether a path is a folder or an archive of images."""
    return any(kind.matches(path) for kind in (IMAGE_FOLDER, IMAGE_ARCHIVE))


def is_text_table(name: Path | str) -> bool:
    """Whether a name is that of a text file with columns, which are separated by something.

    Args:
        name: A path, or the name of a data set.

    Returns:
        Whether a separator has a meaning.

    ```python
    from charax.data import is_text_table

    assert is_text_table("table.csv.gz") and not is_text_table("digits")
    ```
    """
    return DELIMITED.matches(Path(name))


def is_table(name: Path | str) -> bool:
    """Whether a name is that of a file with named columns.

    Args:
        name: A path, or the name of a data set.

    Returns:
        Whether names of columns have a meaning.

    ```python
    from charax.data import is_table

    assert is_table("table.parquet") and not is_table("arrays.npz")
    ```
    """
    return any(kind.matches(Path(name)) for kind in (DELIMITED, PARQUET, EXCEL))


def find_path(name: Path | str, named: Iterable[str] = ()) -> Path:
    """Expand a path, which must exist; `named` are the names that could have been given instead."""
    path = Path(name).expanduser()
    if not _exists(path):
        instead = ", ".join(named)
        raise DataError(f"{name} does not exist" + (f", and is not one of {instead}" if instead else ""))
    if not path.is_dir():
        check_regular(path)
    return path


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except (OSError, ValueError):  # a name that is too long, or has a null byte
        return False


def _find_reader(path: Path, reader_of: Callable[[FileKind], _ReaderT | None]) -> _ReaderT:
    for kind in KINDS:
        reader = reader_of(kind) if kind.matches(path) else None
        if reader is not None:
            return reader
    *names, last = (kind.name for kind in KINDS if reader_of(kind) is not None)
    raise DataError(f"{path} is not a kind of file that can be read here: give {', '.join(names)} or {last}")
