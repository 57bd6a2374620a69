"""The solver: method, tolerances, adjoint."""

from typing import get_args

import diffrax as dfx
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from charax.fields import AbstractField, Condition, Scalar
from charax.fields._names import Count
from charax.solve._checks import check_arguments, is_concrete
from charax.solve._diffrax import integrate_with_diffrax
from charax.solve._explicit.integrate import integrate_explicitly, is_explicit
from charax.solve._methods import evaluations_per_step, find_method, has_error_estimate
from charax.solve._names import Adjoint
from charax.solve._problem import InitialValueProblem, SolverState, UnitIntervalField, rms_norm, u_adjoint_norm, u_norm
from charax.solve._solution import Outcome, Solution
from charax.solve._stiffness import stiffness


def _as_tolerance(value: Scalar | np.ndarray) -> Array | np.ndarray:
    # An array, not a Python float, so that a jitted function does not recompile when it changes.
    return value if isinstance(value, jax.Array) else np.asarray(value, dtype=float)


def _show(tolerance: Array | np.ndarray | None) -> str:
    """A tolerance as it was given; a dot where a transformation of JAX has put something else in its place."""
    if not isinstance(tolerance, np.ndarray | jax.Array) or not is_concrete(tolerance) or tolerance.ndim:
        return "…"
    return f"{float(tolerance):g}"


class Solver(eqx.Module):
    """How to integrate a field: an immutable object that is passed where a model is evaluated.

    ```python
    import jax.numpy as jnp
    from charax.fields import PlainField
    from charax.solve import Solver

    decay = PlainField(lambda u: -u, reads=("u",))
    solution = Solver("dopri5", rtol=1e-6, atol=1e-6).solve(decay, jnp.ones((1, 1)))
    assert abs(solution.u[0, 0] - jnp.exp(-1)) < 1e-5
    ```
    """

    method: str | dfx.AbstractSolver = "dopri5"
    """A name in `METHODS`, or any diffrax solver."""
    rtol: Array | np.ndarray = eqx.field(default=1e-5, converter=_as_tolerance)
    """The relative tolerance of adaptive steps. Changing it does not recompile."""
    atol: Array | np.ndarray = eqx.field(default=1e-5, converter=_as_tolerance)
    """The absolute tolerance of adaptive steps. Changing it does not recompile."""
    steps: Count | None = eqx.field(default=None, static=True)
    """The number of fixed steps; `None` for adaptive steps."""
    adjoint: str = eqx.field(default="checkpoint", static=True)
    """How gradients are computed. `"checkpoint"`: exact gradients of the steps, from a bounded number of kept states.
    `"backsolve"`: the continuous adjoint integrated backwards, constant memory, approximate. `"direct"`:
    differentiation through the loop itself, in forward mode too; faster than `"checkpoint"` for a few fixed steps,
    whose products it keeps, and slower for adaptive ones."""
    per_sample: bool = eqx.field(default=False, static=True)
    """Whether each sample has its own adaptive steps, instead of one step size for the whole batch."""
    max_steps: int = eqx.field(default=4096, static=True)
    """The maximum number of adaptive steps."""
    precision: str | None = eqx.field(default=None, static=True)
    """What the field is evaluated in: `"bfloat16"`, with weights and inputs rounded to it, or the precision of the
    state if left out. The state, the steps and the gradients of the weights stay as they are."""

    def __check_init__(self):
        method = find_method(self.method)
        if self.adjoint not in get_args(Adjoint):
            raise ValueError(f"unknown adjoint {self.adjoint!r}; choose from {', '.join(get_args(Adjoint))}")
        if self.precision not in (None, "bfloat16"):
            raise ValueError(f"unknown precision {self.precision!r}; use 'bfloat16', or leave it out")
        if self.steps is not None and self.steps < 1:
            raise ValueError(f"steps must be at least 1, got {self.steps}; leave it out for adaptive steps")
        if self.steps is None and not has_error_estimate(method):
            raise ValueError(
                f"method={self.method!r} has no error estimate, so it cannot take adaptive steps: give steps=…"
            )
        if self.max_steps < 1:
            raise ValueError(f"max_steps must be at least 1, got {self.max_steps}")
        for name, value in (("rtol", self.rtol), ("atol", self.atol)):
            if is_concrete(value) and not (np.ndim(value) == 0 and np.asarray(value) > 0):
                raise ValueError(
                    f"{name} must be a number above 0, got {value}. float32 can reach about 1e-6, float64 about 1e-13"
                )

    @property
    def couples_samples(self) -> bool:
        """Whether the solution for a sample depends on the other samples of the batch: by their common step size, or by
        the iterations of an implicit method."""
        return self.steps is None or evaluations_per_step(find_method(self.method)) is None

    def __repr__(self) -> str:
        steps = {"steps": self.steps} if self.steps else {"rtol": _show(self.rtol), "atol": _show(self.atol)}
        usual = {"adjoint": "checkpoint", "per_sample": False, "max_steps": 4096, "precision": None}
        others = {name: repr(getattr(self, name)) for name, value in usual.items() if getattr(self, name) != value}
        settings = [f"{name}={value}" for name, value in {**steps, **others}.items()]
        return f"Solver({', '.join([repr(self.method), *settings])})"

    def solve(
        self,
        field: AbstractField,
        u0: Float[Array, "batch *state"],
        *,
        context: Float[Array, "batch *_"] | None = None,
        s0: Scalar = 0.0,
        s1: Scalar = 1.0,
        at: Float[Array, "points"] | None = None,
        x0: Float[Array, "batch k"] | None = None,
        conditioned_on: Float[Array, "batch *state"] | None = None,
        with_characteristic: bool = False,
    ) -> Solution:
        """Integrate a field from s0 to s1, which may lie before s0.

        Args:
            field: The field.
            u0: The initial state, at s0.
            context: What a field that reads a context sees, one row per sample. Only such a field takes one.
            s0: Where the integration starts.
            s1: Where it ends.
            at: Points between s0 and s1 at which the state is returned, in the direction of integration.
            x0: The initial position on the characteristic; the origin if left out.
            conditioned_on: What a field that reads u0 sees; `u0` if left out. Give the original state when integrating
                backwards. Only a field that reads u0 takes one.
            with_characteristic: Whether to integrate x(s) even if no part of the field reads it. The steps stay the
                same.

        Returns:
            The solution. Under `jit`, `Solution.outcome` holds whether it failed.

        Raises:
            ValueError: If an argument is not finite, has a wrong shape, or does not suit the field.
            SolveError: If the solve fails outside of `jit`.
        """
        u0, x0, start, end, at = check_arguments(field, u0, x0, s0, s1, at, conditioned_on, context)
        z = Condition(
            u0=(u0 if conditioned_on is None else conditioned_on) if "u0" in field.reads else None,
            context=context,
        )
        integrates_x = field.characteristic_dim > 0 and (with_characteristic or "x" in field.reads)
        y0 = SolverState(u0, x0 if integrates_x else None)
        solution, last = _integrate(self, field, y0, start, end, at, z)
        if not is_concrete(solution.outcome):
            return solution
        if (np.asarray(solution.outcome) == Outcome.OUT_OF_STEPS).any():
            ratio = stiffness(field, solution.stats, last, start, end, z)
            solution = eqx.tree_at(lambda it: it.stats.stiffness, solution, ratio, is_leaf=lambda it: it is None)
        return solution.check()


