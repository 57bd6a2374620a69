"""Samples that stay on disk, because there are more of them than memory: rows are read when they are asked for."""

import hashlib
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float32, Int, Shaped

from charax.data._errors import DataError
from charax.data._standardizer import Standardizer

_SAMPLED_BYTES = 2**28
"""Bytes of the training samples, drawn at random, from which means and standard deviations are computed."""
_PART_BYTES = 2**24
"""Bytes that are read at once for them."""
_DIGEST_ROWS = 64


class Blocks(NamedTuple):
    """Rows that can only be read together, in the order of the rows."""

    sizes: Int[np.ndarray, "blocks"]
    """The number of rows of each block."""
    window: int
    """The number of blocks that fit into memory together."""

    def permute(self, generator: np.random.Generator) -> Int[np.ndarray, "rows"]:
        """Shuffle rows so that those of a mini-batch are in few blocks: the blocks, then the rows of every few.

        Args:
            generator: Where the order comes from.

        Returns:
            The numbers of all rows.
        """
        blocks = np.split(np.arange(self.sizes.sum()), np.cumsum(self.sizes)[:-1])
        order = generator.permutation(len(blocks)).tolist()
        windows = [order[first : first + self.window] for first in range(0, len(order), self.window)]
        rows = [np.concatenate([blocks[block] for block in window]) for window in windows]
        return np.concatenate([generator.permutation(each) for each in rows])

    def take(self, rows: Int[np.ndarray, "taken"]) -> "Blocks":
        """The blocks of some of the rows.

        Args:
            rows: Their numbers, sorted.

        Returns:
            The blocks without the other rows.
        """
        sizes = np.bincount(np.repeat(np.arange(len(self.sizes)), self.sizes)[rows], minlength=len(self.sizes))
        return Blocks(sizes[sizes > 0], self.window)


