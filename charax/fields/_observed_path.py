"""Paths through observations at irregular times."""

from typing import get_args

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from charax.fields._names import Count, Interpolation
from charax.fields._observed_checks import check_observations
from charax.fields._observed_interpolation import (
    CAUSAL,
    PIECES,
    fill_forward,
    interpolate_filled,
    interpolate_observed,
    time_then_value,
)
from charax.fields._reads import Scalar


class ObservedPath(eqx.Module):
    """A batch of paths X(s) through observations, each with its own times, over s from 0 to 1.

    The path is a polynomial in s between two knots, and constant before the first observation and after the last one.
    Its first channel is the time, then come the observed channels, then the counts of observations if asked for. All
    arrays are batch first, so that `jax.tree.map(lambda leaf: leaf[rows], path)` is a mini-batch.

    The derivative of the path drives a neural controlled differential equation: its start goes to the model, and its
    pieces are the context of the solve.

    ```python
    import jax
    import jax.numpy as jnp
    from charax.fields import CharacteristicField, JointJacobian, ObservedPath, ObservedVelocity
    from charax.models import InputLayer, NeuralODE
    from charax.nn import Linear, mlp
    from charax.solve import Solver

    times = jnp.array([[0.0, 0.7, 1.0], [2.0, 5.0, 0.0]])
    values = jnp.array([[[1.0], [jnp.nan], [3.0]], [[4.0], [0.0], [jnp.nan]]])  # NaN: not observed
    path = ObservedPath.interpolate(times, values, jnp.array([3, 2]))

    lift_key, body_key, key = jax.random.split(jax.random.key(0), 3)
    body = mlp([8, 16], final="tanh", key=body_key)
    jacobian = JointJacobian(body, hidden=16, channels=8, characteristic_dim=path.channels, key=key)
    model = NeuralODE(
        CharacteristicField(ObservedVelocity(path.channels), jacobian),
        InputLayer(Linear(path.channels, 8, key=lift_key)),
    )
    solution = model(path.start, context=path.context(), solver=Solver("dopri5", rtol=1e-3, atol=1e-3))
    assert solution.u.shape == (2, 8)
    ```
    """

    knots: Float[Array, "batch rows"]
    """Where the pieces start, in s, in increasing order. The last ones are constant."""
    pieces: Float[Array, "batch rows powers channels"]
    """The coefficients of X in powers of the distance from the knot, the constant first."""

    @classmethod
    def interpolate(
        cls,
        times: Float[Array | np.ndarray, "batch length"],
        values: Float[Array | np.ndarray, "batch length channels"],
        lengths: Int[Array | np.ndarray, "batch"] | None = None,
        *,
        interpolation: Interpolation = "hermite",
        counts: bool = False,
        span: tuple[Scalar, Scalar] | None = None,
        aligned: bool = False,
    ) -> "ObservedPath":
        """Interpolate observations.

        The interpolations, of which the first two may be used online:

        - `"hermite"`: cubic Hermite splines with backward differences. Until an observation the path depends on nothing
          after it. Where a value is missing the last one is kept, and it is 0 before there is one.
        - `"rectilinear"`: the time moves first and the values follow, so that the path never depends on anything later.
          Missing values as above.
        - `"natural"`: natural cubic splines, over a channel's own observations where some are missing.
        - `"linear"`: lines, over a channel's own observations where some are missing.

        The derivative is continuous for the two cubic ones. For the others it jumps at the knots, and adaptive steps
        may leap over a piece: use fixed steps that end at the knots (`aligned`), or `log_signature(path, steps,
        depth=1)` for the exact increments.

        A channel without any observation is constant 0; a sample with a single observation has a constant path.

        Args:
            times: The times of the observations; those of a sample increase. What lies beyond `lengths` is ignored.
            values: The observations; NaN where one is missing.
            lengths: The number of observations of each sample; all of them if omitted.
            interpolation: The kind of interpolation.
            counts: Whether to add one channel per observed channel that counts its observations so far: when a value
                was measured often says more than the value. They grow with the series; see `scale`.
            span: The times of s = 0 and s = 1. Each sample's own first and last observation if omitted.
            aligned: Whether s counts the observations instead of measuring the time, so that all samples have the same
                equally spaced knots and `path.num_pieces` fixed steps, or a multiple, end at every one of them. The
                solution of a controlled equation is the same. A sample that is shorter than others ends before s = 1.
                The derivative jumps at the knots: use a method without a stage at the end of its step ("euler",
                "midpoint", "bosh3").

        Returns:
            The paths.

        Raises:
            ValueError: If the arrays do not fit, or the times of a sample do not increase.
        """
        if interpolation not in PIECES:
            raise ValueError(
                f"unknown interpolation {interpolation!r}: choose from {', '.join(get_args(Interpolation))}"
            )
        if span is not None and not span[0] < span[1]:
            raise ValueError(f"span must be the time of s = 0 and the later one of s = 1, got {span}")
        if span is not None and aligned:
            raise ValueError("span and aligned exclude each other: with aligned knots s does not measure the time")
        times, values, lengths = check_observations(times, values, lengths)
        ends = None if span is None else jnp.asarray(span, times.dtype)
        return _interpolate(times, values, lengths, interpolation, counts, ends, aligned)

    @property
    def channels(self) -> int:
        """The number k of channels, the time among them."""
        return self.pieces.shape[3]

    @property
    def num_pieces(self) -> Count:
        """The number of pieces between the knots of the longest sample; 1 at least."""
        return max(self.knots.shape[1] - 1, 1)

    @property
    def start(self) -> Float[Array, "batch channels"]:
        """X(0), from which a model makes its initial state."""
        return self(jnp.zeros(()))

    def __call__(self, s: Scalar | Float[Array, "batch"]) -> Float[Array, "batch channels"]:
        """Evaluate the paths.

        Args:
            s: Where; one number for all samples or one for each.

        Returns:
            X(s).
        """
        return _evaluate(self.knots, self.pieces, self._points(s))

    def derivative(self, s: Scalar | Float[Array, "batch"]) -> Float[Array, "batch channels"]:
        """Evaluate the derivative of the paths, at a knot that of the piece that starts there.

        Args:
            s: Where; one number for all samples or one for each.

        Returns:
            dX/ds.
        """
        return _differentiate(self.knots, self.pieces, self._points(s))

    def scale(self, factors: Float[Array | np.ndarray, "channels"]) -> "ObservedPath":
        """Multiply the channels: a velocity far from 1, as that of long times or large counts, is hard to learn with.

        Args:
            factors: One factor per channel, the same for all samples.

        Returns:
            The scaled paths.
        """
        return ObservedPath(self.knots, self.pieces * jnp.asarray(factors, self.pieces.dtype))

    def context(self, covariates: Float[Array, "batch c"] | None = None) -> Float[Array, "batch rows powers columns"]:
        """Pack dX/ds into the context of a solve, as `ObservedVelocity` reads it.

        Args:
            covariates: What a learned velocity next to the observed one reads as its context; see `JoinedVelocity`.

        Returns:
            For each piece its knot, then the coefficients of dX/ds; one column per channel, and the covariates.
        """
        return _pack(self.knots, self.pieces, covariates)

    def _points(self, s: Scalar | Array) -> Float[Array, "batch"]:
        return jnp.broadcast_to(jnp.asarray(s, self.knots.dtype), self.knots.shape[:1])


