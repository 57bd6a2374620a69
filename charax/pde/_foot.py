"""The foot point: where the characteristic through (x, t) starts."""

import enum

import equinox as eqx
import jax
import jax.numpy as jnp
import lineax as lx
import optimistix as optx
from jax import lax
from jaxtyping import Array, Bool, Float, Int

from charax.pde._flow import Arrival, arrive
from charax.pde._problem import AbstractProblem
from charax.pde._table import Pieces, Table, determinant, nearest
from charax.solve import Outcome, Solver
from charax.solve._roots import Settled, freeze

_MAX_STEPS = 32
_CANDIDATES = 5
"""Looked at before a point with more of them is called multivalued."""


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


def _defect(root: tuple[Array, Array], args: tuple[Array, Array, AbstractProblem, Solver]) -> tuple[Array, Array]:
    """Foot point and value together, so that one walk gives the gradients of both."""
    foot, u = root
    x, t, problem, solver = args
    end = arrive(foot, t, problem, solver)
    return end.x - x, end.u - u


class Search(eqx.Module):
    """Finds the foot points of any number of points; everything here is the same for all of them."""

    problem: AbstractProblem
    table: Table
    solver: Solver
    finder: optx.AbstractRootFinder

    def __call__(self, x: Float[Array, "points d"], t: Float[Array, "points"]) -> Found:
        """The value at each point, or the verdict why there is not one."""
        line = self.problem.dim == 1
        frozen = freeze(self)
        find = frozen._on_line if line else frozen._in_box
        foot, verdict = find(*lax.stop_gradient((x, t)))
        end: Arrival = jax.vmap(lambda foot, t: arrive(foot, t, frozen.problem, self.solver))(
            foot, lax.stop_gradient(t)
        )
        settle = lambda x, t, *root: (
            optx.root_find(_defect, Settled(), root, (x, t, self.problem, self.solver), throw=False).value
        )
        foot, u = jax.vmap(settle)(x, t, foot, end.u)
        followed = (end.outcome == Outcome.SUCCESS) | (verdict != Verdict.FOUND)
        verdict = jnp.where(followed, verdict, Verdict.NOT_FOLLOWED)
        known = jnp.isfinite(x).all(axis=1) & (t >= 0)
        verdict = jnp.where(known, verdict, Verdict.OUTSIDE)
        good = (verdict == Verdict.FOUND).reshape(-1, *(1,) * (u.ndim - 1))
        return Found(jnp.where(good, u, jnp.nan), foot, verdict)

    def all_on_line(
        self, x: Float[Array, "points 1"], t: Float[Array, "points"], most: int
    ) -> tuple[Float[Array, "points most"], Bool[Array, "points most"], Int[Array, "points"]]:
        """Up to `most` foot points of each point, which of the entries are one, and how many were expected."""
        where = Pieces(self.table, x, t)
        lower, upper = self.problem.domain[0]
        apart = (upper - lower) * float(jnp.finfo(x.dtype).eps) ** 0.5

        def find(x: Array, t: Array, start: Array, lower: Array, upper: Array) -> tuple[Array, Array]:
            foot, converged = self._root(self.finder, x, t, start[None], (lower[None], upper[None]))
            return foot[0], converged

        def more(carry: tuple[Array, Array, Array, Array]) -> Array:
            number, *_ = carry
            return (number < most) & ((number == 0) | (where.count > number).any())

        def look(carry: tuple[Array, Array, Array, Array]) -> tuple[Array, Array, Array, Array]:
            number, piece, feet, good = carry
            piece, there, begin = where.after(piece)
            foot, converged = jax.vmap(find)(x, t, *begin)
            # A kink of the initial value can make one root look like three: they all lead to the same place.
            again = (good & (jnp.abs(feet - foot[:, None]) < apart)).any(axis=1)
            return (
                number + 1,
                jnp.where(there, piece, where.reach.shape[1]),
                feet.at[:, number].set(foot),
                good.at[:, number].set(there & converged & ~again),
            )

        feet = jnp.zeros((x.shape[0], most), x.dtype)
        nothing = (jnp.array(0), jnp.full(x.shape[:1], -1), feet, jnp.zeros_like(feet, bool))
        _, _, feet, good = lax.while_loop(more, look, nothing)
        return feet, good, where.count

    def _root(
        self,
        finder: optx.AbstractRootFinder,
        x: Float[Array, "d"],
        t: Float[Array, ""],
        start: Float[Array, "d"],
        bounds: tuple[Array, Array] | None,
    ) -> tuple[Float[Array, "d"], Bool[Array, ""]]:
        found = optx.root_find(
            _miss,
            finder,
            start,
            (x, t, self.problem, self.solver),
            options=None if bounds is None else {"lower": bounds[0], "upper": bounds[1]},
            tags=frozenset({lx.diagonal_tag}) if self.problem.dim == 1 else frozenset(),
            max_steps=_MAX_STEPS,
            throw=False,
        )
        return found.value, found.result == optx.RESULTS.successful

    def _on_line(self, x: Array, t: Array) -> tuple[Array, Array]:
        feet, good, count = self.all_on_line(x, t, _CANDIDATES)
        foot = jnp.take_along_axis(feet, jnp.argmax(good, axis=1)[:, None], axis=1)
        verdict = jnp.where(good.any(axis=1), Verdict.FOUND, Verdict.NOT_CONVERGED)
        verdict = jnp.where(count == 0, Verdict.OUTSIDE, verdict)
        several = (good.sum(axis=1) > 1) | (count > _CANDIDATES)
        return foot, jnp.where(several, Verdict.MULTIVALUED, verdict)

    def _in_box(self, x: Array, t: Array) -> tuple[Array, Array]:
        find = lambda x, t, start: self._root(self.finder, x, t, start, None)
        foot, converged = jax.vmap(find)(x, t, nearest(self.table, x, t))
        place = lambda foot, t: arrive(foot, t, self.problem, self.solver).x
        folded = determinant(jax.vmap(jax.jacfwd(place))(foot, t)) <= 0
        crossing = self.table.first_crossing()[0].min()
        verdict = jnp.where(_within(self.problem, foot), Verdict.FOUND, Verdict.OUTSIDE)
        verdict = jnp.where(converged, verdict, Verdict.NOT_CONVERGED)
        return foot, jnp.where((t > crossing) | (converged & folded), Verdict.MULTIVALUED, verdict)


def _within(problem: AbstractProblem, foot: Float[Array, "points d"]) -> Bool[Array, "points"]:
    lower, upper = jnp.asarray(problem.domain, foot.dtype).T
    slack = 1e4 * jnp.finfo(foot.dtype).eps * (upper - lower)
    return ((foot >= lower - slack) & (foot <= upper + slack)).all(axis=1)