@eqx.filter_jit
def _integrate(
    solver: Solver, field: AbstractField, y0: SolverState, s0: Array, s1: Array, at: Array | None, z: Condition
) -> tuple[Solution, SolverState]:
    """The solution, and the last accepted state, at which a failed solve stopped."""
    if not solver.per_sample:
        return _integrate_jointly(solver, field, y0, s0, s1, at, z)

    def integrate_sample(y0: SolverState, z: Condition) -> tuple[Solution, SolverState]:
        y0, z = jax.tree.map(lambda leaf: leaf[None], (y0, z))
        return _integrate_jointly(solver, field, y0, s0, s1, at, z)

    solution, last = jax.vmap(integrate_sample)(y0, z)
    # From [batch, points, 1, …] and [batch, 1, …] to the layout of a joint solve.
    points_first = lambda path: None if path is None else jnp.swapaxes(path[:, :, 0], 0, 1)
    joint = Solution(
        u=solution.u[:, 0],
        x=None if solution.x is None else solution.x[:, 0],
        s=at,
        trajectory=points_first(solution.trajectory),
        characteristic=points_first(solution.characteristic),
        outcome=solution.outcome,
        stats=solution.stats,
    )
    return joint, jax.tree.map(lambda leaf: leaf[:, 0], last)


def _integrate_jointly(
    solver: Solver, field: AbstractField, y0: SolverState, s0: Array, s1: Array, at: Array | None, z: Condition
) -> tuple[Solution, SolverState]:
    dtype = y0.u.dtype
    # A characteristic that the field does not read is integrated without changing the steps.
    controls_steps = y0.x is None or "x" in field.reads
    problem = InitialValueProblem(
        method=find_method(solver.method),
        vector_field=UnitIntervalField(field, solver.precision),
        y0=y0,
        args=(s0, s1, z),
        at=None if at is None else jnp.clip((at - s0) / (s1 - s0), 0, 1),
        rtol=jnp.asarray(solver.rtol, dtype),
        atol=jnp.asarray(solver.atol, dtype),
        norms=(rms_norm, dfx.adjoint_rms_seminorm) if controls_steps else (u_norm, u_adjoint_norm),
        steps=solver.steps,
        max_steps=solver.max_steps if solver.steps is None else solver.steps,
        adjoint=solver.adjoint,
    )
    result = integrate_explicitly(problem) if is_explicit(problem) else integrate_with_diffrax(problem)
    solution = Solution(
        u=jnp.where(result.outcome == Outcome.SUCCESS, result.y1.u, jnp.nan),
        x=result.y1.x,
        s=at,
        trajectory=None if result.trajectory is None else result.trajectory.u,
        characteristic=None if result.trajectory is None else result.trajectory.x,
        outcome=result.outcome,
        stats=result.stats,
    )
    return solution, result.y1
