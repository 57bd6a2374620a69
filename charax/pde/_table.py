"""A table of characteristics from all over the domain: where they are, and how far apart, at any time.

It is traced once for a set of points, and gives each of them brackets to start its root finder from, and a count of
the characteristics that meet there.
"""

import itertools
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from charax.fields import Condition
from charax.pde._flow import Flow, Sensitivity, linearised, start_sensitivity, value_shape
from charax.pde._problem import AbstractProblem
from charax.solve import Outcome, Solver

_TIMES = 65
_FEET_ON_LINE = 512
_FEET_IN_BOX = 640


def feet_per_axis(d: int) -> int:
    return _FEET_ON_LINE if d == 1 else max(3, int(_FEET_IN_BOX ** (1 / d)))


def grid(box: Float[Array, "d 2"]) -> Float[Array, "feet d"]:
    """Foot points all over a box; on a line, in order."""
    axes = [jnp.linspace(lower, upper, feet_per_axis(box.shape[0]), dtype=box.dtype) for lower, upper in box]
    return jnp.stack(jnp.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, box.shape[0])


class Table(eqx.Module):
    """Positions and spreads of characteristics, with their rates, at equal fractions of the way to `end`."""

    feet: Float[Array, "feet d"]
    end: Float[Array, ""]
    x: Float[Array, "times feet d"]
    x_rate: Float[Array, "times feet d"]
    spread: Float[Array, "times feet d d"]
    """∂x/∂ξ"""
    spread_rate: Float[Array, "times feet d d"]

    def at(self, t: Float[Array, "points"]) -> tuple[Float[Array, "points feet d"], Float[Array, "points feet d d"]]:
        """x and ∂x/∂ξ of every foot at each of the times."""
        cell, weights = self._hermite(t)

        def blend(values: Array, rates: Array) -> Array:
            corners = (values[cell], values[cell + 1], rates[cell], rates[cell + 1])
            return _weigh(weights, corners)

        return blend(self.x, self.x_rate), blend(self.spread, self.spread_rate)

    def spread_at(self, t: Float[Array, "feet"]) -> Float[Array, "feet"]:
        """det ∂x/∂ξ of every foot, each at its own time."""
        cell, weights = self._hermite(t)
        feet = jnp.arange(cell.shape[0])
        rows = (self.spread, cell), (self.spread, cell + 1), (self.spread_rate, cell), (self.spread_rate, cell + 1)
        return determinant(_weigh(weights, tuple(values[row, feet] for values, row in rows)))

    def _hermite(self, t: Float[Array, "points"]) -> tuple[Int[Array, "points"], tuple[Array, ...]]:
        """The cell of the table around each time, and the weights of both its values and both its rates."""
        cells = self.x.shape[0] - 1
        place = cells * jnp.clip(jnp.where(self.end > 0, t / jnp.where(self.end > 0, self.end, 1), 0), 0, 1)
        cell = jnp.clip(place.astype(int), 0, cells - 1)
        theta = place - cell
        return cell, (
            (1 + 2 * theta) * (1 - theta) ** 2,
            theta**2 * (3 - 2 * theta),
            theta * (1 - theta) ** 2 / cells,
            theta**2 * (theta - 1) / cells,
        )

    def first_crossing(self) -> tuple[Float[Array, "feet"], Float[Array, "feet"]]:
        """For every foot, the stretch of time in which det ∂x/∂ξ first falls to 0; from infinity if it does not."""
        spread = determinant(self.spread)
        crossed = spread <= 0
        first = jnp.argmax(crossed, axis=0)
        times = self.end * jnp.linspace(0, 1, self.x.shape[0], dtype=self.x.dtype)
        never = ~crossed.any(axis=0)
        pick = lambda index: jnp.where(never, jnp.inf, times[index])
        return pick(jnp.maximum(first - 1, 0)), pick(first)


def _weigh(weights: tuple[Array, ...], corners: tuple[Array, ...]) -> Array:
    spread_out = [weight.reshape(-1, *(1,) * (corners[0].ndim - 1)) for weight in weights]
    return sum((w * c for w, c in zip(spread_out, corners, strict=True)), jnp.zeros((), weights[0].dtype))


def determinant(spread: Float[Array, "*points d d"]) -> Float[Array, "*points"]:
    return spread[..., 0, 0] if spread.shape[-1] == 1 else jnp.linalg.det(spread)


def trace_table(problem: AbstractProblem, feet: Float[Array, "feet d"], end: Float[Array, ""], solver: Solver) -> Table:
    """Follow characteristics from all feet to `end`; NaN from where one could not be followed."""
    flow, shape = Flow(problem, linearised), value_shape(problem, feet.dtype)
    fractions = jnp.linspace(0, 1, _TIMES, dtype=feet.dtype)
    ends = jnp.full(feet.shape[:1], end, feet.dtype)
    walk = solver.solve(flow, start_sensitivity(problem, feet), x0=feet, context=ends, at=fractions)
    assert walk.characteristic is not None
    assert walk.trajectory is not None
    rates = jax.vmap(lambda s, x, u: flow(s, x, u, Condition(context=ends)))
    x_rate, state_rate = rates(fractions, walk.characteristic, walk.trajectory)
    unpack = jax.vmap(lambda state: Sensitivity.unpack(state, shape, problem.dim).dx)
    followed = (walk.outcome == Outcome.SUCCESS) | jnp.isfinite(walk.trajectory).all(axis=-1)
    clean = lambda path: jnp.where(followed.reshape(*followed.shape, *(1,) * (path.ndim - 2)), path, jnp.nan)
    return Table(
        feet,
        jnp.asarray(end, feet.dtype),
        *map(clean, (walk.characteristic, x_rate, unpack(walk.trajectory), unpack(state_rate))),
    )


