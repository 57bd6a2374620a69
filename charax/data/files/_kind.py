"""What a kind of file can be read as."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
from jaxtyping import Shaped

from charax.data._encoder import TableEncoder
from charax.data._raw import RawDataset
from charax.data._stored import AbstractStoredRows
from charax.data.files._layout import Separator
from charax.data.files._series import RawSeries, SeriesRequest
from charax.data.files._stored_table import StoredTable
from charax.data.files._table import Table, TableRequest


class TableOptions(NamedTuple):
    """What can be said about a file of samples; it has no meaning for other files than tables, or folders of images."""

    target: str | None = None
    """The column of the classes."""
    separator: Separator | None = None
    """The separator of a text file; found out if left out."""
    size: int | None = None
    """The height and width to which the images of a folder are resized."""


class InputSpec(NamedTuple):
    """What a trained model reads."""

    shape: tuple[int, ...]
    columns: tuple[str, ...]
    max_value: float | None
    encoder: TableEncoder | None = None


class NamedInputs(NamedTuple):
    """Raw inputs for a trained model, and a name for each: a file, a row or an index."""

    inputs: Shaped[np.ndarray, "n *shape"]
    names: list[str]


Unlabelled = Shaped[np.ndarray, "n *shape"] | AbstractStoredRows | Table | StoredTable
"""Samples without classes, in memory or on disk."""


@dataclass(frozen=True)
class FileKind:
    """A kind of file: how it is recognized, and a reader for everything that it can be read as."""

    name: str
    """How errors list it."""
    matches: Callable[[Path], bool]
    read_labelled: Callable[[Path, TableOptions], RawDataset] | None = None
    """Samples with classes."""
    read_unlabelled: Callable[[Path, TableOptions], Unlabelled] | None = None
    """Samples without classes, to learn their density."""
    read_inputs: Callable[[Path, InputSpec], NamedInputs] | None = None
    """Inputs for a trained model."""
    read_table: Callable[[Path, TableRequest], Table] | None = None
    """Named columns."""
    store_table: Callable[[Path], StoredTable | None] | None = None
    """Named columns that stay on disk; None if they fit into memory."""
    read_series: Callable[[Path, SeriesRequest], RawSeries] | None = None
    """Whole series."""


def has_suffix(*suffixes: str) -> Callable[[Path], bool]:
    """Recognize files by how their name ends, in either case."""
    return lambda path: path.name.lower().endswith(suffixes) and not path.is_dir()
