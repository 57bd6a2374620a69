"""Row 10: a gradient of a neural CDE for a batch of series, against torchcde."""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax

from benchmarks.peers.process import Peer
from benchmarks.rows import Asked, Row, arrays_of, compare
from charax.models import ObservedSeriesModel, SeriesDesign
from charax.solve import Solver
from charax.train import small_products

SIZES = {"JapaneseVowels": (32, 29, 12, 9), "BasicMotions": (32, 100, 6, 4), "long": (64, 200, 6, 4)}
"""Batch, length, channels and classes."""
TARGET = 5.0
"""The ratio to reach."""


class SeriesSide(NamedTuple):
    """A neural CDE and a batch of series on our side."""

    model: ObservedSeriesModel
    times: np.ndarray
    values: np.ndarray
    labels: np.ndarray

    @classmethod
    def make(cls, batch: int, length: int, channels: int, classes: int) -> "SeriesSide":
        """Complete series at the times that they share, because torchcde knows no others."""
        generator = np.random.default_rng(0)
        gaps = generator.uniform(0.5, 1.5, length - 1)
        times = np.concatenate([[0.0], np.cumsum(gaps)]).astype(np.float32) / np.float32(gaps.sum())
        values = generator.normal(size=(batch, length, channels)).astype(np.float32).cumsum(axis=1) / length**0.5
        model = SeriesDesign("cde").build(channels, classes, key=jax.random.key(0))
        assert isinstance(model, ObservedSeriesModel)
        return cls(model, times, values, np.arange(batch) % classes)

    def arrays(self) -> dict[str, np.ndarray]:
        """For the peer."""
        return arrays_of(self.model) | {"times": self.times, "values": self.values, "labels": self.labels}

    def outputs(self, solver: Solver) -> np.ndarray:
        """Logits."""
        return np.asarray(eqx.filter_jit(self.model)(*self._inputs(), solver=solver).values)

    def gradient(self, solver: Solver) -> Callable[[], Any]:
        """Interpolation, forward solve and gradient with respect to all weights."""
        params, static = eqx.partition(self.model, eqx.is_inexact_array)

        def loss(params, times, values, lengths):
            logits = eqx.combine(params, static)(times, values, lengths, solver=solver).values
            return optax.softmax_cross_entropy_with_integer_labels(logits, self.labels).mean()

        compiled = jax.jit(jax.value_and_grad(loss), compiler_options=small_products())
        return lambda: jax.block_until_ready(compiled(params, *self._inputs()))

    def _inputs(self) -> tuple[jax.Array, jax.Array, jax.Array]:
        batch, length = self.values.shape[:2]
        times = jnp.broadcast_to(jnp.asarray(self.times), (batch, length))
        return times, jnp.asarray(self.values), jnp.full(batch, length)


def row10(peer: Peer) -> Iterator[Row]:
    """One midpoint step between two observations on both sides."""
    for name, sizes in SIZES.items():
        side = SeriesSide.make(*sizes)
        peer.prepare("cde", side.arrays())
        ours = side.gradient(Solver("midpoint", steps=1))
        asked = [Asked("torchcde adjoint", "adjoint", TARGET, ours), Asked("torchcde direct", "direct", TARGET, ours)]
        case = f"neural CDE, {name}: {sizes[0]} series of {sizes[1]}"
        yield from compare(10, case, asked, peer, 2 * (sizes[1] - 1), repetitions=7, inner=3)
