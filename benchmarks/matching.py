"""Row 11: flow matching and samples of a toy flow, next to torchcfm and zuko with the same layers."""

from collections.abc import Callable, Iterator
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
from charax.models.matching import FlowMatching, OptimalTransport
from charax.nn import mlp
from charax.solve import Solver
from charax.train import small_products

BATCH, SAMPLES, WIDTH, TARGET = 256, 1_024, 64, 3.0


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

    def _step(self, loss: Callable[..., Any]) -> tuple[Callable[..., Any], Any, Any]:
        """An Adam step that leaves the weights what they are, its weights and its state."""
        params, static = eqx.partition(self.flow, eqx.is_inexact_array)
        optimizer = optax.adam(0.0)

        def step(params, state, *inputs):
            gradient = jax.grad(lambda params: loss(eqx.combine(params, static), *inputs))(params)
            updates, state = optimizer.update(gradient, state)
            return optax.apply_updates(params, updates), state

        return jax.jit(step, compiler_options=small_products()), params, optimizer.init(params)

    def matching_step(self, *, coupled: bool) -> Callable[[], Any]:
        """Draw noise and times, couple them on request, and take a step."""
        matching = FlowMatching()

        def loss(flow: ContinuousFlow, points, key, source=None):
            return flow.match(points, matching, source=source, key=key).mean()

        step, params, state = self._step(loss)
        generator, key, points = np.random.default_rng(0), jax.random.key(0), jnp.asarray(self.points)

        def call() -> Any:
            if not coupled:
                return step(params, state, points, key)
            noise = generator.standard_normal(self.points.shape, np.float32)
            partners = OptimalTransport()(self.points, noise)
            return step(params, state, points, key, jnp.asarray(noise[partners]))

        return call

    def likelihood_step(self, solver: Solver) -> Callable[[], Any]:
        """A step of maximum likelihood with the exact trace."""
        step, params, state = self._step(lambda flow, points: -flow.log_prob(points, solver=solver).mean())
        points = jnp.asarray(self.points)
        return lambda: step(params, state, points)

    def sample(self, solver: Solver) -> Callable[[], Any]:
        """Samples from given noise."""
        noise = jnp.asarray(self.noise)
        solve = jax.jit(
            lambda noise: solve_inverse(self.flow, noise, solver, None)[0], compiler_options=small_products()
        )
        return lambda: solve(noise)


def row11(peer: Peer) -> Iterator[Row]:
    """Training steps and samples of a toy flow."""
    side, tolerance = MatchingSide.make(), 1e-5
    solver = Solver("dopri5", rtol=tolerance, atol=tolerance)
    peer.prepare("matching", side.arrays(), tolerance=tolerance)
    layers = f"3-{WIDTH}-{WIDTH}-2 tanh"
    matching = [
        Asked("torchcfm", "torchcfm", TARGET, side.matching_step(coupled=False)),
        Asked("torchcfm, optimal transport", "torchcfm ot", TARGET, side.matching_step(coupled=True)),
    ]
    yield from compare(11, f"matching step, {BATCH} points, {layers}", matching, peer, 1, repetitions=9, inner=20)
    nfe = int(np.asarray(side.flow.forward(jnp.asarray(side.points), solver=solver).nfe).max())
    step = [Asked("zuko", "zuko", TARGET, side.likelihood_step(solver))]
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
