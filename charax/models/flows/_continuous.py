"""Densities as flows: a field carries data to a known distribution, and back."""

import math
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray

from charax.fields import AbstractField, Scalar, check_flow_field
from charax.models.flows._density import AbstractDensity, Assessed, check_number, draw_samples
from charax.models.flows._density_field import DensityField
from charax.models.flows._traces import AbstractTrace, ExactTrace
from charax.solve import Solver, Stats


class Carried(NamedTuple):
    """A batch at the other end of a flow."""

    u: Float[Array, "batch *state"]
    """NaN where the solve failed."""
    log_det: Float[Array, "batch"]
    """log|det| of the map from what was given to `u`."""
    kinetic: Float[Array, "batch"] | None
    """∫ |f|² ds per dimension, if energies were asked for."""
    jacobian: Float[Array, "batch"] | None
    """∫ |∂f/∂u|² ds per dimension, the squared Frobenius norm, as exact as the trace is."""
    outcome: Int[Array, "*batch"]
    """An `Outcome` of the solve; one per sample with `per_sample` steps."""
    stats: Stats


class ContinuousFlow(AbstractDensity):
    """A density: a field carries data at s = 0 to a centred normal distribution at s = `end_time`.

        log p(u) = log N(u(T); 0, scale²) + ∫₀ᵀ tr(∂f/∂u) ds

    `shape` is that of one sample. With `learn_time` the end time is learned too. A field that the trace formula
    does not hold for is refused. How to integrate, and how to find the trace, is said where the flow is used.

    ```python
    import jax
    import jax.numpy as jnp
    from charax.fields import PlainField
    from charax.models.flows import ContinuousFlow
    from charax.solve import Solver

    # du/ds = -u for a while log 2 halves everything, so that twice a normal number becomes a normal number.
    flow = ContinuousFlow(PlainField(lambda u: -u, reads=("u",)), (2,), end_time=float(jnp.log(2.0)))
    log_prob = flow.log_prob(jnp.zeros((1, 2)), solver=Solver("euler", steps=1_000))
    assert abs(log_prob[0] + jnp.log(2 * jnp.pi * 4)) < 1e-3
    ```
    """

    field: AbstractField
    root_time: Float[Array, ""] | None
    """The square root of a learned end time, which so stays positive."""
    shape: tuple[int, ...] = eqx.field(static=True)
    fixed_time: float = eqx.field(static=True)
    scale: float = eqx.field(static=True)

    def __init__(
        self,
        field: AbstractField,
        shape: tuple[int, ...],
        *,
        end_time: float = 1.0,
        learn_time: bool = False,
        scale: float = 1.0,
    ):
        """`scale` is the standard deviation of the base distribution in every direction."""
        for name, value in (("end_time", end_time), ("scale", scale)):
            if not (math.isfinite(value) and value > 0):
                raise ValueError(f"{name} must be a number above 0, got {value}")
        self.field = check_flow_field(field)
        self.root_time = jnp.asarray(math.sqrt(end_time)) if learn_time else None
        self.shape, self.fixed_time, self.scale = tuple(shape), end_time, scale

    @property
    def end_time(self) -> Scalar:
        """Where the walk of the data ends."""
        return self.fixed_time if self.root_time is None else self.root_time**2

    def forward(
        self,
        u: Float[Array, "batch *state"],
        *,
        solver: Solver | None = None,
        trace: AbstractTrace | None = None,
        context: Float[Array, "batch *_"] | None = None,
        energies: bool = False,
        density_steers: bool = False,
        key: PRNGKeyArray | None = None,
    ) -> Carried:
        """Carry data to the base distribution.

        - `solver` is how to integrate, and `trace` how to find the trace: exactly if left out.
        - `context` is handed to a field that reads it: a class, say, for the density of each class.
        - `energies` integrates the two regularisers too.
        - `density_steers` lets the log-density's error choose the steps too, and not that of u alone.
        - `key` is for a trace that is estimated.
        """
        return self._carry(u, 0.0, self.end_time, solver, trace, context, energies, density_steers, key)

    def inverse(
        self,
        u: Float[Array, "batch *state"],
        *,
        solver: Solver | None = None,
        trace: AbstractTrace | None = None,
        context: Float[Array, "batch *_"] | None = None,
        energies: bool = False,
        density_steers: bool = False,
        key: PRNGKeyArray | None = None,
    ) -> Carried:
        """Carry points of the base distribution to the data's; the arguments are those of `forward`."""
        return self._carry(u, self.end_time, 0.0, solver, trace, context, energies, density_steers, key)

    def log_prob(
        self,
        u: Float[Array, "batch *state"],
        *,
        solver: Solver | None = None,
        trace: AbstractTrace | None = None,
        context: Float[Array, "batch *_"] | None = None,
        density_steers: bool = False,
        key: PRNGKeyArray | None = None,
    ) -> Float[Array, "batch"]:
        """The log-density of data; the arguments are those of `forward`."""
        carried = self.forward(u, solver=solver, trace=trace, context=context, density_steers=density_steers, key=key)
        return self.base_log_prob(carried.u) + carried.log_det

    def assess(
        self,
        u: Float[Array, "batch *state"],
        *,
        solver: Solver | None = None,
        trace: AbstractTrace | None = None,
        context: Float[Array, "batch *_"] | None = None,
        energies: bool = False,
        key: PRNGKeyArray | None = None,
    ) -> Assessed:
        carried = self.forward(u, solver=solver, trace=trace, context=context, energies=energies, key=key)
        log_prob = self.base_log_prob(carried.u) + carried.log_det
        return Assessed(log_prob, carried.kinetic, carried.jacobian, carried.outcome, carried.stats.nfe)

    def score(self, log_prob: Float[Array, "batch"]) -> Float[Array, "batch"]:
        return -log_prob

    def sample(
        self,
        n: int,
        *,
        key: PRNGKeyArray,
        solver: Solver | None = None,
        context: Float[Array, "batch *_"] | None = None,
        temperature: float = 1.0,
    ) -> Float[Array, "batch *state"]:
        z = temperature * self.scale * jax.random.normal(key, (check_number(n, temperature), *self.shape))
        return draw_samples(lambda solver: _carry_back(self, z, solver, context), n, solver or Solver())

    def carry_back(
        self, z: Float[Array, "batch *state"], solver: Solver, context: Float[Array, "batch *_"] | None = None
    ) -> tuple[Float[Array, "batch *state"], Int[Array, "*batch"]]:
        """Points of the base distribution at the data's end, without the log-determinant, and the solve's outcome."""
        solution = solver.solve(self.field, z, s0=self.end_time, s1=0.0, context=context)
        return solution.u, solution.outcome

    def base_log_prob(self, u: Float[Array, "batch *state"]) -> Float[Array, "batch"]:
        """The log-density of the base distribution."""
        return normal_log_prob(u, self.scale)

    def _carry(
        self,
        u: Array,
        s0: Scalar,
        s1: Scalar,
        solver: Solver | None,
        trace: AbstractTrace | None,
        context: Array | None,
        energies: bool,
        density_steers: bool,
        key: PRNGKeyArray | None,
    ) -> Carried:
        solver, trace, u = solver or Solver(), trace or ExactTrace(), jnp.asarray(u)
        if u.shape[1:] != self.shape:
            raise ValueError(f"this flow is for samples of shape {self.shape}, and a batch of them; got {u.shape}")
        probes = trace.draw(key, u)
        if solver.per_sample and probes is not None:
            raise ValueError("per_sample steps need the exact trace: use trace=ExactTrace(), or per_sample=False")
        field = DensityField(self.field, trace, probes, energies, density_steers)
        solution = solver.solve(field, u, s0=s0, s1=s1, context=context, with_characteristic=True)
        assert solution.x is not None
        log_det, *lengths = jnp.moveaxis(solution.x, -1, 0)
        # The regularisers are lengths of a way, which is as long back as there.
        kinetic, jacobian = (
            (jnp.sign(jnp.asarray(s1 - s0)) * length for length in lengths) if energies else (None, None)
        )
        return Carried(solution.u, log_det, kinetic, jacobian, solution.outcome, solution.stats)


def normal_log_prob(u: Float[Array, "batch *state"], scale: Scalar = 1.0) -> Float[Array, "batch"]:
    """The log-density of independent normal numbers."""
    squares = jnp.sum(jnp.square(u / scale), axis=tuple(range(1, u.ndim)))
    return -0.5 * squares - u[0].size * (jnp.log(scale) + 0.5 * math.log(2 * math.pi))


@eqx.filter_jit
def _carry_back(flow: ContinuousFlow, z: Array, solver: Solver, context: Array | None) -> tuple[Array, Array]:
    return flow.carry_back(z, solver, context)
