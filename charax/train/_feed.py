"""How mini-batches reach the devices."""

from abc import ABC, abstractmethod

import jax
import numpy as np
from jaxtyping import Int

from charax.train._batches import Batch
from charax.train._devices import Devices


class AbstractFeed(ABC):
    """Hands out the mini-batches of one epoch after the other."""

    @abstractmethod
    def start_epoch(self, train: Batch, order: Int[np.ndarray, "steps batch"], *, first: int) -> None:
        """Called before the steps of an epoch; `first` is the first of them that will be asked for."""

    @abstractmethod
    def step(self, number: int) -> tuple[Batch, Int[jax.Array, "1 batch"] | None]:
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

    def step(self, number: int) -> tuple[Batch, Int[jax.Array, "1 batch"] | None]:
        return self._data, self._devices.shard_rows(self._order[number : number + 1])


class HostFeed(AbstractFeed):
    """Samples stay on the hosts. Each process takes the rows of its own devices, step by step."""

    def __init__(self, devices: Devices):
        self._devices = devices

    def start_epoch(self, train: Batch, order: Int[np.ndarray, "steps batch"], *, first: int) -> None:
        self._train, self._order = train, order

    def step(self, number: int) -> tuple[Batch, Int[jax.Array, "1 batch"] | None]:
        return self._devices.take(self._train, self._order[number]), None


def make_feed(devices: Devices) -> AbstractFeed:
    """Choose how mini-batches reach the devices: many processes need not hold all samples on each of them."""
    return HostFeed(devices) if devices.is_shared else ResidentFeed(devices)