@jax.jit
def _evaluate(knots: Array, pieces: Array, s: Array) -> Array:
    local, piece, started = find_piece(s, knots, pieces)
    return polynomial(jnp.where(started, local, 0), piece)


@jax.jit
def _differentiate(knots: Array, pieces: Array, s: Array) -> Array:
    local, piece, started = find_piece(s, knots, differentiate(pieces))
    return jnp.where(started[:, None], polynomial(local, piece), 0)


@jax.jit
def _pack(knots: Array, pieces: Array, covariates: Array | None) -> Array:
    batch, rows, powers, channels = pieces.shape
    table = jnp.concatenate(
        [jnp.broadcast_to(knots[:, :, None, None], (batch, rows, 1, channels)), differentiate(pieces)], axis=2
    )
    if covariates is None:
        return table
    repeated = jnp.broadcast_to(covariates[:, None, None, :], (batch, rows, powers, covariates.shape[1]))
    return jnp.concatenate([table, repeated], axis=3)


def find_piece(
    s: Float[Array, "batch"], knots: Float[Array, "batch rows"], pieces: Float[Array, "batch rows *piece"]
) -> tuple[Float[Array, "batch"], Float[Array, "batch *piece"], Bool[Array, "batch"]]:
    """The distance of s from the knot before it, the piece that starts there, and whether there is one."""
    # A step that ends at a knot may miss it by rounding.
    ahead = s + 8 * jnp.finfo(knots.dtype).eps
    row = jax.vmap(count_knots)(knots, ahead) - 1
    pick = lambda array: jnp.take_along_axis(array, jnp.maximum(row, 0).reshape(-1, *(1,) * (array.ndim - 1)), axis=1)
    return s - pick(knots)[:, 0], pick(pieces)[:, 0], row >= 0


