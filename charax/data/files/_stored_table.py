"""A table that stays on disk, in groups of rows, because it has more cells than memory."""

import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from jaxtyping import Float64, Int

from charax.data._encoder import TableEncoder
from charax.data._limits import LIMITS
from charax.data._stored import AbstractStoredRows, Blocks
from charax.data.files._table import Table, TableRequest

ReadGroups = Callable[[Path, Sequence[int], Sequence[str], TableRequest], Table]
"""Reads some columns of some groups, with every record of them."""
_CELL = 8
"""Bytes of a number in memory."""
_SAMPLE = 8
"""Of the memory that rows may take, the part in which the columns are looked at to decide how they are encoded."""


@dataclass(frozen=True)
class StoredTable:
    """Columns of a file, or some rows of them, which are read when they are asked for."""

    path: Path
    """The file."""
    names: tuple[str, ...]
    """The names of the columns."""
    sizes: Int[np.ndarray, "groups"]
    """The number of records of each group."""
    rows: Int[np.ndarray, "rows"]
    """Which records of the file the rows are, sorted."""
    read: ReadGroups

    def __len__(self) -> int:
        return len(self.rows)

    def take(self, rows: Int[np.ndarray, "taken"]) -> "StoredTable":
        """Select rows, which are sorted, without reading them."""
        return replace(self, rows=self.rows[rows])

    def without(self, name: str) -> "StoredTable":
        """Leave out a column, if it is there."""
        return replace(self, names=tuple(each for each in self.names if each != name))

    def read_columns(self, names: Sequence[str], request: TableRequest) -> Table:
        """Read columns as a whole, into memory."""
        found = [name for name in names if name in self.names]
        return self.read(self.path, range(len(self.sizes)), found, request)[self.rows]

    def sample(self) -> Table:
        """Read some groups, drawn at random, to see what the columns are."""
        wanted = LIMITS["memory"].value // _SAMPLE // (_CELL * len(self.names))
        order = np.random.default_rng(0).permutation(len(self.sizes))
        number = int(np.searchsorted(np.cumsum(self.sizes[order]), wanted)) + 1
        groups = np.sort(order[:number])
        records = np.repeat(np.arange(len(self.sizes)), self.sizes)
        kept = np.zeros(len(records), bool)
        kept[self.rows] = True
        mine = np.flatnonzero(kept[np.isin(records, groups)])
        return self.read(self.path, groups.tolist(), self.names, TableRequest())[mine]

    def encode(self, encoder: TableEncoder) -> AbstractStoredRows:
        """Encode the rows as features when they are read."""
        features = EncodedRows(self.path, self.sizes, self.read, encoder)
        return features if len(self) == len(features) else features.take(self.rows)


class EncodedRows(AbstractStoredRows):
    """The features of a table. The groups that were read last stay in memory."""

    dtype = np.dtype(np.float64)

    def __init__(self, path: Path, sizes: Int[np.ndarray, "groups"], read: ReadGroups, encoder: TableEncoder):
        self._made_of = path, sizes, read, encoder
        self.path, self.encoder, self._read = path, encoder, read
        self.shape = (int(sizes.sum()), len(encoder.feature_names))
        self._ends = np.cumsum(sizes)
        largest = _CELL * self.shape[1] * int(sizes.max())
        self.blocks = Blocks(sizes, max(1, LIMITS["memory"].value // 2 // largest))
        self._groups: OrderedDict[int, Float64[np.ndarray, "records features"]] = OrderedDict()
        self._lock = threading.Lock()

    def __reduce__(self):
        return EncodedRows, self._made_of

    def read(self, rows: Int[np.ndarray, "rows"]) -> Float64[np.ndarray, "rows features"]:
        out, groups = np.empty((len(rows), self.shape[1])), np.searchsorted(self._ends, rows, side="right")
        assert self.blocks is not None
        for group in np.unique(groups):
            which = groups == group
            out[which] = self._group(int(group))[rows[which] - (self._ends[group] - self.blocks.sizes[group])]
        return out

    def digest(self) -> bytes:
        """That of the first group and of what the file says about all of them: reading the others would take long."""
        import hashlib

        size = self.path.stat().st_size
        digest = hashlib.blake2b(repr((self.shape, size, self._ends.tolist())).encode(), digest_size=16)
        digest.update(self._group(0).tobytes())
        return digest.digest()

    def _group(self, number: int) -> Float64[np.ndarray, "records features"]:
        assert self.blocks is not None
        with self._lock:  # a second thread waits for what the first one reads
            if number not in self._groups:
                request = TableRequest(texts=self.encoder.text_columns)
                table = self._read(self.path, [number], self.encoder.columns, request)
                self._groups[number] = self.encoder.apply(table)
                # A mini-batch may begin in one window and end in the next.
                while len(self._groups) > 2 * self.blocks.window:
                    self._groups.popitem(last=False)
            self._groups.move_to_end(number)
            return self._groups[number]
