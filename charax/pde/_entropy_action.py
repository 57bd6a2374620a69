"""Least action: the entropy solution of uₜ + f(u)ₓ = 0 at any point, without its history.

Characteristics are straight, X(t; ξ) = ξ + t·f′(u₀(ξ)), and along each the potential U = ∫u dx is known,

    U(x, t) = U₀(ξ) + u·(x − ξ) − t·f(u)    with u = u₀(ξ).

Where several characteristics meet, the entropy solution belongs to the one with the least potential if f is convex,
and with the greatest if f is concave (Lax 1957; Oleinik 1957). If f is neither, the formula of Hopf (1965; Bardi and
Evans 1984) decides for monotone initial values: the least potential if u₀ decreases, the greatest if it increases. For
one discontinuity between two constants this is Osher's solution of the Riemann problem by a convex envelope.
"""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optimistix as optx
from jax import lax
from jaxtyping import Array, Bool, Float, Int

from charax.pde._entropy_graph import pad_rows, speed
from charax.pde._entropy_law import Law, flux_at, integral
from charax.pde._problem import AbstractProblem
from charax.solve._roots import freeze

_CHUNK = 512
"""Points at once: as many rows of a matrix with a column for every interval of the initial curve."""
_BISECTIONS = 64


class Branch(NamedTuple):
    """One characteristic through a point."""

    interval: Int[Array | np.ndarray, "*points"]
    foot: Float[Array | np.ndarray, "*points"]
    value: Float[Array | np.ndarray, "*points"]
    potential: Float[Array | np.ndarray, "*points"]


def _on_interval(law: Law, interval: Array, share: Array) -> tuple[Array, Array]:
    """Foot and value at a share, from 0 to 1, of an interval of the curve."""
    between = lambda nodes: nodes[interval] + share * (nodes[interval + 1] - nodes[interval])
    foot = between(law.foot)
    return foot, jnp.where(law.fan[interval], between(law.value), law.problem.initial(foot[:, None]))


@eqx.filter_jit
def _branch(law: Law, interval: Int[Array, "batch"], x: Float[Array, "batch"], t: Float[Array, "batch"]) -> Branch:
    """The characteristic from an interval of the curve to the point (x, t)."""

    def residual(share: Array, args: tuple[Array, Array, Array]) -> Array:
        interval, x, t = (value[None] for value in args)
        foot, value = _on_interval(law, interval, share[None])
        return (foot + t * speed(law.problem, value) - x)[0]

    def find(*args: Array) -> Array:
        # Bisection also finds the value at which a velocity jumps, as in traffic with a triangular flux.
        finder = optx.Bisection(rtol=0.0, atol=float(jnp.finfo(x.dtype).eps), flip=False, expand_if_necessary=False)
        bracket = {"lower": jnp.zeros((), x.dtype), "upper": jnp.ones((), x.dtype)}
        start = jnp.full((), 0.5, x.dtype)
        return optx.root_find(residual, finder, start, args, bracket, max_steps=_BISECTIONS, throw=False).value

    foot, value = _on_interval(law, interval, jax.vmap(find)(interval, x, t))
    gained = integral(lambda x: law.problem.initial(x[:, None]), law.foot[interval], foot)
    potential = law.potential[interval] + gained + value * (x - foot) - t * flux_at(law, value)
    return Branch(interval, foot, value, potential)


class Search(NamedTuple):
    """The two best intervals of the curve for each point, and whether any reaches it."""

    best: Int[Array | np.ndarray, "points"]
    second: Int[Array | np.ndarray, "points"]
    reached: Bool[Array | np.ndarray, "points"]


@eqx.filter_jit
def search(law: Law, x: Float[Array, "points"], t: Float[Array, "points"]) -> Search:
    """Rank the intervals that lie over a point, in the order of x, by their potential there: a cubic between nodes."""
    position = law.foot + t[:, None] * law.speed
    potential = law.potential + t[:, None] * (law.value * law.speed - law.flux)
    left, right = position[:, :-1], position[:, 1:]
    over = (left <= x[:, None]) & (right > x[:, None])
    width = jnp.where(over, right - left, 1)
    share = jnp.where(over, (x[:, None] - left) / width, 0)
    low, high = potential[:, :-1], potential[:, 1:]
    # Slopes are the values of u at the nodes, since u = ∂U/∂x.
    rise, low_slope, high_slope = high - low, width * law.value[:-1], width * law.value[1:]
    bend, twist = 3 * rise - 2 * low_slope - high_slope, low_slope + high_slope - 2 * rise
    cubic = low + share * (low_slope + share * (bend + share * twist))
    score = jnp.where(over, law.sign * cubic, jnp.inf)
    best = jnp.argmin(score, axis=1)
    others = jnp.where(jnp.arange(score.shape[1]) == best[:, None], jnp.inf, score)
    second = jnp.argmin(others, axis=1)
    pick = lambda rows, index: jnp.take_along_axis(rows, index[:, None], axis=1)[:, 0]
    reached = jnp.isfinite(pick(score, best))
    return Search(best, jnp.where(jnp.isfinite(pick(others, second)), second, best), reached)


