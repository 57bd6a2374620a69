"""The solution at any points in space and time."""

from typing import Literal, overload

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optimistix as optx
from jax import lax
from jaxtyping import Array, Bool, Float, Int

from charax.pde._entropy import check_after_shock, solve_entropy
from charax.pde._failures import describe_point, raise_if_failed
from charax.pde._flow import integrate_characteristic, prepare, value_shape
from charax.pde._foot import FootPointSearch, PointSolution, PointStatus, default_root_finder
from charax.pde._pieces import MonotonePieces
from charax.pde._problem import AbstractProblem, cast
from charax.pde._table import grid, integrate_table
from charax.solve import Solver
from charax.solve._checks import is_concrete
from charax.solve._roots import freeze

_CHUNK = 2048
"""Points solved at once; more points are solved in turns. Memory is this times the foot points of the table."""


class Branches(eqx.Module):
    """All values at each point, in the order of their foot points, padded with NaN to the largest number of them.

    ```python
    import jax.numpy as jnp
    from charax.pde import Branches, Burgers, Sine, solve

    out: Branches = solve(Burgers(profile=Sine()), jnp.array([[3.0]]), jnp.array([2.0]), allow_multivalued=True)
    assert out.count.tolist() == [3]
    ```
    """

    u: Float[Array, "points branches *n"]
    """The values."""
    foot: Float[Array, "points branches"]
    """Their foot points."""
    valid: Bool[Array, "points branches"]
    """Which entries are values and which are padding."""

    @property
    def count(self) -> Int[Array, "points"]:
        """The number of values at each point: 1 where the solution is single-valued."""
        return self.valid.sum(axis=1)


@overload
def solve(
    problem: AbstractProblem,
    x: Float[Array, "*points d"],
    t: Float[Array, "*times"],
    *,
    after_shock: Literal["error", "entropy"] = "error",
    allow_multivalued: Literal[False] = False,
    solver: Solver | None = None,
    root_finder: optx.AbstractRootFinder | None = None,
) -> Float[Array, "count *n"]: ...


@overload
def solve(
    problem: AbstractProblem,
    x: Float[Array, "*points d"],
    t: Float[Array, "*times"],
    *,
    allow_multivalued: Literal[True],
    solver: Solver | None = None,
    root_finder: optx.AbstractRootFinder | None = None,
) -> Branches: ...


def solve(
    problem: AbstractProblem,
    x: Float[Array, "*points d"],
    t: Float[Array, "*times"],
    *,
    after_shock: Literal["error", "entropy"] = "error",
    allow_multivalued: bool = False,
    solver: Solver | None = None,
    root_finder: optx.AbstractRootFinder | None = None,
) -> Float[Array, "count *n"] | Branches:
    """Evaluate the solution of a PDE at points (x, t), by the method of characteristics.

    The characteristic through each point is found by a search for its foot point. Gradients with respect to the
    problem's parameters, x and t go through the root finder implicitly. Inside `jit` nothing can be raised: points
    without a single value are NaN.

    On a line, points are multivalued one by one. In more dimensions a search for all characteristics through a point
    would not be safe, so every point after the first crossing counts as multivalued.

    ```python
    import jax.numpy as jnp
    from charax.pde import PROBLEMS, solve

    burgers = PROBLEMS["burgers-sine"]()
    x, t = jnp.array([[3.0], [-1.0]]), jnp.array([0.5, 0.5])
    assert jnp.allclose(solve(burgers, x, t), burgers.exact(x, t), atol=1e-4)
    assert solve(burgers, x, 4 * t, allow_multivalued=True).count.tolist() == [3, 1]
    ```

    Args:
        problem: The problem.
        x: Positions, one row per point.
        t: Times, one per point, or one for all.
        after_shock: What to do where characteristics have crossed: an error, or the entropy solution, whose shocks
            `shocks` lists. The latter is for scalar problems on a line, outside of `jit`.
        allow_multivalued: Whether to return all values of every point, in one space dimension and outside of `jit`.
            Otherwise a point that several characteristics reach is an error.
        solver: How to integrate; its adjoint and `per_sample` are set here. By default dopri8 to 1e-10 in float64 and
            1e-6 in float32.
        root_finder: Any root finder of optimistix that takes bounds; Newton's method if left out.

    Returns:
        u at the points, or `Branches` with `allow_multivalued`.

    Raises:
        ValueError: If the points are not finite, lie before t = 0, or have a wrong shape, or the entropy solution is
            not supported for the problem.
        MultivaluedError: If several characteristics reach a point.
        FootPointError: If the characteristic through a point is not found.
    """
    x, t = _check(problem, x, t)
    problem = cast(problem, x.dtype)
    value_shape(problem, x.dtype)
    if after_shock != "error":
        check_after_shock(after_shock, allow_multivalued, root_finder)
        entropy = solve_entropy(problem, x, t, solver)
        raise_if_failed(problem, x, t, entropy.status, prepare(solver, x.dtype))
        return entropy.u
    solver = prepare(solver, x.dtype)
    finder = default_root_finder(problem, x.dtype) if root_finder is None else root_finder
    if allow_multivalued:
        return _solve_branches(problem, x, t, solver, finder)
    solution = _solve(problem, x, t, solver, finder)
    if is_concrete(solution.status):
        raise_if_failed(problem, x, t, solution.status, solver)
    return solution.u


