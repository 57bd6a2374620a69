"""Samples that stay on disk, because there are more of them than memory: rows are read when they are asked for."""

import hashlib
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float32, Int, Shaped

from charax.data._errors import DataError
from charax.data._standardizer import Standardizer

_SAMPLED_BYTES = 2**28
"""Bytes of the training samples, drawn at random, from which means and standard deviations are computed."""
_PART_BYTES = 2**24
"""Bytes that are read at once for them."""
_DIGEST_ROWS = 64


class AbstractStoredRows(ABC):
    """An array on disk, with the samples in its first axis. It is indexed like one in memory, by its first axis."""

    shape: tuple[int, ...]
    """The shape of all samples together."""
    dtype: np.dtype
    """The type of the numbers."""
    is_decoded: bool = False
    """Whether reading takes computing, so that other processes should do it."""

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
            rows: Their numbers.

        Returns:
            The selected samples.
        """
        return TakenRows(self, rows)

    def draw(self, size: int) -> list[Int[np.ndarray, "rows"]]:
        """Draw samples at random, always the same.

        Args:
            size: Bytes of all of them together.

        Returns:
            Their numbers, in parts that fit into memory with ease.
        """
        row = max(1, math.prod(self.shape[1:]) * self.dtype.itemsize)
        rows = np.sort(np.random.default_rng(0).permutation(len(self))[: max(1, size // row)])
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
        files: Sequence[Path],
        shape: tuple[int, int, int],
        decode: Callable[[Sequence[Path], tuple[int, int, int]], np.ndarray],
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

    def read(self, rows: Int[np.ndarray, "rows"]) -> Shaped[np.ndarray, "rows *shape"]:
        return self.source.read(self.rows[rows])


class StandardizedRows(AbstractStoredRows):
    """Rows that are standardized when they are read."""

    dtype = np.dtype(np.float32)

    def __init__(self, source: AbstractStoredRows, standardizer: Standardizer):
        self.source, self.standardizer = source, standardizer
        self.shape, self.is_decoded = source.shape, source.is_decoded

    def read(self, rows: Int[np.ndarray, "rows"]) -> Float32[np.ndarray, "rows *shape"]:
        return self.standardizer.apply(self.source.read(rows))


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
