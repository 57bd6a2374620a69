"""What a kind of file can be read as."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
from jaxtyping import Shaped

from charax.data._raw import RawDataset


class Table(NamedTuple):
    """Named columns with the cells as the file has them."""

    path: Path
    names: list[str]
    rows: Sequence[Sequence[object]]
    numbers: Sequence[int]
    """The number of each row, for errors: the line of a CSV, the record (from 1) of a Parquet, the index of arrays."""


class UnlabelledInputs(NamedTuple):
    """Raw inputs, and the names of their columns if they come from a table."""

    inputs: Shaped[np.ndarray, "n *shape"]
    columns: tuple[str, ...]


class InputSpec(NamedTuple):
    """What a trained model reads."""

    shape: tuple[int, ...]
    columns: tuple[str, ...]
    max_value: float | None


class NamedInputs(NamedTuple):
    """Raw inputs for a trained model, and a name for each: a file, a row or an index."""

    inputs: Shaped[np.ndarray, "n *shape"]
    names: list[str]


@dataclass(frozen=True)
class FileKind:
    """A kind of file: how it is recognized, and a reader for everything that it can be read as."""

    name: str
    """How errors list it."""
    matches: Callable[[Path], bool]
    read_labelled: Callable[[Path, str | None], RawDataset] | None = None
    """Samples with classes; the second argument names the column of the classes."""
    read_unlabelled: Callable[[Path], UnlabelledInputs] | None = None
    """Samples without classes, to learn their density."""
    read_inputs: Callable[[Path, InputSpec], NamedInputs] | None = None
    """Inputs for a trained model."""
    read_table: Callable[[Path], Table] | None = None
    """Named columns."""


def has_suffix(*suffixes: str) -> Callable[[Path], bool]:
    """Recognize files by how their name ends, in either case."""
    return lambda path: path.suffix.lower() in suffixes and not path.is_dir()