def count_knots(knots: Float[Array, "rows"], s: Float[Array, "*points"]) -> Int[Array, "*points"]:
    """The number of knots up to s."""
    # Few comparisons are quicker to make and to compile than the loop of a bisection, whose length must be known.
    if not isinstance(knots.shape[0], int) or knots.shape[0] <= 256:
        return jnp.sum(knots <= s[..., None], axis=-1, dtype=jnp.int32)
    return jnp.searchsorted(knots, s, side="right")


def polynomial(
    t: Float[Array, "*points"], coefficients: Float[Array, "*pieces powers channels"]
) -> Float[Array, "*both channels"]:
    """Σᵢ coefficientsᵢ · tⁱ, for points and pieces that may be broadcast against each other."""
    total = jnp.zeros_like(coefficients[..., 0, :])
    for power in reversed(range(coefficients.shape[-2])):
        total = coefficients[..., power, :] + t[..., None] * total
    return total


def differentiate(coefficients: Float[Array, "*batch powers channels"]) -> Float[Array, "*batch order channels"]:
    """The coefficients of a polynomial's derivative."""
    powers = jnp.arange(1, coefficients.shape[-2], dtype=coefficients.dtype)
    return powers[:, None] * coefficients[..., 1:, :]


def _align(s: Array, pieces: Array) -> tuple[Array, Array]:
    """The same curves with equally spaced knots: a piece of width w is traversed in 1 / number of pieces."""
    rows, powers = pieces.shape[1:3]
    number = max(rows - 1, 1)
    widths = jnp.concatenate([jnp.diff(s, axis=1), jnp.ones_like(s[:, :1])], axis=1) * number
    factors = widths[:, :, None, None] ** jnp.arange(powers)[:, None]
    knots = jnp.arange(rows, dtype=s.dtype) / number
    return jnp.broadcast_to(knots, s.shape), pieces * factors


def end_knot(s: Array) -> Array:
    """Where the constant piece after the last observation starts: behind 1, if that is where the observation is.

    The last stage of a solve from 0 to 1 is at 1, and is to see the piece before.
    """
    eps = jnp.finfo(s.dtype).eps
    return jnp.where(jnp.abs(s - 1) <= 8 * eps, 1 + 64 * eps, s)


@eqx.filter_jit
def _interpolate(
    times: Array,
    values: Array,
    lengths: Array,
    interpolation: Interpolation,
    counts: bool,
    ends: Array | None,
    aligned: bool,
) -> ObservedPath:
    length = times.shape[1]
    row = jnp.arange(length)
    used = row < lengths[:, None]
    first, last = times[:, :1], jnp.take_along_axis(times, lengths[:, None] - 1, axis=1)
    good = jnp.where(used[:, 1:], jnp.diff(times, axis=1) > 0, True).all(axis=1) & (lengths > 0) & (lengths <= length)

    start, end = (first, last) if ends is None else (ends[0], ends[1])
    width = jnp.where(end > start, end - start, 1)
    beyond = (row - lengths[:, None] + 1) * width
    times = jnp.where(used, times, last + beyond)  # the padding increases too
    s = (times - start) / width

    observed = used[:, :, None] & ~jnp.isnan(values)
    values = jnp.where(observed, values, 0)
    if interpolation in CAUSAL:
        values = fill_forward(values, observed)
    # Time and counts are known in every row.
    known = [times[:, :, None]]
    if counts:
        known.append(jnp.cumsum(observed, axis=1, dtype=values.dtype))
    if interpolation in CAUSAL:
        joined = jnp.concatenate([known[0], values, *known[1:]], axis=2)
        if interpolation == "rectilinear":
            s, joined, lengths = time_then_value(s, joined, lengths)
        pieces = interpolate_filled(PIECES[interpolation], s, joined, lengths)
    else:
        parts = [interpolate_filled(PIECES[interpolation], s, each, lengths) for each in known]
        parts.insert(1, interpolate_observed(PIECES[interpolation], s, values, observed))
        pieces = jnp.concatenate(parts, axis=3)
    if aligned:
        s, pieces = _align(s, pieces)
    is_last = jnp.arange(s.shape[1]) == lengths[:, None] - 1
    knots = jnp.where(is_last, end_knot(s), s)
    # Under `jit` nobody could be told that the times of a sample do not increase.
    return ObservedPath(knots, jnp.where(good[:, None, None, None], pieces, jnp.nan))
