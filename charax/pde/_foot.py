"""The foot point: where the characteristic through (x, t) starts."""

import enum

import equinox as eqx
import jax
import jax.numpy as jnp
import lineax as lx
import optimistix as optx
from jax import lax
from jaxtyping import Array, Bool, Float, Int

from charax.pde._flow import Endpoint, integrate_characteristic
from charax.pde._pieces import MonotonePieces
from charax.pde._problem import AbstractProblem
from charax.pde._table import Table, determinant, guess_foot_points
from charax.solve import Outcome, Solver
from charax.solve._roots import Settled, freeze

_MAX_STEPS = 32
_MAX_CANDIDATES = 5
"""A point with more candidates for its foot point is multivalued without looking at all of them."""


class PointStatus(enum.IntEnum):
    """Whether a point has a single value, and why not."""

    FOUND = 0
    OUTSIDE = 1
    NOT_CONVERGED = 2
    NOT_INTEGRATED = 3
    MULTIVALUED = 4


class PointSolution(eqx.Module):
    """The value at each point, its foot point, and a `PointStatus`."""

    u: Float[Array, "points *n"]
    foot: Float[Array, "points d"]
    status: Int[Array, "points"]


def default_root_finder(problem: AbstractProblem, dtype: jnp.dtype) -> optx.AbstractRootFinder:
    """Newton's method. Its last step starts closer than the tolerance, and squares the distance."""
    largest = max(max(abs(lower), abs(upper)) for lower, upper in problem.domain)
    return optx.Newton(rtol=0.0, atol=max(1e-9, 64 * float(jnp.finfo(dtype).eps) * largest))


def _residual(foot: Array, args: tuple[Array, Array, AbstractProblem, Solver]) -> Array:
    x, t, problem, solver = args
    return integrate_characteristic(foot, t, problem, solver).x - x


def _joint_residual(
    root: tuple[Array, Array], args: tuple[Array, Array, AbstractProblem, Solver]
) -> tuple[Array, Array]:
    """Of foot point and value together, so that one solve gives the gradients of both."""
    foot, u = root
    x, t, problem, solver = args
    end = integrate_characteristic(foot, t, problem, solver)
    return end.x - x, end.u - u


class FootPointSearch(eqx.Module):
    """Finds the foot points of any number of points; its fields are shared by all of them."""

    problem: AbstractProblem
    table: Table
    solver: Solver
    finder: optx.AbstractRootFinder

    def __call__(self, x: Float[Array, "points d"], t: Float[Array, "points"]) -> PointSolution:
        """The value at each point, or the reason why there is not a single one."""
        frozen = freeze(self)
        find = frozen._on_line if self.problem.dim == 1 else frozen._in_box
        foot, status = find(*lax.stop_gradient((x, t)))
        end: Endpoint = jax.vmap(lambda foot, t: integrate_characteristic(foot, t, frozen.problem, self.solver))(
            foot, lax.stop_gradient(t)
        )
        settle = lambda x, t, *root: (
            optx.root_find(_joint_residual, Settled(), root, (x, t, self.problem, self.solver), throw=False).value
        )
        foot, u = jax.vmap(settle)(x, t, foot, end.u)
        integrated = (end.outcome == Outcome.SUCCESS) | (status != PointStatus.FOUND)
        status = jnp.where(integrated, status, PointStatus.NOT_INTEGRATED)
        valid = jnp.isfinite(x).all(axis=1) & (t >= 0)
        status = jnp.where(valid, status, PointStatus.OUTSIDE)
        found = (status == PointStatus.FOUND).reshape(-1, *(1,) * (u.ndim - 1))
        return PointSolution(jnp.where(found, u, jnp.nan), foot, status)

    def all_on_line(
        self, x: Float[Array, "points 1"], t: Float[Array, "points"], most: int
    ) -> tuple[Float[Array, "points most"], Bool[Array, "points most"], Int[Array, "points"]]:
        """Up to `most` foot points of each point, which of the entries are one, and the expected number of them."""
        pieces = MonotonePieces(self.table, x, t)
        lower, upper = self.problem.domain[0]
        distinct = (upper - lower) * float(jnp.finfo(x.dtype).eps) ** 0.5

        def find(x: Array, t: Array, start: Array, lower: Array, upper: Array) -> tuple[Array, Array]:
            foot, converged = self._root(self.finder, x, t, start[None], (lower[None], upper[None]))
            return foot[0], converged

        def unfinished(carry: tuple[Array, Array, Array, Array]) -> Array:
            number, *_ = carry
            return (number < most) & ((number == 0) | (pieces.count > number).any())

        def find_next(carry: tuple[Array, Array, Array, Array]) -> tuple[Array, Array, Array, Array]:
            number, piece, feet, valid = carry
            piece, exists, bracket = pieces.after(piece)
            foot, converged = jax.vmap(find)(x, t, *bracket)
            # A kink of the initial value can make one root look like three, which all coincide.
            repeated = (valid & (jnp.abs(feet - foot[:, None]) < distinct)).any(axis=1)
            return (
                number + 1,
                jnp.where(exists, piece, pieces.contains_point.shape[1]),
                feet.at[:, number].set(foot),
                valid.at[:, number].set(exists & converged & ~repeated),
            )

        feet = jnp.zeros((x.shape[0], most), x.dtype)
        start = (jnp.array(0), jnp.full(x.shape[:1], -1), feet, jnp.zeros_like(feet, bool))
        _, _, feet, valid = lax.while_loop(unfinished, find_next, start)
        return feet, valid, pieces.count

    def _root(
        self,
        finder: optx.AbstractRootFinder,
        x: Float[Array, "d"],
        t: Float[Array, ""],
        start: Float[Array, "d"],
        bounds: tuple[Array, Array] | None,
    ) -> tuple[Float[Array, "d"], Bool[Array, ""]]:
        found = optx.root_find(
            _residual,
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
        feet, valid, count = self.all_on_line(x, t, _MAX_CANDIDATES)
        foot = jnp.take_along_axis(feet, jnp.argmax(valid, axis=1)[:, None], axis=1)
        status = jnp.where(valid.any(axis=1), PointStatus.FOUND, PointStatus.NOT_CONVERGED)
        status = jnp.where(count == 0, PointStatus.OUTSIDE, status)
        several = (valid.sum(axis=1) > 1) | (count > _MAX_CANDIDATES)
        return foot, jnp.where(several, PointStatus.MULTIVALUED, status)

    def _in_box(self, x: Array, t: Array) -> tuple[Array, Array]:
        find = lambda x, t, start: self._root(self.finder, x, t, start, None)
        foot, converged = jax.vmap(find)(x, t, guess_foot_points(self.table, x, t))
        position = lambda foot, t: integrate_characteristic(foot, t, self.problem, self.solver).x
        folded = determinant(jax.vmap(jax.jacfwd(position))(foot, t)) <= 0
        crossing = self.table.first_crossing()[0].min()
        status = jnp.where(_within_domain(self.problem, foot), PointStatus.FOUND, PointStatus.OUTSIDE)
        status = jnp.where(converged, status, PointStatus.NOT_CONVERGED)
        return foot, jnp.where((t > crossing) | (converged & folded), PointStatus.MULTIVALUED, status)


def _within_domain(problem: AbstractProblem, foot: Float[Array, "points d"]) -> Bool[Array, "points"]:
    lower, upper = jnp.asarray(problem.domain, foot.dtype).T
    tolerance = 1e4 * jnp.finfo(foot.dtype).eps * (upper - lower)
    return ((foot >= lower - tolerance) & (foot <= upper + tolerance)).all(axis=1)