def _check(problem: AbstractProblem, x, t) -> tuple[Array, Array]:
    x, t = jnp.asarray(x), jnp.asarray(t)
    if x.ndim != 2 or x.shape[1] != problem.dim:
        hint = "; for a line, write x[:, None]" if x.ndim == 1 and problem.dim == 1 else ""
        raise ValueError(f"x must be [points, {problem.dim}], one row per point, got shape {x.shape}{hint}")
    if t.ndim > 1 or (t.ndim == 1 and t.shape != x.shape[:1]):
        raise ValueError(f"t must be one time for each of the {x.shape[0]} points, got shape {t.shape}")
    if x.shape[0] == 0:
        raise ValueError("there are no points: give at least one row of x")
    x = x if jnp.issubdtype(x.dtype, jnp.floating) else x.astype(float)
    t = jnp.broadcast_to(t.astype(x.dtype), x.shape[:1])
    if is_concrete(x) and is_concrete(t):
        positions, times = np.asarray(x), np.asarray(t)
        for wrong, what in (
            (
                ~(np.isfinite(positions).all(axis=1) & np.isfinite(times)),
                "is not finite: remove NaN and infinity first",
            ),
            (times < 0, "lies before the initial time: t must be at least 0"),
        ):
            if wrong.any():
                raise ValueError(f"{describe_point(positions, times, wrong)} {what}")
    return x, t


def _make_search(
    problem: AbstractProblem, t: Array, solver: Solver, finder: optx.AbstractRootFinder
) -> FootPointSearch:
    fixed, end = freeze(problem), lax.stop_gradient(jnp.max(t))
    table = integrate_table(fixed, grid(jnp.asarray(problem.domain, t.dtype)), end, solver)
    return FootPointSearch(problem, table, solver, finder)


def _in_chunks(function, x: Array, t: Array):
    """`function(x, t)` for a bounded number of points at a time."""
    points = x.shape[0]
    if points <= _CHUNK:
        return function(x, t)
    rows = -(-points // _CHUNK)
    fill = lambda leaf: jnp.concatenate([leaf, jnp.broadcast_to(leaf[-1:], (rows * _CHUNK - points, *leaf.shape[1:]))])
    split = lambda leaf: fill(leaf).reshape(rows, _CHUNK, *leaf.shape[1:])
    out = lax.map(lambda chunk: function(*chunk), (split(x), split(t)))
    return jax.tree.map(lambda leaf: leaf.reshape(rows * _CHUNK, *leaf.shape[2:])[:points], out)


@eqx.filter_jit
def _solve(
    problem: AbstractProblem, x: Array, t: Array, solver: Solver, finder: optx.AbstractRootFinder
) -> PointSolution:
    return _in_chunks(_make_search(problem, t, solver, finder), x, t)


@eqx.filter_jit
def _count(problem: AbstractProblem, x: Array, t: Array, solver: Solver, finder: optx.AbstractRootFinder) -> Array:
    search = _make_search(problem, t, solver, finder)
    return _in_chunks(lambda x, t: MonotonePieces(search.table, x, t).count, x, t)


@eqx.filter_jit
def _all_branches(
    problem: AbstractProblem, x: Array, t: Array, solver: Solver, finder: optx.AbstractRootFinder, most: int
) -> tuple[Branches, Array]:
    search = _make_search(problem, t, solver, finder)

    def branches(x: Array, t: Array) -> tuple[Branches, Array]:
        feet, valid, _ = search.all_on_line(x, t, most)
        value = lambda foot, t: integrate_characteristic(foot[None], t, problem, solver).u
        u = jax.vmap(jax.vmap(value, in_axes=(0, None)))(feet, t)
        valid &= jnp.isfinite(u).reshape(*valid.shape, -1).all(axis=-1)
        mask = valid.reshape(*valid.shape, *(1,) * (u.ndim - 2))
        status = jnp.where(valid.any(axis=1), PointStatus.FOUND, PointStatus.NOT_CONVERGED)
        return Branches(jnp.where(mask, u, jnp.nan), jnp.where(valid, feet, jnp.nan), valid), status

    return _in_chunks(branches, x, t)


def _solve_branches(
    problem: AbstractProblem, x: Array, t: Array, solver: Solver, finder: optx.AbstractRootFinder
) -> Branches:
    if problem.dim != 1:
        raise ValueError(
            f"allow_multivalued=True finds all values on a line only, and this problem has {problem.dim} space "
            "dimensions: ask for times before shock_time(problem)"
        )
    expected = _count(problem, x, t, solver, finder)
    if not is_concrete(expected):
        raise ValueError(
            "the number of branches is not known inside jit or grad: call solve(…, allow_multivalued=True) outside"
        )
    out, status = _all_branches(problem, x, t, solver, finder, max(1, int(expected.max())))
    raise_if_failed(problem, x, t, jnp.where(expected == 0, PointStatus.OUTSIDE, status), solver)
    # Padding is moved to the end, and columns of nothing else are removed.
    order = jnp.argsort(~out.valid, axis=1, stable=True)
    out = jax.tree.map(lambda leaf: jax.vmap(lambda row, index: row[index])(leaf, order), out)
    return jax.tree.map(lambda leaf: leaf[:, : int(out.count.max())], out)