class AbstractStoredRows(ABC):
    """An array on disk, with the samples in its first axis. It is indexed like one in memory, by its first axis.

    ```python
    import numpy as np
    from charax.data import AbstractStoredRows

    class Squares(AbstractStoredRows):  # read from a file in earnest
        shape, dtype = (1_000_000, 1), np.dtype("float32")

        def read(self, rows):
            return (rows[:, None] ** 2).astype("float32")

    assert Squares()[np.array([3, 999])].tolist() == [[9.0], [998001.0]]
    ```
    """

    shape: tuple[int, ...]
    """The shape of all samples together."""
    dtype: np.dtype
    """The type of the numbers."""
    is_decoded: bool = False
    """Whether reading takes computing, so that other processes should do it."""
    blocks: Blocks | None = None
    """Which rows can only be read together; None if each can be read by itself."""

    @abstractmethod
    def read(self, rows: Int[np.ndarray, "rows"]) -> Shaped[np.ndarray, "rows *shape"]:
        """Read some samples.

        Args:
            rows: Their numbers.

        Returns:
            The samples.
        """

    def __len__(self) -> int:
        return self.shape[0]

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.shape)

    def __getitem__(self, index: slice | np.ndarray) -> Shaped[np.ndarray, "rows *shape"]:
        return self.read(np.arange(len(self))[index])

    def take(self, rows: Int[np.ndarray, "rows"]) -> "TakenRows":
        """Select samples, without reading them.

        Args:
            rows: Their numbers; sorted, where rows can only be read in blocks.

        Returns:
            The selected samples.
        """
        return TakenRows(self, rows)

    def select(self, columns: Sequence[int]) -> "SelectedColumns":
        """Select columns, without reading them.

        Args:
            columns: Their numbers.

        Returns:
            The selected columns.
        """
        return SelectedColumns(self, list(columns))

    def draw(self, size: int) -> list[Int[np.ndarray, "rows"]]:
        """Draw samples at random, always the same.

        Args:
            size: Bytes of all of them together.

        Returns:
            Their numbers, in parts that fit into memory with ease.
        """
        row, generator = max(1, math.prod(self.shape[1:]) * self.dtype.itemsize), np.random.default_rng(0)
        order = generator.permutation(len(self)) if self.blocks is None else self.blocks.permute(generator)
        rows = np.sort(order[: max(1, size // row)])
        return np.array_split(rows, -(-len(rows) // max(1, _PART_BYTES // row)))

    def digest(self) -> bytes:
        """What tells these samples from others: their shape, and some of them.

        Returns:
            A digest.
        """
        rows = np.unique(np.linspace(0, len(self) - 1, _DIGEST_ROWS).astype(int))
        digest = hashlib.blake2b(repr((self.shape, str(self.dtype))).encode(), digest_size=16)
        digest.update(np.ascontiguousarray(self.read(rows)).data)
        return digest.digest()


class MappedRows(AbstractStoredRows):
    """Rows of a memory-mapped file."""

    def __init__(self, path: Path, offset: int, shape: tuple[int, ...], dtype: np.dtype):
        self.path, self.offset, self.dtype = path, offset, dtype
        self._stored = shape
        self.shape = (*shape, 1) if len(shape) == 3 else shape  # images of one channel

    def read(self, rows: Int[np.ndarray, "rows"]) -> Shaped[np.ndarray, "rows *shape"]:
        # Mapped for this once: pages that were read would else count as memory of the process.
        mapped = np.memmap(self.path, self.dtype, "r", self.offset, self._stored)
        values = np.asarray(mapped[rows])
        if values.dtype.kind == "f" and not np.isfinite(values).all():
            finite = np.isfinite(values).reshape(len(values), -1).all(axis=1)
            raise DataError(
                f"{self.path} has NaN or infinity in row {rows[np.argmin(finite)]} of x (counted from 0): remove or "
                "impute it"
            )
        return values.reshape(len(values), *self.shape[1:])


class ImageRows(AbstractStoredRows):
    """Image files, which are decoded when they are asked for."""

    dtype = np.dtype(np.uint8)
    is_decoded = True

    def __init__(
        self,
        files: Sequence[Any],
        shape: tuple[int, int, int],
        decode: Callable[[Sequence[Any], tuple[int, int, int]], np.ndarray],
    ):
        self.files, self.shape = list(files), (len(files), *shape)
        self._image, self._decode = shape, decode

    def read(self, rows: Int[np.ndarray, "rows"]) -> Shaped[np.ndarray, "rows *shape"]:
        return self._decode([self.files[row] for row in rows], self._image)


class TakenRows(AbstractStoredRows):
    """Some of the rows of others."""

    def __init__(self, source: AbstractStoredRows, rows: Int[np.ndarray, "rows"]):
        self.source, self.rows = source, rows
        self.shape, self.dtype = (len(rows), *source.shape[1:]), source.dtype
        self.is_decoded = source.is_decoded
        self.blocks = None if source.blocks is None else source.blocks.take(rows)

    def read(self, rows: Int[np.ndarray, "rows"]) -> Shaped[np.ndarray, "rows *shape"]:
        return self.source.read(self.rows[rows])


class SelectedColumns(AbstractStoredRows):
    """Some of the columns of other rows."""

    def __init__(self, source: AbstractStoredRows, columns: list[int]):
        self.source, self.columns = source, columns
        self.shape, self.dtype = (len(source), len(columns)), source.dtype
        self.is_decoded, self.blocks = source.is_decoded, source.blocks

    def read(self, rows: Int[np.ndarray, "rows"]) -> Shaped[np.ndarray, "rows *shape"]:
        return self.source.read(rows)[:, self.columns]


class StandardizedRows(AbstractStoredRows):
    """Rows that are standardized when they are read."""

    dtype = np.dtype(np.float32)

    def __init__(self, source: AbstractStoredRows, standardizer: Standardizer):
        self.source, self.standardizer = source, standardizer
        self.shape, self.is_decoded, self.blocks = source.shape, source.is_decoded, source.blocks

    def read(self, rows: Int[np.ndarray, "rows"]) -> Float32[np.ndarray, "rows *shape"]:
        return self.standardizer.apply(self.source.read(rows))


def take_rows(values: Any, rows: Int[np.ndarray, "rows"]) -> Any:
    """Select rows of an array, now or when they are read."""
    return values.take(rows) if isinstance(values, AbstractStoredRows) else values[rows]


def fit_standardizer(values: Any, *, max_value: float | None) -> Standardizer:
    """The standardizer of an array; that of a sample of it, if it is on disk."""
    if not isinstance(values, AbstractStoredRows):
        return Standardizer.fit(values, max_value=max_value)
    parts = [_moments(values.read(rows)) for rows in values.draw(_SAMPLED_BYTES)]
    weights = np.asarray([count for count, _, _ in parts], np.float64)
    means, variances = (np.stack(each) for each in list(zip(*parts, strict=True))[1:])
    mean = np.average(means, axis=0, weights=weights)
    variance = np.average(variances + (means - mean) ** 2, axis=0, weights=weights)
    return Standardizer.from_moments(mean, np.sqrt(variance), max_value=max_value)


def _moments(values: Shaped[np.ndarray, "n *shape"]) -> tuple[int, np.ndarray, np.ndarray]:
    axes = tuple(range(values.ndim - 1))
    return len(values), values.mean(axes, dtype=np.float64), values.var(axes, dtype=np.float64)


def standardize_rows(values: Any, standardizer: Standardizer) -> Any:
    """Standardize an array, now or when it is read."""
    if isinstance(values, AbstractStoredRows):
        return StandardizedRows(values, standardizer)
    return standardizer.apply(values)
