"""The data of one training over many processes: the first of them reads the data, and each takes the rows it needs.

The rows of a mini-batch must not depend on the number of processes, so over some epochs every process needs every row.
None of them holds more than its share of a few mini-batches: the arrays are in files next to the run, which all
processes see.
"""

import hashlib
import pickle
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np
from jaxtyping import PyTree, Shaped

from charax.train import _processes as processes
from charax.train._config import AbstractConfig, TaskData
from charax.train._folder import explain_failed_write

_COPY, _TREE = "data-of-processes", "tree.pickle"


class CopiedRows:
    """An array in a file. It is indexed like one in memory; only the rows that are asked for are read."""

    def __init__(self, path: Path, shape: tuple[int, ...], dtype: np.dtype):
        self.path, self.shape, self.dtype = path, shape, dtype

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.shape)

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, index: slice | np.ndarray) -> Shaped[np.ndarray, "rows *shape"]:
        # Mapped for this once: pages that were read would else count as memory of the process.
        return np.array(np.memmap(self.path, self.dtype, "r", shape=self.shape)[index])


class Loaded(NamedTuple):
    """A complete config and its data."""

    config: AbstractConfig
    data: TaskData


def load_on_first(load: Callable[[], Loaded]) -> Loaded:
    """Load in the first process only. The others fail if it does, and get None, which they must not look at."""
    loaded: Any = None

    def call() -> None:
        nonlocal loaded
        loaded = load()

    processes.on_first(call)
    return loaded


def share_data(folder: Path, loaded: Loaded) -> Loaded:
    """Hand a config and its data to all processes. In a single one they are returned as they are.

    Args:
        folder: The folder of the run, which all processes see.
        loaded: What `load_on_first` has returned.

    Returns:
        The config and the data, with arrays of which only the rows that are asked for are in memory.
    """
    if processes.count() == 1:
        return loaded
    place = folder / _COPY

    def write() -> str:
        with explain_failed_write(folder):
            return _write(place, loaded)

    shared = _read(place, processes.on_first(write))
    processes.barrier()  # a first process that fails next removes the files
    return shared


def remove_copy(folder: Path) -> None:
    """Remove what `share_data` has written, also if the process that wrote it was killed."""
    if processes.is_first():
        shutil.rmtree(folder / _COPY, ignore_errors=True)


def read_whole(tree: PyTree) -> PyTree:
    """The arrays of all rows, in memory."""
    return jax.tree.map(lambda leaf: leaf[:] if isinstance(leaf, CopiedRows) else leaf, tree)


def _write(place: Path, loaded: Loaded) -> str:
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir()
    config, data = loaded
    leaves, structure = jax.tree.flatten(data.splits)
    copied = [_copy(leaf, place, f"{number}.array") for number, leaf in enumerate(leaves)]
    content = pickle.dumps((config, data._replace(splits=jax.tree.unflatten(structure, copied))))
    (place / _TREE).write_bytes(content)
    return _digest(content)


def _read(place: Path, digest: str) -> Loaded:
    content = (place / _TREE).read_bytes()
    # What is unpickled is what the first process has written, whoever else can write to the folder.
    if _digest(content) != digest:
        raise ValueError(f"{place} was changed by another program: leave it alone while the run trains")
    config, data = pickle.loads(content)
    here = lambda leaf: CopiedRows(place / leaf.path, leaf.shape, leaf.dtype) if isinstance(leaf, CopiedRows) else leaf
    return Loaded(config, data._replace(splits=jax.tree.map(here, data.splits)))


def _copy(leaf: object, place: Path, name: str) -> object:
    """What stands for an array in other processes; rows that stay on disk can be read there by all of them."""
    if not isinstance(leaf, np.ndarray | jax.Array) or not leaf.size:
        return leaf
    np.ascontiguousarray(leaf).tofile(place / name)
    return CopiedRows(Path(name), leaf.shape, np.dtype(leaf.dtype))


def _digest(content: bytes) -> str:
    return hashlib.blake2b(content, digest_size=16).hexdigest()
