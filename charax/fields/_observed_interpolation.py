"""Piecewise polynomials through observations, some of which are missing.

Every function works on whole batches: knots `[batch, rows]`, values `[batch, rows, channels]`, and a mask of the values
that were observed. A polynomial is given by its coefficients in powers of the distance from its knot, the constant
first. Hermite and linear coefficients are those of diffrax, which checks its times with a callback from the compiled
program and scans over the observations; here there is neither.
"""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import lineax as lx
from jax import lax
from jaxtyping import Array, Bool, Float, Int

from charax.fields._names import Interpolation

CAUSAL: tuple[Interpolation, ...] = ("hermite", "rectilinear")
"""These keep the last value where one is missing, and never use a later one."""

Pieces = Float[Array, "batch rows powers channels"]


def fill_forward(
    values: Float[Array, "batch rows channels"], observed: Bool[Array, "batch rows channels"]
) -> Float[Array, "batch rows channels"]:
    """Replace what is missing by the last value of the channel, and by 0 before its first one."""
    last = lax.cummax(jnp.where(observed, jnp.arange(values.shape[1])[:, None], -1), axis=1)
    return jnp.where(last < 0, 0, jnp.take_along_axis(values, jnp.maximum(last, 0), axis=1))


def time_then_value(
    s: Float[Array, "batch rows"], values: Float[Array, "batch rows channels"], lengths: Int[Array, "batch"]
) -> tuple[Float[Array, "batch more"], Float[Array, "batch more channels"], Int[Array, "batch"]]:
    """The corners of the rectilinear path: the first channel, which is the time, moves first and the others follow."""
    corners = jnp.repeat(values, 2, axis=1)
    moved = jnp.concatenate([corners[:, 1:, :1], corners[:, :-1, 1:]], axis=2)
    halves = jnp.stack([s[:, :-1], (s[:, :-1] + s[:, 1:]) / 2], axis=2).reshape(s.shape[0], -1)
    return jnp.concatenate([halves, s[:, -1:]], axis=1), moved, 2 * lengths - 1


def interpolate_filled(
    pieces: Callable[[Array, Array, Array], Pieces],
    s: Float[Array, "batch rows"],
    values: Float[Array, "batch rows channels"],
    lengths: Int[Array, "batch"],
) -> Pieces:
    """Interpolate values of which none is missing up to each sample's length, and stay constant from there on."""
    row = jnp.arange(s.shape[1])[:, None]
    last = lengths[:, None, None] - 1
    values = jnp.where(row <= last, values, jnp.take_along_axis(values, last, axis=1))
    found = pieces(s[:, :, None], values, last + 1)
    return jnp.concatenate([found[:, :, :1], jnp.where((row < last)[:, :, None, :], found[:, :, 1:], 0)], axis=2)


def interpolate_observed(
    pieces: Callable[[Array, Array, Array], Pieces],
    s: Float[Array, "batch rows"],
    values: Float[Array, "batch rows channels"],
    observed: Bool[Array, "batch rows channels"],
) -> Pieces:
    """Interpolate each channel over its own observations, and give the polynomial that starts at every knot.

    Before a channel's first observation and after its last one it is constant; without any it is 0.
    """
    count = observed.sum(axis=1, keepdims=True)
    rank, row = jnp.cumsum(observed, axis=1) - 1, jnp.arange(s.shape[1])[:, None]
    order = _first_of_rank(rank, observed)  # the observed ones to the front
    knots = jnp.take_along_axis(jnp.broadcast_to(s[:, :, None], values.shape), order, axis=1)
    # Behind the observed ones no width may be 0 or negative, whose quotients would make the gradient NaN.
    last = jnp.take_along_axis(knots, jnp.maximum(count - 1, 0), axis=1)
    knots = jnp.where(row < count, knots, last + (row - count + 1))
    known = pieces(knots, jnp.take_along_axis(values, order, axis=1), count)
    moving = (row < count - 1)[:, :, None, :]
    known = jnp.concatenate([known[:, :, :1], jnp.where(moving, known[:, :, 1:], 0)], axis=2)
    # Every knot has the polynomial of the last observation before it, expanded around the knot itself.
    here = jnp.maximum(rank, 0)
    shift = s[:, :, None] - jnp.take_along_axis(knots, here, axis=1)
    shift = jnp.where(rank < 0, 0, shift)
    found = _shifted(jnp.take_along_axis(known, here[:, :, None, :], axis=1), shift)
    return jnp.concatenate([found[:, :, :1], jnp.where(rank[:, :, None, :] < 0, 0, found[:, :, 1:])], axis=2)


