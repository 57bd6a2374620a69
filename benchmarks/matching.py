"""Row 11: flow matching and samples of a toy flow, next to torchcfm and zuko with the same layers.

Our steps are those of an epoch, which is one call: so train the estimators.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax

from benchmarks.peers.process import Peer
from benchmarks.rows import Asked, Row, arrays_of, compare
from charax.fields import PlainField
from charax.models.flows import ContinuousFlow
from charax.models.flows._continuous import solve_inverse
from charax.models.matching import FlowMatching
from charax.nn import mlp
from charax.solve import Solver
from charax.tasks.density import DensityBatch, MatchingDesign
from charax.train import flatten_model, small_products
from charax.train._step import make_epoch, start_state

BATCH, SAMPLES, WIDTH, TARGET = 256, 1_024, 64, 3.0
STEPS = 20
"""Steps of an epoch."""


@dataclass(frozen=True)
class _Objective:
    """What a step of training needs."""

    flow: ContinuousFlow
    losses: Callable[[ContinuousFlow, DensityBatch, Any], Any]

    def build(self, key: Any) -> ContinuousFlow:
        return self.flow

    def augment(self, batch: DensityBatch, key: Any) -> DensityBatch:
        return batch

    def loss(self, model: Any, batch: DensityBatch, key: Any) -> tuple[Any, dict[str, Any]]:
        return self.losses(model, batch, key).mean(), {"failed": jnp.zeros(())}


class MatchingSide(NamedTuple):
    """A flow of the plane with a field 3-64-64-2 of (s, u) on our side."""

    flow: ContinuousFlow
    points: np.ndarray
    noise: np.ndarray

    @classmethod
    def make(cls, batch: int = BATCH, samples: int = SAMPLES) -> "MatchingSide":
        """Fresh weights, made three times as large so that there is something to solve."""
        network = mlp([3, WIDTH, WIDTH, 2], key=jax.random.key(0))
        network = jax.tree.map(lambda leaf: 3 * leaf if eqx.is_inexact_array(leaf) else leaf, network)
        generator = np.random.default_rng(0)
        draw = lambda count: generator.normal(size=(count, 2)).astype(np.float32)
        return cls(ContinuousFlow(PlainField(network), (2,)), draw(batch), draw(samples))

    def arrays(self) -> dict[str, np.ndarray]:
        """For the peer."""
        return arrays_of(self.flow.field) | {"points": self.points, "noise": self.noise}

    def _train(self, losses: Callable[[ContinuousFlow, DensityBatch, Any], Any]) -> Callable[[DensityBatch], Any]:
        """An epoch of Adam with a rate of 0, which leaves the weights what they are, as a function of its samples."""
        (params, unflatten), optimizer = flatten_model(self.flow), optax.adam(0.0)
        epoch = make_epoch(_Objective(self.flow, losses), unflatten, optimizer, None)
        compiled = jax.jit(epoch, compiler_options=small_products())
        key = jax.random.key_data(jax.random.key(0))
        state = start_state(optimizer, params, key, metrics=("failed",), ema=None)
        order = np.arange(STEPS * len(self.points)).reshape(STEPS, -1)
        return lambda samples: compiled(state, samples, order)[0]

    @property
    def samples(self) -> DensityBatch:
        """The samples of an epoch."""
        points = np.tile(self.points, (STEPS, 1))
        return DensityBatch(points, np.zeros(len(points), np.int32))

    def matching_steps(self, *, coupled: bool) -> Callable[[], Any]:
        """Draw noise and times, couple them on request, and take steps."""
        matching, samples, generator = FlowMatching(), self.samples, np.random.default_rng(0)
        train = self._train(
            lambda flow, batch, key: flow.match(batch.inputs, matching, source=batch.source, key=key)  # pyright: ignore[reportArgumentType]
        )
        design = MatchingDesign(coupling="ot" if coupled else "independent")
        order = np.arange(len(samples.inputs)).reshape(STEPS, -1)
        return lambda: train(design.couple(samples, order, generator, scale=1.0, has_classes=False))

    def likelihood_steps(self, solver: Solver) -> Callable[[], Any]:
        """Steps of maximum likelihood with the exact trace."""
        train, samples = self._train(lambda flow, batch, key: -flow.log_prob(batch.inputs, solver=solver)), self.samples  # pyright: ignore[reportArgumentType]
        return lambda: train(samples)

    def sample(self, solver: Solver) -> Callable[[], Any]:
        """Samples from given noise."""
        noise = jnp.asarray(self.noise)
        solve = jax.jit(lambda noise: solve_inverse(self.flow, noise, solver, None)[0])
        return lambda: solve(noise)


def row11(peer: Peer) -> Iterator[Row]:
    """Training steps and samples of a toy flow."""
    side, tolerance = MatchingSide.make(), 1e-5
    solver = Solver("dopri5", rtol=tolerance, atol=tolerance)
    peer.prepare("matching", side.arrays(), tolerance=tolerance)
    layers = f"3-{WIDTH}-{WIDTH}-2 tanh"
    matching = [
        Asked("torchcfm", "torchcfm", TARGET, side.matching_steps(coupled=False), STEPS),
        Asked("torchcfm, optimal transport", "torchcfm ot", TARGET, side.matching_steps(coupled=True), STEPS),
    ]
    yield from compare(11, f"matching step, {BATCH} points, {layers}", matching, peer, 1, repetitions=9, inner=20)
    nfe = int(np.asarray(side.flow.forward(jnp.asarray(side.points), solver=solver).nfe).max())
    step = [Asked("zuko", "zuko", TARGET, side.likelihood_steps(solver), STEPS)]
    case = f"likelihood step, {BATCH} points, {layers}, exact trace, {tolerance:g}"
    yield from compare(11, case, step, peer, nfe, repetitions=7, inner=2)
    solution = solver.solve(side.flow.field, jnp.asarray(side.noise), s0=1.0, s1=0.0)
    drawn = side.sample(solver)
    samples = [
        Asked("torchcfm (torchdyn)", "torchcfm sample", TARGET, drawn),
        Asked("zuko", "zuko sample", TARGET, drawn),
    ]
    case = f"{SAMPLES:,} samples, {layers}, dopri5 {tolerance:g}"
    nfe = int(np.asarray(solution.stats.nfe).max())
    yield from compare(11, case, samples, peer, nfe, repetitions=7, inner=3)