def in_chunks(function, law: Law, *columns: np.ndarray):
    """`function(law, *columns)` for a fixed number of rows at a time, so that it is compiled once."""
    count = columns[0].shape[0]
    kinds = [int if np.issubdtype(values.dtype, np.integer) else law.foot.dtype for values in columns]
    rows = [pad_rows(values, _CHUNK).astype(kind) for values, kind in zip(columns, kinds, strict=True)]
    starts = range(0, rows[0].shape[0], _CHUNK)
    parts = [function(law, *(jnp.asarray(row[i : i + _CHUNK]) for row in rows)) for i in starts]
    return jax.tree.map(lambda *leaves: np.concatenate([np.asarray(leaf) for leaf in leaves])[:count], *parts)


def move_inside(
    law: Law, x: Float[np.ndarray, "points"], t: Float[np.ndarray, "points"]
) -> tuple[np.ndarray, np.ndarray]:
    """Points on the edge of what the domain determines moved inside, and which points lie inside.

    Beyond the characteristics from the ends of the domain, the solution would depend on what lies outside of it.
    """
    foot, speeds = np.asarray(law.foot, float), np.asarray(law.speed, float)
    first, last = (foot[i] + t * speeds[i] for i in (0, -1))
    slack = 16 * float(jnp.finfo(law.foot.dtype).eps) * max(abs(end) for end in law.problem.domain[0])
    inside = (x >= first - slack) & (x <= last + slack)
    return np.where(inside, np.clip(x, first, np.maximum(first, last - slack)), x), inside


def least_action(
    law: Law, x: Float[np.ndarray, "points"], t: Float[np.ndarray, "points"]
) -> tuple[Branch, Bool[np.ndarray, "points"]]:
    """The characteristic of the entropy solution through each point, and whether there is one."""
    x, inside = move_inside(law, x, t)
    found = in_chunks(search, law, x, t)
    one, other = branches(law, found.best, found.second, x, t)
    better = law.sign * other.potential < law.sign * one.potential
    return Branch(*(np.where(better, b, a) for a, b in zip(one, other, strict=True))), inside & found.reached


def branches(law: Law, left: np.ndarray, right: np.ndarray, x: np.ndarray, t: np.ndarray) -> tuple[Branch, Branch]:
    """The characteristics from two intervals to the same points."""
    both = in_chunks(_branch, law, np.append(left, right), np.tile(x, 2), np.tile(t, 2))
    return Branch(*(values[: x.size] for values in both)), Branch(*(values[x.size :] for values in both))


@eqx.filter_jit
def action_gradient(
    problem: AbstractProblem,
    x: Float[Array, "points"],
    t: Float[Array, "points"],
    foot: Float[Array, "points"],
    value: Float[Array, "points"],
    fan: Bool[Array, "points"],
) -> Float[Array, "points"]:
    """Zero, with the derivative of u, from the characteristics that were found: that of the implicit function."""
    fixed, fixed_t = freeze(problem), lax.stop_gradient(t)

    def step(start: Array, position, fixed_position) -> Array:
        """A step of Newton's method whose value is zero and whose derivative is not."""
        gap = x - position(start)
        slope = jax.jvp(fixed_position, (start,), (jnp.ones_like(start),))[1]
        usable = slope > jnp.sqrt(jnp.finfo(x.dtype).eps)
        return start + jnp.where(usable, (gap - lax.stop_gradient(gap)) / jnp.where(usable, slope, 1), 0)

    line = lambda problem, t: lambda foot: foot + t * speed(problem, problem.initial(foot[:, None]))
    ray = lambda problem, t: lambda value: foot + t * speed(problem, value)
    ordinary = problem.initial(step(foot, line(problem, t), line(fixed, fixed_t))[:, None])
    u = jnp.where(fan, step(value, ray(problem, t), ray(fixed, fixed_t)), ordinary)
    return u - lax.stop_gradient(u)
