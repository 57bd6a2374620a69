"""The entropy solution of a scalar balance law on a line, past the crossing of characteristics.

The equation uₜ + a(x, t, u)·uₓ = c(x, t, u) is read as the balance law of u,

    uₜ + ∂ₓf(x, t, u) = c + ∂ₓf|ᵤ    with ∂f/∂u = a,

whose weak solutions may have shocks. The entropy solution is the one in which characteristics run into shocks and never
out of them; it is unique (Kruzhkov 1970). Where the flux f is convex or concave in u, every point off the shocks lies
on exactly one characteristic that has met no shock before (Dafermos 1977), so the solution is u along that
characteristic, and what remains is to choose among those that meet:

- Without a source, and with a velocity of u alone, by least action (`_entropy_action`): the potential ∫u dx of the
  solution is the least among the branches' for convex f (Lax 1957). No history is needed, so any time costs the same.
- Otherwise by the paths of the shocks (`_entropy_tracking`), from Rankine and Hugoniot's condition ds/dt = [f]/[u].

Both start from the initial value as a curve with a vertical piece at every discontinuity (`_entropy_graph`), which
makes rarefactions and shocks of discontinuous initial values no special cases.

References: P. D. Lax, Hyperbolic systems of conservation laws II, Comm. Pure Appl. Math. 10 (1957) 537–566;
C. M. Dafermos, Generalized characteristics and the structure of solutions of hyperbolic conservation laws, Indiana
Univ. Math. J. 26 (1977) 1097–1119, and Hyperbolic Conservation Laws in Continuum Physics, Springer, chapters 10 and 11;
M. Bardi and L. C. Evans, On Hopf's formulas for solutions of Hamilton–Jacobi equations, Nonlinear Anal. 8 (1984).
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Bool, Float, Int

from charax.fields import Condition
from charax.pde._entropy_action import action_gradient, least_action
from charax.pde._entropy_curve import trace_curve, tracking_gradient
from charax.pde._entropy_graph import PARTS, Graph, initial_graph, is_homogeneous
from charax.pde._entropy_jumps import find_jumps
from charax.pde._entropy_law import Law, make_law
from charax.pde._entropy_paths import Tracks
from charax.pde._entropy_tracking import TIMES, Tracker
from charax.pde._flow import Flow, prepare, value_shape
from charax.pde._foot import PointStatus
from charax.pde._problem import AbstractProblem, cast
from charax.solve import Solver
from charax.solve._checks import is_concrete
from charax.solve._roots import freeze


class Shocks(eqx.Module):
    """The shocks of an entropy solution at some times, from left to right, padded with NaN to the largest number.

    ```python
    from charax.pde import Burgers, Gaussian, shocks

    found = shocks(Burgers(profile=Gaussian()), [1.0, 4.0])
    assert found.count.tolist() == [0, 1]
    assert found.left[1, 0] > found.right[1, 0]
    ```
    """

    t: Float[Array, "times"]
    """The times."""
    x: Float[Array, "times shocks"]
    """Positions."""
    left: Float[Array, "times shocks"]
    """u immediately to the left of each shock."""
    right: Float[Array, "times shocks"]
    """u immediately to the right of each shock."""
    valid: Bool[Array, "times shocks"]
    """Which entries are shocks and which are padding."""

    @property
    def count(self) -> Int[Array, "times"]:
        """The number of shocks at each time."""
        return self.valid.sum(axis=1)


def shocks(
    problem: AbstractProblem, t: Float[Array, "*times"] | float | Sequence[float], *, solver: Solver | None = None
) -> Shocks:
    """Find the shocks of the entropy solution of a scalar problem on a line.

    Contact discontinuities, which move with the characteristics, are not shocks. A shock is listed once it has absorbed
    the characteristics between two points of a table (one in 2048 of the domain), shortly after it forms.

    ```python
    import jax.numpy as jnp
    from charax.pde import Burgers, Ramp, shocks, solve

    burgers = Burgers(profile=Ramp())  # all characteristics from the ramp meet at x = 1, t = 1
    found = shocks(burgers, jnp.array([0.5, 2.0]))
    assert found.count.tolist() == [0, 1] and abs(found.x[1, 0] - 1.5) < 1e-4
    u = solve(burgers, jnp.array([[1.4], [1.6]]), jnp.array([2.0, 2.0]), after_shock="entropy")
    assert jnp.allclose(u, jnp.array([1.0, 0.0]), atol=1e-4)
    ```

    Args:
        problem: A scalar problem on a line.
        t: One time or several, at least 0.
        solver: The solver of the characteristics of problems with a source, or whose velocity depends on x or t.

    Returns:
        Positions and states at every time.

    Raises:
        ValueError: If the problem has several dimensions or values, or a flux that is neither convex nor concave.
    """
    _require_known(problem, t)
    times = jnp.atleast_1d(jnp.asarray(t, float))
    when = np.asarray(times, float)
    if times.ndim != 1 or when.size == 0 or not np.isfinite(when).all() or (when < 0).any():
        raise ValueError(f"t must be one time or a row of times, finite and at least 0, got {t}")
    method = _choose(cast(problem, times.dtype), float(when.max()), solver, times.dtype)
    row, x, left, right = method.jumps(when)
    # A shock without a jump is one that is only just forming.
    jump = np.abs(left - right) > 1e3 * float(jnp.finfo(times.dtype).eps) ** 0.75 * (1 + np.abs(left))
    order = np.lexsort((x, row))
    row, x, left, right = (values[order[jump[order]]] for values in (row, x, left, right))
    count = np.bincount(row, minlength=when.size)
    column = np.arange(row.size) - np.repeat(np.cumsum(count) - count, count)
    table = np.full((3, when.size, int(count.max())), np.nan)
    table[:, row, column] = x, left, right
    x, left, right = jnp.asarray(table, times.dtype)
    return Shocks(times, x, left, right, jnp.isfinite(x))


class Solved(NamedTuple):
    """The entropy solution at points, with a `PointStatus` for each."""

    u: Float[Array, "points"]
    status: Int[Array, "points"]


def _is_known(tree: object) -> bool:
    return all(map(is_concrete, filter(eqx.is_array, jax.tree.leaves(tree))))


def _require_known(*trees: object) -> None:
    if not _is_known(trees):
        raise ValueError("the entropy solution cannot be found inside jit or vmap: call solve or shocks outside of it")


def check_after_shock(after_shock: str, allow_multivalued: bool, root_finder: object) -> None:
    """Refuse arguments of `solve` that contradict each other."""
    if after_shock != "entropy":
        raise ValueError(f"after_shock must be 'error' or 'entropy', got {after_shock!r}")
    if allow_multivalued:
        raise ValueError(
            "the entropy solution has one value per point: give after_shock or allow_multivalued, not both"
        )
    if root_finder is not None:
        raise ValueError("the entropy solution takes no root finder: leave root_finder out, or after_shock='entropy'")


def solve_entropy(
    problem: AbstractProblem, x: Float[Array, "points d"], t: Float[Array, "points"], solver: Solver | None
) -> Solved:
    """The entropy solution at points; NaN where the domain does not determine it."""
    _require_known(freeze(problem), lax.stop_gradient((x, t)))
    position, time = (np.asarray(lax.stop_gradient(values), float) for values in (x[:, 0], t))
    method = _choose(problem, float(time.max()), solver, x.dtype)
    u, reached, gradient = method.evaluate(position, time)
    u = jnp.asarray(u, x.dtype)
    if not _is_known((problem, x, t)):
        u = u + gradient(problem, x[:, 0], t)
    return _solved(u, jnp.asarray(reached))


@eqx.filter_jit
def _solved(u: Array, reached: Array) -> Solved:
    status = jnp.where(jnp.isfinite(lax.stop_gradient(u)), PointStatus.FOUND, PointStatus.NOT_INTEGRATED)
    return Solved(jnp.where(reached, u, jnp.nan), jnp.where(reached, status, PointStatus.OUTSIDE))


def _check(problem: AbstractProblem, dtype: jnp.dtype) -> None:
    if problem.dim != 1:
        raise ValueError(
            f"the entropy solution is found on a line only, and this problem has {problem.dim} space dimensions: "
            "ask for times before shock_time(problem)"
        )
    shape = value_shape(problem, dtype)
    if shape:
        raise ValueError(
            f"the entropy solution is found for a scalar u only, and here u has shape {shape}: return [batch] from "
            "initial(x), or ask for times before shock_time(problem)"
        )
    rows = jax.ShapeDtypeStruct((3,), dtype)
    derivatives = lambda x, t, u: Flow(problem)(jnp.ones((), dtype), x, u, Condition(context=t))
    jax.eval_shape(derivatives, jax.ShapeDtypeStruct((3, 1), dtype), rows, rows)  # raises if a shape is wrong


Gradient = Callable[[AbstractProblem, Array, Array], Array]
"""From the problem, x and t: zero, with the derivative of u with respect to them."""


class _ByAction(NamedTuple):
    """The entropy solution of a conservation law, by least action."""

    law: Law
    graph: Graph

    def evaluate(self, x: np.ndarray, t: np.ndarray) -> tuple[np.ndarray, np.ndarray, Gradient]:
        """u at the points, whether the domain determines it, and its gradient."""
        found, reached = least_action(self.law, x, t)
        value = np.asarray(found.value)
        rows = found.foot, value, np.asarray(self.law.fan)[found.interval]
        gradient = lambda problem, x, t: action_gradient(problem, x, t, *map(jnp.asarray, rows))
        return value, reached, gradient

    def jumps(self, t: np.ndarray) -> tuple[np.ndarray, ...]:
        """All shocks: the index of the time, position, left and right state."""
        later, start = np.flatnonzero(t > 0), np.flatnonzero(t == 0)
        found = find_jumps(self.law, self.graph, t[later])
        speed = np.asarray(self.law.speed, float)
        ends = [ends for ends in self.graph.jumps if (np.diff(speed[ends[0] : ends[1] + 1]) < 0).any()]
        first, last = np.array(ends, int).reshape(-1, 2).T
        states = self.graph.foot[first], self.graph.value[first], self.graph.value[last]
        initial = (np.repeat(start, first.size), *(np.tile(values, start.size) for values in states))
        after = (later[found.row], found.x, found.left, found.right)
        return tuple(np.concatenate(pair) for pair in zip(initial, after, strict=True))


class _ByTracking(NamedTuple):
    """The entropy solution of a balance law, by front tracking."""

    tracks: Tracks
    graph: Graph
    solver: Solver

    def evaluate(self, x: np.ndarray, t: np.ndarray) -> tuple[np.ndarray, np.ndarray, Gradient]:
        """u at the points, whether the domain determines it, and its gradient."""
        at, reached = self.tracks.evaluate(x, t)
        node = PARTS * (at.interval // PARTS) + at.coordinate
        lower = np.minimum(node.astype(int), self.graph.foot.size - 2)
        between = lambda values: values[lower] + (node - lower) * (values[lower + 1] - values[lower])
        foot, value, fan = between(self.graph.foot), between(self.graph.value), self.graph.fan[at.interval]

        def gradient(problem: AbstractProblem, x: Array, t: Array) -> Array:
            known = lambda values: jnp.asarray(values, x.dtype)
            start = known(foot), known(value)
            return tracking_gradient(problem, x, t, start, known(at.slope), jnp.asarray(fan), self.solver)

        return at.u, reached, gradient

    def jumps(self, t: np.ndarray) -> tuple[np.ndarray, ...]:
        """All shocks: the index of the time, position, left and right state."""
        row, x = self.tracks.shocks(t)
        left, right = (self.tracks.evaluate(x, t[row], from_right=side)[0].u for side in (False, True))
        return row, x, left, right


def _choose(problem: AbstractProblem, end: float, solver: Solver | None, dtype: jnp.dtype) -> _ByAction | _ByTracking:
    """The method that suits the problem, until a time."""
    _check(problem, dtype)
    fixed = freeze(problem)
    graph = initial_graph(fixed, dtype)
    end = end if end > 0 else 1.0
    if is_homogeneous(fixed, graph, end, dtype):
        return _ByAction(make_law(fixed, graph, dtype), graph)
    chosen = prepare(solver, dtype)
    curve = trace_curve(fixed, graph, end, TIMES, chosen, dtype)
    tolerance = max(float(chosen.rtol), float(chosen.atol))
    return _ByTracking(Tracker(fixed, curve, graph, dtype, tolerance).run(), graph, chosen)
