"""The solution at any points in space and time."""

from typing import Literal, overload

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optimistix as optx
from jax import lax
from jaxtyping import Array, Bool, Float, Int

from charax.pde._flow import arrive, prepare, value_shape
from charax.pde._foot import Found, Search, Verdict, default_root_finder
from charax.pde._problem import AbstractProblem, cast
from charax.pde._shock import shock_time
from charax.pde._table import Pieces, grid, trace_table
from charax.solve import Solver
from charax.solve._checks import is_concrete
from charax.solve._roots import freeze

_CHUNK = 2048
"""Points solved at once. Memory is this times the feet of the table; more points come in turns."""


class FootPointError(RuntimeError):
    """A point whose characteristic was not found, in words."""


class MultivaluedError(RuntimeError):
    """Several characteristics reach a point, each with its own value."""

    def __init__(self, message: str, shock_time: float, affected: np.ndarray):
        super().__init__(message)
        self.shock_time = shock_time
        """When the first two characteristics cross."""
        self.affected = affected
        """Which of the points, as a mask."""


class Branches(eqx.Module):
    """All values at each point, in the order of their foot points, padded with NaN to the largest number of them."""

    u: Float[Array, "points branches *n"]
    foot: Float[Array, "points branches"]
    valid: Bool[Array, "points branches"]
    """Which entries are values and which are padding."""

    @property
    def count(self) -> Int[Array, "points"]:
        """The number of values at each point: 1 where the solution is what one expects."""
        return self.valid.sum(axis=1)


@overload
def solve(
    problem: AbstractProblem,
    x: Float[Array, "*points d"],
    t: Float[Array, "*times"],
    *,
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
    allow_multivalued: bool = False,
    solver: Solver | None = None,
    root_finder: optx.AbstractRootFinder | None = None,
) -> Float[Array, "count *n"] | Branches:
    """u at the points (x, t), by following the characteristic through each of them from its foot point.

    - `x` is [points, d], one row per point, and `t` is [points], or one time for all.
    - `allow_multivalued` returns all values of every point as `Branches`, in one space dimension and outside
      of `jit`. Without it, a point that several characteristics reach is a `MultivaluedError`.
    - `solver` follows the characteristics; its adjoint and `per_sample` are chosen here. The default keeps to 1e-10
      in float64 and to 1e-6 in float32.
    - `root_finder` is any of optimistix that takes bounds; Newton's method if left out.

    Gradients with respect to the problem's parameters, x and t go through the root finder implicitly.
    Inside `jit` nothing can be raised: points without a single value are NaN.

    On a line, points are multivalued one by one. In more dimensions a search for all characteristics through a
    point would not be safe, so every point after the first crossing counts as multivalued.

    ```python
    import jax.numpy as jnp
    from charax.pde import PROBLEMS, solve

    burgers = PROBLEMS["burgers-sine"]()
    x, t = jnp.array([[3.0], [-1.0]]), jnp.array([0.5, 0.5])
    assert jnp.allclose(solve(burgers, x, t), burgers.exact(x, t), atol=1e-4)
    assert solve(burgers, x, 4 * t, allow_multivalued=True).count.tolist() == [3, 1]
    ```
    """
    x, t = _check(problem, x, t)
    problem = cast(problem, x.dtype)
    value_shape(problem, x.dtype)
    solver = prepare(solver, x.dtype)
    finder = default_root_finder(problem, x.dtype) if root_finder is None else root_finder
    if allow_multivalued:
        return _solve_branches(problem, x, t, solver, finder)
    found = _solve(problem, x, t, solver, finder)
    if is_concrete(found.verdict):
        _raise_if_failed(problem, x, t, found.verdict, solver)
    return found.u


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
        places, times = np.asarray(x), np.asarray(t)
        for wrong, what in (
            (~(np.isfinite(places).all(axis=1) & np.isfinite(times)), "is not finite: remove NaN and infinity first"),
            (times < 0, "lies before the initial time: t must be at least 0"),
        ):
            if wrong.any():
                raise ValueError(f"{_name(places, times, wrong)} {what}")
    return x, t


def _name(x: np.ndarray, t: np.ndarray, which: np.ndarray) -> str:
    first = int(np.argmax(which))
    place = ", ".join(f"{value:.6g}" for value in x[first])
    some = f" (the first of {which.sum()} such points)" if which.sum() > 1 else ""
    return f"point {first} at x=({place}), t={t[first]:.6g}{some}"


