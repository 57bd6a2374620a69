"""The foot point: where the characteristic through (x, t) starts."""

import enum

import equinox as eqx
import jax
import jax.numpy as jnp
import lineax as lx
import optimistix as optx
from jax import lax
from jaxtyping import Array, Bool, Float, Int

from charax.pde.flow import Arrival, arrive
from charax.pde.problem import AbstractProblem
from charax.pde.table import Table, brackets, determinant, nearest
from charax.solve import Outcome, Solver

_MAX_STEPS = 32
_CONFIRMED = 5


class Verdict(enum.IntEnum):
    """What became of one point."""

    FOUND = 0
    OUTSIDE = 1
    NOT_CONVERGED = 2
    NOT_FOLLOWED = 3
    MULTIVALUED = 4


class Found(eqx.Module):
    """The value at each point, where it comes from, and a `Verdict`."""

    u: Float[Array, "points *n"]
    foot: Float[Array, "points d"]
    verdict: Int[Array, "points"]


def default_root_finder(problem: AbstractProblem, dtype: jnp.dtype) -> optx.AbstractRootFinder:
    """Newton's method. Its last step starts closer than the tolerance, and squares the distance."""
    largest = max(max(abs(lower), abs(upper)) for lower, upper in problem.domain)
    return optx.Newton(rtol=0.0, atol=max(1e-9, 64 * float(jnp.finfo(dtype).eps) * largest))


def _miss(foot: Array, args: tuple[Array, Array, AbstractProblem, Solver]) -> Array:
    x, t, problem, solver = args
    return arrive(foot, t, problem, solver).x - x


class Search(eqx.Module):
    """Everything that stays the same for all points of a call."""

    problem: AbstractProblem
    table: Table
    solver: Solver
    finder: optx.AbstractRootFinder
    crossing: Float[Array, ""]
    """When the first two characteristics of the table cross."""

    def find(
        self, x: Array, t: Array, start: Array, bounds: tuple[Array, Array] | None
    ) -> tuple[Array, Bool[Array, ""]]:
        """The foot point of one point, with implicit gradients, and whether it is one."""
        line = self.problem.dim == 1
        found = optx.root_find(
            _miss,
            self.finder,
            start,
            (x, t, self.problem, self.solver),
            options=None if bounds is None else {"lower": bounds[0], "upper": bounds[1]},
            tags=frozenset({lx.diagonal_tag}) if line else frozenset(),
            max_steps=_MAX_STEPS,
            throw=False,
        )
        return found.value, found.result == optx.RESULTS.successful

    def find_all(
        self, x: Float[Array, "points 1"], t: Float[Array, "points"], candidates: int
    ) -> tuple[Float[Array, "points candidates"], Bool[Array, "points candidates"], Int[Array, "points"]]:
        """All foot points of each point on a line, which of them are one, and how many were expected."""
        at = brackets(self.table, x, t, candidates)
        one = lambda x, t, start, lower, upper: self.find(x, t, start[None], (lower[None], upper[None]))
        each = jax.vmap(jax.vmap(one, in_axes=(None, None, 0, 0, 0)))
        feet, converged = each(x, t, at.start, at.lower, at.upper)
        feet = feet[..., 0]
        good = converged & at.kept & jnp.isfinite(feet)
        # A kink of the initial value can make one root look like three: they all lead to the same place.
        lower, upper = self.problem.domain[0]
        apart = (upper - lower) * float(jnp.finfo(x.dtype).eps) ** 0.5
        repeats = [
            (good[:, :i] & (jnp.abs(feet[:, :i] - feet[:, i : i + 1]) < apart)).any(axis=1) for i in range(candidates)
        ]
        return feet, good & ~jnp.stack(repeats, axis=1), at.count

    def start_on_line(self, x: Array, t: Array) -> tuple[Array, tuple[Array, Array], Array]:
        """Where to start, within which bounds, and the verdict so far."""
        at = brackets(self.table, x, t, 1)

        def confirm() -> tuple[Array, Array]:
            feet, good, _ = self.find_all(x, t, _CONFIRMED)
            several = (good.sum(axis=1) > 1) | (at.count > _CONFIRMED)
            return jnp.take_along_axis(feet, jnp.argmax(good, axis=1)[:, None], axis=1), several

        suspect = at.count > 1
        feet, several = lax.cond(suspect.any(), confirm, lambda: (at.start, jnp.zeros_like(suspect)))
        start = jnp.where(suspect[:, None], feet, at.start)
        # The confirmed root may lie in another piece than the first.
        lower, upper = (jnp.where(suspect[:, None], edge, bound) for edge, bound in self._edges(at))
        verdict = jnp.where(at.count == 0, Verdict.OUTSIDE, Verdict.FOUND)
        return start, (lower, upper), jnp.where(suspect & several, Verdict.MULTIVALUED, verdict)

    def _edges(self, at) -> tuple[tuple[float, Array], tuple[float, Array]]:
        lower, upper = self.problem.domain[0]
        return (lower, at.lower), (upper, at.upper)

    def start_in_box(self, x: Array, t: Array) -> tuple[Array, None, Array]:
        verdict = jnp.where(t >= self.crossing, Verdict.MULTIVALUED, Verdict.FOUND)
        return nearest(self.table, x, t), None, verdict

    def __call__(self, x: Float[Array, "points d"], t: Float[Array, "points"]) -> Found:
        """The value at each point."""
        line = self.problem.dim == 1
        fixed = freeze(self)
        begin = fixed.start_on_line if line else fixed.start_in_box
        start, bounds, verdict = begin(*lax.stop_gradient((x, t)))
        foot, converged = jax.vmap(self.find)(x, t, start, bounds)
        end: Arrival = jax.vmap(lambda foot, t: arrive(foot, t, self.problem, self.solver))(foot, t)
        still = lambda code: verdict == code
        verdict = jnp.where(still(Verdict.FOUND) & ~converged, Verdict.NOT_CONVERGED, verdict)
        verdict = jnp.where(still(Verdict.FOUND) & (end.outcome != Outcome.SUCCESS), Verdict.NOT_FOLLOWED, verdict)
        if not line:
            outside = ~_within(self.problem, lax.stop_gradient(foot))
            verdict = jnp.where(still(Verdict.FOUND) & outside, Verdict.OUTSIDE, verdict)
            place = lambda foot, t: arrive(foot, t, fixed.problem, fixed.solver).x
            spread = jax.vmap(jax.jacfwd(place))(*lax.stop_gradient((foot, t)))
            folded = still(Verdict.FOUND) & (determinant(spread) <= 0)
            verdict = jnp.where(folded, Verdict.MULTIVALUED, verdict)
        known = jnp.isfinite(x).all(axis=1) & (t >= 0)
        verdict = jnp.where(still(Verdict.FOUND) & ~known, Verdict.OUTSIDE, verdict)
        good = (verdict == Verdict.FOUND).reshape(-1, *(1,) * (end.u.ndim - 1))
        return Found(jnp.where(good, end.u, jnp.nan), foot, verdict)


def freeze(tree):
    """The same, out of reach of gradients."""
    arrays, rest = eqx.partition(tree, eqx.is_inexact_array)
    return eqx.combine(lax.stop_gradient(arrays), rest)


def _within(problem: AbstractProblem, foot: Float[Array, "points d"]) -> Bool[Array, "points"]:
    lower, upper = jnp.asarray(problem.domain, foot.dtype).T
    slack = 1e4 * jnp.finfo(foot.dtype).eps * (upper - lower)
    return ((foot >= lower - slack) & (foot <= upper + slack)).all(axis=1)
