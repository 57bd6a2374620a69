"""How mini-batches reach the devices."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass

import jax
import numpy as np
from jaxtyping import Int

from charax.data import AbstractStoredRows
from charax.train._batches import Batch, count_samples
from charax.train._devices import Devices

_AHEAD = 2
"""Mini-batches that are read ahead."""
_WORKERS = 2
"""Processes that decode images."""


class AbstractFeed(ABC):
    """Hands out the mini-batches of one epoch after the other."""

    @abstractmethod
    def start_epoch(self, train: Batch, order: Int[np.ndarray, "steps batch"], *, first: int) -> None:
        """Called before the steps of an epoch; `first` is the first of them that will be asked for."""

    @abstractmethod
    def step(self, number: int) -> tuple[Batch, Int[jax.Array | np.ndarray, "1 batch"] | None]:
        """Samples, and the rows of them that make the mini-batch of a step; None if that is all of them."""


class ResidentFeed(AbstractFeed):
    """All samples are on every device, which takes its share of each mini-batch: fastest for data that fit."""

    def __init__(self, devices: Devices):
        self._devices = devices
        self._train: Batch = None
        self._data: Batch = None

    def start_epoch(self, train: Batch, order: Int[np.ndarray, "steps batch"], *, first: int) -> None:
        self._order = order
        if train is not self._train:
            self._train, self._data = train, self._devices.replicate(train)

    def step(self, number: int) -> tuple[Batch, Int[jax.Array | np.ndarray, "1 batch"] | None]:
        return self._data, self._devices.shard_rows(self._order[number : number + 1])


class HostFeed(AbstractFeed):
    """Samples stay on the hosts, or on disk. Each process reads the rows of its own devices, step by step."""

    def __init__(self, devices: Devices):
        self._devices = devices

    def start_epoch(self, train: Batch, order: Int[np.ndarray, "steps batch"], *, first: int) -> None:
        self._batches = read_batches(self._devices, train, order, first=first)

    def step(self, number: int) -> tuple[Batch, Int[jax.Array | np.ndarray, "1 batch"] | None]:
        return next(self._batches), None


def make_feed(devices: Devices, train: Batch) -> AbstractFeed:
    """Choose how mini-batches reach the devices: many processes or cores need not hold all samples on each of them."""
    on_host = devices.is_shared or devices.share_memory or is_stored(train)
    return HostFeed(devices) if on_host else ResidentFeed(devices)


def read_batches(
    devices: Devices, split: Batch, order: Int[np.ndarray, "steps batch"], *, first: int = 0
) -> Iterator[Batch]:
    """The mini-batches of a split, from the first on. What is on disk is read ahead, by grain."""
    read, stored = _Read(split, devices.share(order)), _stored(split)
    if not stored:
        yield from (devices.assemble(read(number)) for number in range(first, len(order)))
        return
    import grain  # an extra

    numbers = grain.MapDataset.range(first, len(order))
    options = grain.ReadOptions(num_threads=_AHEAD, prefetch_buffer_size=_AHEAD)
    batches = numbers.map(read).to_iter_dataset(options)
    if any(rows.is_decoded for rows in stored):
        from absl import flags

        flags.FLAGS.mark_as_parsed()  # grain's workers ask for flags of programs that are not ours
        batches = batches.mp_prefetch(grain.MultiprocessingOptions(num_workers=_WORKERS))
    yield from (devices.assemble(share) for share in batches)


@dataclass(frozen=True)
class _Read:
    """Reads this process's share of a mini-batch; other processes may do it for us."""

    split: Batch
    order: Int[np.ndarray, "steps share"]

    def __call__(self, number: int) -> Batch:
        return jax.tree.map(lambda leaf: leaf[self.order[number]], self.split)


def permute_samples(split: Batch, generator: np.random.Generator, passes: int) -> Int[np.ndarray, "samples"]:
    """The order of the samples in an epoch. Those that can only be read in blocks are shuffled within several."""
    blocks = next((rows.blocks for rows in _stored(split) if rows.blocks is not None), None)
    if blocks is not None:
        return np.concatenate([blocks.permute(generator) for _ in range(passes)])
    count = count_samples(split)
    return generator.permutation(passes * count) % count


def is_stored(split: Batch) -> bool:
    """Whether some of the samples stay on disk until they are read."""
    return bool(_stored(split))


def _stored(split: Batch) -> list[AbstractStoredRows]:
    return [leaf for leaf in jax.tree.leaves(split) if isinstance(leaf, AbstractStoredRows)]
