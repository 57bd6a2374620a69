"""How to integrate a field: method, tolerances, adjoint."""

from typing import Literal, get_args

import diffrax as dfx
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optimistix as optx
from jaxtyping import Array, Float

from charax.fields import AbstractField, Condition, Scalar
from charax.solve._checks import check_arguments, is_concrete
from charax.solve._diffrax import walk_with_diffrax
from charax.solve._explicit.integrate import is_explicit, walk_explicitly
from charax.solve._methods import find_method, has_error_estimate
from charax.solve._problem import Course, State, Walk, u_adjoint_norm, u_norm
from charax.solve._solution import Outcome, Solution
from charax.solve._stiffness import stiffness

Adjoint = Literal["checkpoint", "backsolve", "direct"]


def _as_tolerance(value: Scalar | np.ndarray) -> Array | np.ndarray:
    # An array, not a Python float, so that a jitted function does not recompile when it changes.
    return value if isinstance(value, jax.Array) else np.asarray(value, dtype=float)


class Solver(eqx.Module):
    """A frozen description of how to integrate; pass it where a model is evaluated.

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
    """euler, midpoint, heun, bosh3, tsit5, dopri5, dopri8, or any diffrax solver."""
    rtol: Array | np.ndarray = eqx.field(default=1e-5, converter=_as_tolerance)
    atol: Array | np.ndarray = eqx.field(default=1e-5, converter=_as_tolerance)
    steps: int | None = eqx.field(default=None, static=True)
    """Make this many equal steps instead of keeping to tolerances."""
    adjoint: str = eqx.field(default="checkpoint", static=True)
    """checkpoint: exact gradients of the steps made from a bounded number of kept states.
    backsolve: the continuous adjoint solved backwards, constant memory, approximate.
    direct: differentiation through the loop itself, in forward mode too. Faster than checkpoint for a few equal steps,
    whose products it keeps; slower for adaptive ones."""
    per_sample: bool = eqx.field(default=False, static=True)
    """Give each sample its own steps instead of one step size for the whole batch."""
    max_steps: int = eqx.field(default=4096, static=True)

    def __check_init__(self):
        method = find_method(self.method)
        if self.adjoint not in get_args(Adjoint):
            raise ValueError(f"unknown adjoint {self.adjoint!r}; choose from {', '.join(get_args(Adjoint))}")
        if self.steps is not None and self.steps < 1:
            raise ValueError(f"steps must be at least 1, got {self.steps}; leave it out to keep to tolerances instead")
        if self.steps is None and not has_error_estimate(method):
            raise ValueError(
                f"method={self.method!r} has no error estimate, so it cannot keep to a tolerance: give steps=…"
            )
        if self.max_steps < 1:
            raise ValueError(f"max_steps must be at least 1, got {self.max_steps}")
        for name, value in (("rtol", self.rtol), ("atol", self.atol)):
            if is_concrete(value) and not (np.ndim(value) == 0 and np.asarray(value) > 0):
                raise ValueError(
                    f"{name} must be a number above 0, got {value}; no solver reaches an error of nothing. "
                    "float32 can do about 1e-6, float64 about 1e-13"
                )

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
        """Walk along `field` from `u0` at s0 to s1; s1 may lie before s0.

        - `context` is handed to a field that reads it.
        - `at` are points between s0 and s1 at which the course is wanted.
        - `x0` is where the characteristic starts; the origin if left out.
        - `conditioned_on` is what a field that reads u0 sees; the starting value if left out. Give the
          original value when walking back.
        - `with_characteristic` follows x(s) even if no part of the field reads it. It does not change
          the steps.

        Outside of `jit` a failed solve raises `SolveError`. Inside, `Solution.outcome` says how it went.
        """
        u0, x0, start, end, at = check_arguments(field, u0, x0, s0, s1, at, conditioned_on, context)
        z = Condition(
            u0=(u0 if conditioned_on is None else conditioned_on) if "u0" in field.reads else None,
            context=context if "context" in field.reads else None,
        )
        follows_x = field.characteristic_dim > 0 and (with_characteristic or "x" in field.reads)
        solution, stopped = _integrate(self, field, State(u0, x0 if follows_x else None), start, end, at, z)
        if not is_concrete(solution.outcome):
            return solution
        if bool((solution.outcome == Outcome.OUT_OF_STEPS).any()):
            ratio = stiffness(field, solution.stats, stopped, start, end, z)
            solution = eqx.tree_at(lambda it: it.stats.stiffness, solution, ratio, is_leaf=lambda it: it is None)
        return solution.check()


@eqx.filter_jit
def _integrate(
    solver: Solver, field: AbstractField, start: State, s0: Array, s1: Array, at: Array | None, z: Condition
) -> tuple[Solution, State]:
    """The solution, and the state in which the solve stopped, which is the last one that was good if it failed."""
    if not solver.per_sample:
        return _integrate_together(solver, field, start, s0, s1, at, z)

    def one(start: State, z: Condition) -> tuple[Solution, State]:
        start, z = jax.tree.map(lambda leaf: leaf[None], (start, z))
        return _integrate_together(solver, field, start, s0, s1, at, z)

    solution, stopped = jax.vmap(one)(start, z)
    # From [batch, points, 1, …] and [batch, 1, …] to the layout of a joint solve.
    along = lambda path: None if path is None else jnp.swapaxes(path[:, :, 0], 0, 1)
    joint = Solution(
        u=solution.u[:, 0],
        x=None if solution.x is None else solution.x[:, 0],
        s=at,
        trajectory=along(solution.trajectory),
        characteristic=along(solution.characteristic),
        outcome=solution.outcome,
        stats=solution.stats,
    )
    return joint, jax.tree.map(lambda leaf: leaf[:, 0], stopped)


def _integrate_together(
    solver: Solver, field: AbstractField, start: State, s0: Array, s1: Array, at: Array | None, z: Condition
) -> tuple[Solution, State]:
    dtype = start.u.dtype
    # A characteristic that nobody reads is followed without changing the steps.
    joint = start.x is None or "x" in field.reads
    task = Walk(
        method=find_method(solver.method),
        course=Course(field),
        start=start,
        arguments=(s0, s1, z),
        at=None if at is None else jnp.clip((at - s0) / (s1 - s0), 0, 1),
        rtol=jnp.asarray(solver.rtol, dtype),
        atol=jnp.asarray(solver.atol, dtype),
        norms=(optx.rms_norm, dfx.adjoint_rms_seminorm) if joint else (u_norm, u_adjoint_norm),
        steps=solver.steps,
        max_steps=solver.max_steps if solver.steps is None else solver.steps,
        adjoint=solver.adjoint,
    )
    ended = walk_explicitly(task) if is_explicit(task) else walk_with_diffrax(task)
    solution = Solution(
        u=jnp.where(ended.outcome == Outcome.SUCCESS, ended.state.u, jnp.nan),
        x=ended.state.x,
        s=at,
        trajectory=None if ended.path is None else ended.path.u,
        characteristic=None if ended.path is None else ended.path.x,
        outcome=ended.outcome,
        stats=ended.stats,
    )
    return solution, ended.state