class Cut(NamedTuple):
    """Four places in a cell between two feet, from 0 to 1, between which x(ξ) is monotone, and x there."""

    theta: tuple[Array, Array, Array, Array]
    x: tuple[Array, Array, Array, Array]


def _cut(left: Array, right: Array, left_slope: Array, right_slope: Array) -> Cut:
    """Cut the cubic with these values and slopes at the ends of a cell of width 1 at its extrema."""
    rise = right - left
    c1, c2, c3 = left_slope, 3 * rise - 2 * left_slope - right_slope, left_slope + right_slope - 2 * rise
    gap = c2**2 - 3 * c1 * c3
    # The slope c1 + 2·c2·θ + 3·c3·θ² can vanish in the cell only so; where x is straight, rounding must not cut it.
    bent = (gap > 0) & (2 * jnp.abs(c2) + 3 * jnp.abs(c3) >= jnp.abs(c1))
    # Its roots, without cancellation. Where there are none, no cut is made.
    q = -(c2 + jnp.where(c2 < 0, -1, 1) * jnp.sqrt(jnp.maximum(gap, 0)))
    safe = lambda above, below: jnp.where(bent & (below != 0), above / jnp.where(below != 0, below, 1), 0)
    one, other = jnp.clip(safe(q, 3 * c3), 0, 1), jnp.clip(safe(c1, q), 0, 1)
    first, second = jnp.minimum(one, other), jnp.maximum(one, other)
    cubic = lambda theta: left + theta * (c1 + theta * (c2 + theta * c3))
    return Cut((jnp.zeros_like(rise), first, second, jnp.ones_like(rise)), (left, cubic(first), cubic(second), right))


class Pieces(eqx.Module):
    """The monotone pieces of ξ ↦ x(t; ξ) for each point, three to a cell between two feet.

    Between two feet the map is a cubic, known from values and slopes at both. Cut at its extrema it falls into at
    most three monotone pieces, so that also a fold much narrower than the distance of two feet is seen.
    """

    feet: Float[Array, "feet"]
    x: Float[Array, "points feet"]
    slope: Float[Array, "points feet"]
    target: Float[Array, "points"]
    reach: Bool[Array, "points pieces"]
    """Which pieces pass through the point."""

    def __init__(self, table: Table, x: Float[Array, "points 1"], t: Float[Array, "points"]):
        place, spread = table.at(t)
        feet = self.feet = table.feet[:, 0]
        self.x, self.slope = place[..., 0], spread[..., 0, 0]
        # A point on the very edge belongs to the domain.
        slack = 1e4 * jnp.finfo(feet.dtype).eps * jnp.maximum(jnp.abs(feet[0]), jnp.abs(feet[-1]))
        first, last = self.x[:, 0], self.x[:, -1]
        target = jnp.where(jnp.abs(x[:, 0] - first) <= slack, first + slack, x[:, 0])
        self.target = jnp.where(jnp.abs(x[:, 0] - last) <= slack, last - slack, target)

        width = jnp.diff(feet)
        left, right = self.x[:, :-1], self.x[:, 1:]
        cut = _cut(left, right, width * self.slope[:, :-1], width * self.slope[:, 1:])
        below = [height < self.target[:, None] for height in cut.x]
        known = jnp.isfinite(left) & jnp.isfinite(right)
        passes = [(begin != end) & known for begin, end in itertools.pairwise(below)]
        self.reach = jnp.stack(passes, axis=-1).reshape(x.shape[0], -1)

    @property
    def count(self) -> Int[Array, "points"]:
        """How many characteristics are expected to meet at each point."""
        return self.reach.sum(axis=1)

    def after(self, previous: Int[Array, "points"]) -> tuple[Array, Bool[Array, "points"], tuple[Array, Array, Array]]:
        """The next piece that reaches each point, whether there is one, and (start, lower, upper) for a root finder."""
        left = self.reach & (jnp.arange(self.reach.shape[1]) > previous[:, None])
        piece = jnp.argmax(left, axis=1)
        points = jnp.arange(piece.shape[0])
        cell = piece // 3
        width = self.feet[cell + 1] - self.feet[cell]
        ends = self.x[points, cell], self.x[points, cell + 1]
        slopes = width * self.slope[points, cell], width * self.slope[points, cell + 1]
        cut = _cut(*ends, *slopes)
        part = lambda values, shift: jnp.stack(values, axis=1)[points, piece % 3 + shift]
        low, high, low_x, high_x = part(cut.theta, 0), part(cut.theta, 1), part(cut.x, 0), part(cut.x, 1)
        rise = high_x - low_x
        share = jnp.where(rise != 0, (self.target - low_x) / jnp.where(rise != 0, rise, 1), 0.5)
        place = lambda theta: jnp.clip(self.feet[cell] + theta * width, self.feet[0], self.feet[-1])
        start = low + jnp.clip(share, 0, 1) * (high - low)
        # The cubic is not the map itself: the bounds allow for its error.
        return piece, left[points, piece], (place(start), place(low - 0.1), place(high + 0.1))


def nearest(table: Table, x: Float[Array, "points d"], t: Float[Array, "points"]) -> Float[Array, "points d"]:
    """A first guess of the foot point in a box: from the characteristic that comes nearest, one linear step on."""
    place, spread = table.at(t)
    distance = jnp.sum((place - x[:, None]) ** 2, axis=-1)
    best = jnp.nanargmin(jnp.where(jnp.isfinite(distance), distance, jnp.inf), axis=1)
    pick = lambda values: values[jnp.arange(x.shape[0]), best]
    step = jnp.linalg.solve(pick(spread), (x - pick(place))[..., None])[..., 0]
    return table.feet[best] + jnp.where(jnp.isfinite(step), step, 0)