_REASONS = {
    Verdict.OUTSIDE: "is reached by no characteristic from the domain {domain}: widen the problem's domain",
    Verdict.NOT_CONVERGED: (
        "has no foot point that the root finder could converge to. Close to a crossing the foot points nearly "
        "coincide; elsewhere give more steps or looser tolerances, root_finder=optimistix.Newton(rtol=…, atol=…)"
    ),
    Verdict.NOT_FOLLOWED: (
        "lies on a characteristic that the solver could not follow to its end: u may run off to infinity before, "
        "or the solver needs more max_steps or looser tolerances"
    ),
}


def _raise_if_failed(problem: AbstractProblem, x: Array, t: Array, verdict: Array, solver: Solver) -> None:
    codes = np.asarray(verdict)
    if not codes.any():
        return
    places, times = np.asarray(lax.stop_gradient(x)), np.asarray(lax.stop_gradient(t))
    multivalued = codes == Verdict.MULTIVALUED
    if multivalued.any():
        shock = float(shock_time(freeze(problem), horizon=times[multivalued].max(), solver=solver))
        affected = f"{multivalued.sum()} of {multivalued.size} points"
        if problem.dim == 1:
            text = f"several characteristics reach {affected}, the first being {_name(places, times, multivalued)}"
            remedy = "Ask for earlier times, or for all values with allow_multivalued=True."
        else:
            text = f"{affected} may be reached by several characteristics, {_name(places, times, multivalued)}"
            remedy = "Ask for earlier times, or shrink the problem's domain to where the characteristics do not cross."
        when = (
            f"characteristics first cross at t={shock:.6g}" if np.isfinite(shock) else "neighbours have crossed there"
        )
        raise MultivaluedError(f"{text}: {when}. {remedy}", shock, multivalued)
    for code, reason in _REASONS.items():
        which = codes == code
        if which.any():
            raise FootPointError(f"{_name(places, times, which)} {reason.format(domain=problem.domain)}")


def _make_search(problem: AbstractProblem, t: Array, solver: Solver, finder: optx.AbstractRootFinder) -> Search:
    fixed, end = freeze(problem), lax.stop_gradient(jnp.max(t))
    table = trace_table(fixed, grid(jnp.asarray(problem.domain, t.dtype)), end, solver)
    return Search(problem, table, solver, finder)


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
def _solve(problem: AbstractProblem, x: Array, t: Array, solver: Solver, finder: optx.AbstractRootFinder) -> Found:
    return _in_chunks(_make_search(problem, t, solver, finder), x, t)


@eqx.filter_jit
def _count(problem: AbstractProblem, x: Array, t: Array, solver: Solver, finder: optx.AbstractRootFinder) -> Array:
    search = _make_search(problem, t, solver, finder)
    return _in_chunks(lambda x, t: Pieces(search.table, x, t).count, x, t)


@eqx.filter_jit
def _all_branches(
    problem: AbstractProblem, x: Array, t: Array, solver: Solver, finder: optx.AbstractRootFinder, most: int
) -> tuple[Branches, Array]:
    search = _make_search(problem, t, solver, finder)

    def values(x: Array, t: Array) -> tuple[Branches, Array]:
        feet, valid, _ = search.all_on_line(x, t, most)
        walk = lambda foot, t: arrive(foot[None], t, problem, solver).u
        u = jax.vmap(jax.vmap(walk, in_axes=(0, None)))(feet, t)
        valid &= jnp.isfinite(u).reshape(*valid.shape, -1).all(axis=-1)
        shown = valid.reshape(*valid.shape, *(1,) * (u.ndim - 2))
        verdict = jnp.where(valid.any(axis=1), Verdict.FOUND, Verdict.NOT_CONVERGED)
        return Branches(jnp.where(shown, u, jnp.nan), jnp.where(valid, feet, jnp.nan), valid), verdict

    return _in_chunks(values, x, t)


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
    out, verdict = _all_branches(problem, x, t, solver, finder, max(1, int(expected.max())))
    _raise_if_failed(problem, x, t, jnp.where(expected == 0, Verdict.OUTSIDE, verdict), solver)
    # Valid values first: padding goes to the end, and columns that nobody fills go away.
    order = jnp.argsort(~out.valid, axis=1, stable=True)
    out = jax.tree.map(lambda leaf: jax.vmap(lambda row, index: row[index])(leaf, order), out)
    return jax.tree.map(lambda leaf: leaf[:, : int(out.count.max())], out)
