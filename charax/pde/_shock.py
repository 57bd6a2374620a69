"""When characteristics first cross."""

import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
import optimistix as optx
from jax import lax
from jaxtyping import Array, Float

from charax.fields import Scalar
from charax.pde._flow import follow, prepare
from charax.pde._problem import AbstractProblem, cast
from charax.pde._table import determinant, feet_per_axis, grid, trace_table
from charax.solve import Solver
from charax.solve._checks import is_concrete
from charax.solve._roots import Settled, freeze

_ZOOMS = 3
_SHARES = 16


def shock_time(problem: AbstractProblem, *, horizon: Scalar = 10.0, solver: Solver | None = None) -> Float[Array, ""]:
    """The first time at which neighbouring characteristics from the domain cross; infinity if none do by `horizon`.

    Neighbours cross where ∂x/∂ξ, the change of the place with the foot point, becomes singular. It is followed along
    characteristics from all over the domain. The foot point of the first crossing is closed in on, and the time
    found there as a root. In more than one dimension a crossing between the traced feet is found only if it widens
    enough to be seen by the grid.

    ```python
    from charax.pde import PROBLEMS, shock_time

    assert abs(shock_time(PROBLEMS["burgers-sine"]()) - 1) < 1e-3
    ```
    """
    horizon = jnp.asarray(horizon, float)
    if is_concrete(horizon) and not (jnp.isfinite(horizon) and horizon > 0):
        raise ValueError(f"horizon must be a finite time above 0, got {horizon}")
    return _shock_time(cast(problem, horizon.dtype), horizon, prepare(solver, horizon.dtype))


def _gap(t: Array, args: tuple[Array, AbstractProblem, Solver]) -> Array:
    foot, problem, solver = args
    return determinant(follow(foot, t, problem, solver)[0].dx[0])


@eqx.filter_jit
def _shock_time(problem: AbstractProblem, horizon: Array, solver: Solver) -> Array:
    fixed = freeze(problem)
    whole = jnp.asarray(problem.domain, horizon.dtype)

    def first(box: Array, end: Array) -> tuple[Array, Array, Array]:
        """The foot that crosses first among those all over a box, and the times before and after that."""
        table = trace_table(fixed, grid(box), end, solver)
        before, after = table.first_crossing()
        # The table's times are too far apart to tell which foot is first: look closer where each of them crosses.
        shares = jnp.linspace(0, 1, _SHARES + 1, dtype=box.dtype)
        times = before + shares[:, None] * (after - before)
        spread = jax.vmap(table.spread_at)(jnp.where(jnp.isfinite(times), times, 0))
        index = jnp.clip(jnp.argmax(spread <= 0, axis=0), 1, _SHARES)
        pick = lambda values, index: jnp.take_along_axis(values, index[None], axis=0)[0]
        high, low = pick(spread, index - 1), pick(spread, index)
        share = jnp.where(high > low, high / jnp.where(high > low, high - low, 1), 0)
        when = pick(times, index - 1) + share * (after - before) / _SHARES
        best = jnp.argmin(jnp.where(jnp.isfinite(when), when, jnp.inf))
        return table.feet[best], before[best], after.min()

    def closer(carry: tuple[Array, Array], zoom: Array) -> tuple[tuple[Array, Array], tuple[Array, Array, Array]]:
        box, end = carry
        foot, lower, upper = first(box, end)
        # Only as far as the crossing, so that the next table has all its times before it.
        end = jnp.where(jnp.isfinite(upper), upper, end)
        half = (box[:, 1] - box[:, 0]) / (feet_per_axis(problem.dim) - 1)
        near = jnp.clip(jnp.stack([foot - half, foot + half], axis=1), whole[:, :1], whole[:, 1:])
        return (jnp.where(zoom, near, box), end), (foot, lower, upper)

    # The first pass only says until when to look: its times may be too far apart to tell which foot is first.
    zooms = jnp.array([False] + [True] * _ZOOMS)
    _, passes = lax.scan(closer, (whole, horizon), zooms)
    foot, lower, upper = (values[-1] for values in passes)
    crosses = jnp.isfinite(upper)

    tolerance = 1e-10 if horizon.dtype == jnp.float64 else 1e-6
    finder = optx.Bisection(rtol=tolerance, atol=tolerance, flip=True)
    bracket = {"lower": jnp.where(crosses, lower, 0), "upper": jnp.where(crosses, upper, horizon)}
    middle = (bracket["lower"] + bracket["upper"]) / 2
    when = optx.root_find(_gap, finder, middle, (foot, fixed, solver), bracket, max_steps=48, throw=False).value
    # The foot is where the time is least, so its own change does not change the time: no gradient through it.
    direct = dataclasses.replace(solver, adjoint="direct")
    when = optx.root_find(
        _gap, Settled(), lax.stop_gradient(when), (lax.stop_gradient(foot), problem, direct), throw=False
    ).value
    return jnp.where(crosses, when, jnp.inf)
