"""The time at which characteristics first cross."""

import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
import optimistix as optx
from jax import lax
from jaxtyping import Array, Float

from charax.fields import Scalar
from charax.pde._flow import integrate_linearized, prepare
from charax.pde._problem import AbstractProblem, cast
from charax.pde._table import determinant, grid, integrate_table, points_per_axis
from charax.solve import Solver
from charax.solve._checks import is_concrete
from charax.solve._roots import Settled, freeze

_REFINEMENTS = 3
_SUBDIVISIONS = 16


def shock_time(problem: AbstractProblem, *, horizon: Scalar = 10.0, solver: Solver | None = None) -> Float[Array, ""]:
    """Compute the first time at which neighboring characteristics from the domain cross.

    Neighbors cross where ∂x/∂ξ, the derivative of the position with respect to the foot point, becomes singular. It is
    integrated along characteristics from all over the domain. The foot point of the first crossing is bracketed by
    repeated refinement, and the time found there as a root. In more than one dimension, a crossing between the foot
    points of the grid is found only if it is wide enough for the grid to resolve it.

    ```python
    from charax.pde import PROBLEMS, shock_time

    assert abs(shock_time(PROBLEMS["burgers-sine"]()) - 1) < 1e-3
    ```

    Args:
        problem: The problem.
        horizon: The last time to consider.
        solver: How to integrate; `per_sample` is set here. By default dopri8 to 1e-10 in float64 and 1e-6 in float32.

    Returns:
        The time, which is differentiable with respect to the problem's parameters; infinity if there is no crossing
        before `horizon`.

    Raises:
        ValueError: If `horizon` is not a finite number above 0.
    """
    horizon = jnp.asarray(horizon, float)
    if is_concrete(horizon) and not (jnp.isfinite(horizon) and horizon > 0):
        raise ValueError(f"horizon must be a finite time above 0, got {horizon}")
    return _shock_time(cast(problem, horizon.dtype), horizon, prepare(solver, horizon.dtype))


def _determinant(t: Array, args: tuple[Array, AbstractProblem, Solver]) -> Array:
    foot, problem, solver = args
    return determinant(integrate_linearized(foot, t, problem, solver)[0].dx[0])


@eqx.filter_jit
def _shock_time(problem: AbstractProblem, horizon: Array, solver: Solver) -> Array:
    fixed = freeze(problem)
    domain = jnp.asarray(problem.domain, horizon.dtype)

    def first_crossing(box: Array, end: Array) -> tuple[Array, Array, Array]:
        """The foot point in a box that crosses first, and the times before and after that."""
        table = integrate_table(fixed, grid(box), end, solver)
        before, after = table.first_crossing()
        # The table's times are too far apart to decide which foot point is first: subdivide where each of them crosses.
        fractions = jnp.linspace(0, 1, _SUBDIVISIONS + 1, dtype=box.dtype)
        times = before + fractions[:, None] * (after - before)
        determinants = jax.vmap(table.determinant_at)(jnp.where(jnp.isfinite(times), times, 0))
        index = jnp.clip(jnp.argmax(determinants <= 0, axis=0), 1, _SUBDIVISIONS)
        select = lambda values, index: jnp.take_along_axis(values, index[None], axis=0)[0]
        high, low = select(determinants, index - 1), select(determinants, index)
        fraction = jnp.where(high > low, high / jnp.where(high > low, high - low, 1), 0)
        crossing = select(times, index - 1) + fraction * (after - before) / _SUBDIVISIONS
        first = jnp.argmin(jnp.where(jnp.isfinite(crossing), crossing, jnp.inf))
        return table.feet[first], before[first], after.min()

    def refine(carry: tuple[Array, Array], shrink: Array) -> tuple[tuple[Array, Array], tuple[Array, Array, Array]]:
        box, end = carry
        foot, lower, upper = first_crossing(box, end)
        # The next table ends at the crossing, so that all its times lie before it.
        end = jnp.where(jnp.isfinite(upper), upper, end)
        half = (box[:, 1] - box[:, 0]) / (points_per_axis(problem.dim) - 1)
        near = jnp.clip(jnp.stack([foot - half, foot + half], axis=1), domain[:, :1], domain[:, 1:])
        return (jnp.where(shrink, near, box), end), (foot, lower, upper)

    # The first pass only finds the end time: its times may be too far apart to decide which foot point is first.
    shrink = jnp.array([False] + [True] * _REFINEMENTS)
    _, passes = lax.scan(refine, (domain, horizon), shrink)
    foot, lower, upper = (values[-1] for values in passes)
    crosses = jnp.isfinite(upper)

    tolerance = 1e-10 if horizon.dtype == jnp.float64 else 1e-6
    finder = optx.Bisection(rtol=tolerance, atol=tolerance, flip=True)
    bracket = {"lower": jnp.where(crosses, lower, 0), "upper": jnp.where(crosses, upper, horizon)}
    middle = (bracket["lower"] + bracket["upper"]) / 2
    time = optx.root_find(_determinant, finder, middle, (foot, fixed, solver), bracket, max_steps=48, throw=False).value
    # The foot point minimizes the time, so the time does not change with it to first order: no gradient through it.
    direct = dataclasses.replace(solver, adjoint="direct")
    time = optx.root_find(
        _determinant, Settled(), lax.stop_gradient(time), (lax.stop_gradient(foot), problem, direct), throw=False
    ).value
    return jnp.where(crosses, time, jnp.inf)
