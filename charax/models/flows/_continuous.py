"""Continuous normalizing flows: a vector field maps data to a known distribution, and back."""

import math

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray

from charax.fields import AbstractField, Scalar, check_flow_field, describe_field
from charax.models.flows._augmented_field import AugmentedField
from charax.models.flows._flow import AbstractFlow, FlowResult, check_sampling, sample_with_retry
from charax.models.flows._guidance import GuidedField
from charax.models.flows._traces import AbstractTrace, ExactTrace
from charax.models.matching import FlowMatching
from charax.nn import summarize
from charax.solve import Solver


class ContinuousFlow(AbstractFlow):
    """A continuous normalizing flow from data at s = 0 to a centred normal distribution at s = `end_time`.

        log p(u) = log N(u(T); 0, scale²) + ∫₀ᵀ tr(∂f/∂u) ds

    The solver and the trace are arguments of the methods, not part of the flow.

    ```python
    import jax
    import jax.numpy as jnp
    from charax.fields import PlainField
    from charax.models.flows import ContinuousFlow
    from charax.solve import Solver

    # du/ds = -u over a time of log 2 halves everything, so that twice a normal number becomes a normal number.
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
        """Check and store the parts of the flow.

        Args:
            field: The vector field of (s, u) and an external context.
            shape: The shape of one sample.
            end_time: The time T at which the base distribution is reached.
            learn_time: Whether T is learned, starting from `end_time`.
            scale: The standard deviation of the base distribution in every direction.

        Raises:
            ValueError: If the trace formula does not hold for the field, or a number is not positive.
        """
        for name, value in (("end_time", end_time), ("scale", scale)):
            if not (math.isfinite(value) and value > 0):
                raise ValueError(f"{name} must be a number above 0, got {value}")
        self.field = check_flow_field(field)
        self.root_time = jnp.asarray(math.sqrt(end_time)) if learn_time else None
        self.shape, self.fixed_time, self.scale = tuple(shape), end_time, scale

    def __repr__(self) -> str:
        return summarize(self, describe_field(self.field), f"shape {self.shape}")

    @property
    def end_time(self) -> Scalar:
        """The time T at which data reaches the base distribution."""
        return self.fixed_time if self.root_time is None else self.root_time**2

    def forward(
        self,
        u: Float[Array, "batch *state"],
        *,
        solver: Solver | None = None,
        trace: AbstractTrace | None = None,
        context: Float[Array, "batch *_"] | None = None,
        with_energies: bool = False,
        control_density_error: bool = False,
        key: PRNGKeyArray | None = None,
    ) -> FlowResult:
        """Map data to the base distribution.

        Args:
            u: A batch of samples.
            solver: How to integrate; `Solver()` by default.
            trace: How to compute the trace of the field's Jacobian; exactly by default.
            context: One row per sample for a field that reads it, such as one-hot classes.
            with_energies: Whether to integrate the two regularization terms, too.
            control_density_error: Whether adaptive steps control the error of the log-density, too, and not only that
                of u.
            key: Random key of an estimated trace.

        Returns:
            The points in the base distribution with the log-densities of `u`.

        Raises:
            ValueError: If the samples have another shape than the flow's.
        """
        return self._map(
            u,
            backward=False,
            solver=solver,
            trace=trace,
            context=context,
            with_energies=with_energies,
            control_density_error=control_density_error,
            key=key,
        )

    def inverse(
        self,
        u: Float[Array, "batch *state"],
        *,
        solver: Solver | None = None,
        trace: AbstractTrace | None = None,
        context: Float[Array, "batch *_"] | None = None,
        with_energies: bool = False,
        control_density_error: bool = False,
        key: PRNGKeyArray | None = None,
    ) -> FlowResult:
        """Map points of the base distribution to data.

        Args:
            u: A batch of points of the base distribution.
            solver: As in `forward`.
            trace: As in `forward`.
            context: As in `forward`.
            with_energies: As in `forward`.
            control_density_error: As in `forward`.
            key: As in `forward`.

        Returns:
            The data with their log-densities.

        Raises:
            ValueError: If the points have another shape than the flow's.
        """
        return self._map(
            u,
            backward=True,
            solver=solver,
            trace=trace,
            context=context,
            with_energies=with_energies,
            control_density_error=control_density_error,
            key=key,
        )

    def log_prob(
        self,
        u: Float[Array, "batch *state"],
        *,
        solver: Solver | None = None,
        trace: AbstractTrace | None = None,
        context: Float[Array, "batch *_"] | None = None,
        control_density_error: bool = False,
        key: PRNGKeyArray | None = None,
    ) -> Float[Array, "batch"]:
        """Compute the log-density of data.

        Args:
            u: A batch of samples.
            solver: As in `forward`.
            trace: As in `forward`.
            context: As in `forward`.
            control_density_error: As in `forward`.
            key: As in `forward`.

        Returns:
            The log-density of every sample.
        """
        return self.forward(
            u, solver=solver, trace=trace, context=context, control_density_error=control_density_error, key=key
        ).log_prob

    def evaluate(
        self,
        u: Float[Array, "batch *state"],
        *,
        solver: Solver | None = None,
        trace: AbstractTrace | None = None,
        context: Float[Array, "batch *_"] | None = None,
        with_energies: bool = False,
        key: PRNGKeyArray | None = None,
    ) -> FlowResult:
        return self.forward(u, solver=solver, trace=trace, context=context, with_energies=with_energies, key=key)

    def match(
        self,
        u: Float[Array, "batch *state"],
        matching: FlowMatching,
        *,
        source: Float[Array, "batch *state"] | None = None,
        context: Float[Array, "batch *_"] | None = None,
        key: PRNGKeyArray,
    ) -> Float[Array, "batch"]:
        time_key, source_key = jax.random.split(key)
        if source is None:
            source = self.scale * jax.random.normal(source_key, u.shape, u.dtype)
        return matching.losses(self.field, u, source, key=time_key, end_time=self.end_time, context=context)

    def loss(self, log_prob: Float[Array, "batch"]) -> Float[Array, "batch"]:
        return -log_prob

    def sample(
        self,
        n: int,
        *,
        key: PRNGKeyArray,
        solver: Solver | None = None,
        context: Float[Array, "batch *_"] | None = None,
        temperature: float = 1.0,
        guidance: float = 0.0,
    ) -> Float[Array, "batch *state"]:
        z = temperature * self.scale * jax.random.normal(key, (check_sampling(n, temperature, guidance), *self.shape))
        flow = eqx.tree_at(lambda flow: flow.field, self, GuidedField(self.field, guidance)) if guidance else self
        return sample_with_retry(lambda solver: _solve_inverse(flow, z, solver, context), n, solver or Solver())

    @property
    def noise_shape(self) -> tuple[int, ...]:
        return self.shape

    def generate(
        self,
        noise: Float[Array, "batch *noise"],
        *,
        solver: Solver | None = None,
        context: Float[Array, "batch *_"] | None = None,
    ) -> Float[Array, "batch *state"]:
        return _solve_inverse(self, self.scale * noise, solver or Solver(), context)[0]

    def base_log_prob(self, u: Float[Array, "batch *state"]) -> Float[Array, "batch"]:
        """Compute the log-density of the base distribution.

        Args:
            u: A batch of points.

        Returns:
            The log-density of every point.
        """
        return normal_log_prob(u, self.scale)

    def _map(
        self,
        u: Array,
        *,
        backward: bool,
        solver: Solver | None,
        trace: AbstractTrace | None,
        context: Array | None,
        with_energies: bool,
        control_density_error: bool,
        key: PRNGKeyArray | None,
    ) -> FlowResult:
        solver, trace, u = solver or Solver(), trace or ExactTrace(), jnp.asarray(u)
        if u.shape[1:] != self.shape:
            raise ValueError(f"this flow is for samples of shape {self.shape}, and a batch of them; got {u.shape}")
        probes = trace.draw(key, u)
        if solver.per_sample and probes is not None:
            raise ValueError("per_sample steps need the exact trace: use trace=ExactTrace(), or per_sample=False")
        field = AugmentedField(self.field, trace, probes, with_energies, control_density_error)
        s0, s1 = (self.end_time, 0.0) if backward else (0.0, self.end_time)
        solution = solver.solve(field, u, s0=s0, s1=s1, context=context, with_characteristic=True)
        assert solution.x is not None
        log_det, *energies = jnp.moveaxis(solution.x, -1, 0)
        # Energies do not depend on the direction of integration.
        kinetic, jacobian_norm = (-energy if backward else energy for energy in energies) if energies else (None, None)
        return FlowResult(
            u=solution.u,
            log_det=log_det,
            log_prob=self.base_log_prob(u) - log_det if backward else self.base_log_prob(solution.u) + log_det,
            kinetic=kinetic,
            jacobian_norm=jacobian_norm,
            outcome=solution.outcome,
            nfe=solution.stats.nfe,
        )


def normal_log_prob(u: Float[Array, "batch *state"], scale: Scalar = 1.0) -> Float[Array, "batch"]:
    """The log-density of independent normal numbers."""
    squares = jnp.sum(jnp.square(u / scale), axis=tuple(range(1, u.ndim)))
    return -0.5 * squares - u[0].size * (jnp.log(scale) + 0.5 * math.log(2 * math.pi))


def solve_inverse(
    flow: ContinuousFlow, z: Float[Array, "batch *state"], solver: Solver, context: Float[Array, "batch *_"] | None
) -> tuple[Float[Array, "batch *state"], Int[Array, "*batch"]]:
    """Map points of the base distribution to data without log-determinants; return the outcome of the solve, too."""
    solution = solver.solve(flow.field, z, s0=flow.end_time, s1=0.0, context=context)
    return solution.u, solution.outcome


_solve_inverse = eqx.filter_jit(solve_inverse)
