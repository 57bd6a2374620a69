"""The monotone pieces of the map from foot points to positions on a line, each of which has one root at most."""

import itertools
from typing import NamedTuple

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from charax.pde._table import Table


class _Partition(NamedTuple):
    """Four abscissae in a cell of width 1, between which x(ξ) is monotone, and x there."""

    theta: tuple[Array, Array, Array, Array]
    x: tuple[Array, Array, Array, Array]


def _split_at_extrema(left: Array, right: Array, left_slope: Array, right_slope: Array) -> _Partition:
    """Split the cubic with these values and slopes at the ends of a cell of width 1 at its extrema."""
    rise = right - left
    c1, c2, c3 = left_slope, 3 * rise - 2 * left_slope - right_slope, left_slope + right_slope - 2 * rise
    discriminant = c2**2 - 3 * c1 * c3
    # The slope c1 + 2·c2·θ + 3·c3·θ² can vanish in the cell only so; where x is straight, rounding must not split it.
    has_extrema = (discriminant > 0) & (2 * jnp.abs(c2) + 3 * jnp.abs(c3) >= jnp.abs(c1))
    # Its roots, without cancellation; 0 where there are none.
    q = -(c2 + jnp.where(c2 < 0, -1, 1) * jnp.sqrt(jnp.maximum(discriminant, 0)))
    divide = lambda above, below: jnp.where(has_extrema & (below != 0), above / jnp.where(below != 0, below, 1), 0)
    one, other = jnp.clip(divide(q, 3 * c3), 0, 1), jnp.clip(divide(c1, q), 0, 1)
    first, second = jnp.minimum(one, other), jnp.maximum(one, other)
    cubic = lambda theta: left + theta * (c1 + theta * (c2 + theta * c3))
    return _Partition(
        (jnp.zeros_like(rise), first, second, jnp.ones_like(rise)), (left, cubic(first), cubic(second), right)
    )


class MonotonePieces(eqx.Module):
    """The monotone pieces of ξ ↦ x(t; ξ) for each point, three per cell between two foot points of the table.

    Between two foot points the map is a cubic, known from values and slopes at both. Split at its extrema it has at
    most three monotone pieces, so that a fold much narrower than the cell is resolved, too.
    """

    feet: Float[Array, "feet"]
    x: Float[Array, "points feet"]
    slope: Float[Array, "points feet"]
    target: Float[Array, "points"]
    contains_point: Bool[Array, "points pieces"]
    """Whether the piece passes through the point."""

    def __init__(self, table: Table, x: Float[Array, "points 1"], t: Float[Array, "points"]):
        position, deformation = table.at(t)
        feet = self.feet = table.feet[:, 0]
        self.x, self.slope = position[..., 0], deformation[..., 0, 0]
        # A point on the very edge belongs to the domain.
        tolerance = 1e4 * jnp.finfo(feet.dtype).eps * jnp.maximum(jnp.abs(feet[0]), jnp.abs(feet[-1]))
        first, last = self.x[:, 0], self.x[:, -1]
        target = jnp.where(jnp.abs(x[:, 0] - first) <= tolerance, first + tolerance, x[:, 0])
        self.target = jnp.where(jnp.abs(x[:, 0] - last) <= tolerance, last - tolerance, target)

        width = jnp.diff(feet)
        left, right = self.x[:, :-1], self.x[:, 1:]
        partition = _split_at_extrema(left, right, width * self.slope[:, :-1], width * self.slope[:, 1:])
        below = [height < self.target[:, None] for height in partition.x]
        known = jnp.isfinite(left) & jnp.isfinite(right)
        contains = [(begin != end) & known for begin, end in itertools.pairwise(below)]
        self.contains_point = jnp.stack(contains, axis=-1).reshape(x.shape[0], -1)

    @property
    def count(self) -> Int[Array, "points"]:
        """The number of characteristics that are expected to meet at each point."""
        return self.contains_point.sum(axis=1)

    def after(self, previous: Int[Array, "points"]) -> tuple[Array, Bool[Array, "points"], tuple[Array, Array, Array]]:
        """The next piece through each point, whether there is one, and (start, lower, upper) for a root finder."""
        remaining = self.contains_point & (jnp.arange(self.contains_point.shape[1]) > previous[:, None])
        piece = jnp.argmax(remaining, axis=1)
        points = jnp.arange(piece.shape[0])
        cell = piece // 3
        width = self.feet[cell + 1] - self.feet[cell]
        ends = self.x[points, cell], self.x[points, cell + 1]
        slopes = width * self.slope[points, cell], width * self.slope[points, cell + 1]
        partition = _split_at_extrema(*ends, *slopes)
        bound = lambda values, shift: jnp.stack(values, axis=1)[points, piece % 3 + shift]
        low, high = bound(partition.theta, 0), bound(partition.theta, 1)
        low_x, high_x = bound(partition.x, 0), bound(partition.x, 1)
        rise = high_x - low_x
        fraction = jnp.where(rise != 0, (self.target - low_x) / jnp.where(rise != 0, rise, 1), 0.5)
        foot = lambda theta: jnp.clip(self.feet[cell] + theta * width, self.feet[0], self.feet[-1])
        start = low + jnp.clip(fraction, 0, 1) * (high - low)
        # The cubic is an approximation of the map: the bounds allow for its error.
        return piece, remaining[points, piece], (foot(start), foot(low - 0.1), foot(high + 0.1))