def _first_of_rank(
    rank: Int[Array, "batch rows channels"], observed: Bool[Array, "batch rows channels"]
) -> Int[Array, "batch rows channels"]:
    """The row of the observation that has so many before it, in its channel; 0 where there is none.

    A stable sort of the mask would say the same, and take most of the time of an interpolation.
    """
    batch, rows, channels = rank.shape
    at = (jnp.arange(batch)[:, None, None], jnp.where(observed, rank, rows), jnp.arange(channels))
    row = jnp.broadcast_to(jnp.arange(rows)[:, None], rank.shape)
    return jnp.zeros_like(row).at[at].set(row, mode="drop")


def _shifted(pieces: Pieces, shift: Float[Array, "batch rows channels"]) -> Pieces:
    if pieces.shape[2] == 2:
        a, b = jnp.moveaxis(pieces, 2, 0)
        return jnp.stack([a + shift * b, b], axis=2)
    a, b, c, d = jnp.moveaxis(pieces, 2, 0)
    return jnp.stack(
        [
            a + shift * (b + shift * (c + shift * d)),
            b + shift * (2 * c + shift * 3 * d),
            c + shift * 3 * d,
            d,
        ],
        axis=2,
    )


def _widths_and_slopes(knots: Array, values: Array) -> tuple[Array, Array]:
    """Of the pieces between the knots, the last one repeated."""
    ahead = lambda array: jnp.concatenate([array[:, 1:], array[:, -1:]], axis=1)
    widths = jnp.concatenate([jnp.diff(knots, axis=1), jnp.ones_like(knots[:, :1])], axis=1)
    return widths, (ahead(values) - values) / widths


def _linear(knots: Array, values: Array, count: Array) -> Pieces:
    del count
    return jnp.stack([values, _widths_and_slopes(knots, values)[1]], axis=2)


def _hermite(knots: Array, values: Array, count: Array) -> Pieces:
    """Cubic Hermite pieces whose derivative at a knot is that of the line from the knot before."""
    del count
    widths, slopes = _widths_and_slopes(knots, values)
    start = jnp.concatenate([slopes[:, :1], slopes[:, :-1]], axis=1)
    bend = (slopes - start) / widths
    return jnp.stack([values, start, 2 * bend, -bend / widths], axis=2)


def _natural(knots: Array, values: Array, count: Array) -> Pieces:
    """The cubic spline with second derivatives M that are 0 at both ends: a tridiagonal system for M."""
    widths, slopes = _widths_and_slopes(knots, values)
    before = lambda array: jnp.concatenate([jnp.zeros_like(array[:, :1]), array[:, :-1]], axis=1)
    row = jnp.arange(knots.shape[1])[:, None]
    inner = (row > 0) & (row < count - 1)
    lower, upper = jnp.where(inner, before(widths), 0), jnp.where(inner, widths, 0)
    diagonal = jnp.where(inner, 2 * (before(widths) + widths), 1)
    right = jnp.where(inner, 6 * (slopes - before(slopes)), 0)

    def solve(diagonal: Array, lower: Array, upper: Array, right: Array) -> Array:
        operator = lx.TridiagonalLinearOperator(diagonal, lower[1:], upper[:-1])
        return lx.linear_solve(operator, right, solver=lx.Tridiagonal(), throw=False).value

    over_channels = jax.vmap(solve, in_axes=1, out_axes=1)
    # All channels may share the knots.
    second = jax.vmap(over_channels)(*jnp.broadcast_arrays(diagonal, lower, upper, right))
    ahead = jnp.concatenate([second[:, 1:], jnp.zeros_like(second[:, :1])], axis=1)
    start = slopes - widths * (2 * second + ahead) / 6
    return jnp.stack([values, start, second / 2, (ahead - second) / (6 * widths)], axis=2)


PIECES: dict[Interpolation, Callable[[Array, Array, Array], Pieces]] = {
    "hermite": _hermite,
    "natural": _natural,
    "linear": _linear,
    "rectilinear": _linear,
}
