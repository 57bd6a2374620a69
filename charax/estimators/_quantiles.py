"""Points of a normal distribution, and quantiles of a mixture of distributions that flows have mapped them to."""

from collections.abc import Callable
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Float32, Int
from scipy.special import ndtr, ndtri
from scipy.stats import qmc

_TAIL_POINTS = 16
_BLOCK = 256
"""Rows whose quantiles are computed at once, so that their arrays stay in the cache."""


def base_points(count: int, dim: int) -> Float32[np.ndarray, "count dim"]:
    """Points that represent a standard normal distribution, the same in every call: quantiles of equal probability in
    one dimension, scrambled Sobol points in more."""
    uniform = (np.arange(count)[:, None] + 0.5) / count if dim == 1 else qmc.Sobol(dim, rng=0).random(count)
    return ndtri(np.clip(uniform, 1e-6, 1 - 1e-6)).astype(np.float32)


def base_points_with_tails(count: int, least: float) -> Float32[np.ndarray, "points 1"]:
    """`base_points` in one dimension, and points in both tails that reach beyond the probability `least`.

    A standard deviation beyond, because what a member of a mixture has there counts where another one has `least`.
    """
    points = base_points(count, 1)
    tail = np.linspace(points[-1], max(-ndtri(least), points[-1, 0]) + 1, _TAIL_POINTS + 1, dtype=np.float32)[1:]
    return np.concatenate([-tail[::-1], points, tail])


def mixture_quantiles(
    values: Float[np.ndarray, "members rows points"],
    z: Float[np.ndarray, "points"],
    probabilities: Float[np.ndarray, "quantiles"],
) -> Float[np.ndarray, "rows quantiles"]:
    """Quantiles of the mixture of all members, for each row.

    A flow in one dimension preserves order: the images of the normal quantiles `z` are the quantiles of a member.
    """
    z, asked = z.astype(np.float64), ndtri(probabilities)
    blocks = (values[:, start : start + _BLOCK] for start in range(0, values.shape[1], _BLOCK))
    return np.concatenate([_mixture_quantiles_of_block(np.moveaxis(block, 1, 0), z, asked) for block in blocks])


def _mixture_quantiles_of_block(
    values: Float[np.ndarray, "rows members points"],
    z: Float[np.ndarray, "points"],
    asked: Float[np.ndarray, "quantiles"],
) -> Float[np.ndarray, "rows quantiles"]:
    members, points = values.shape[1:]
    own = np.sort(values, axis=-1)  # the order of near points is that of the solver's errors
    together = own.reshape(len(own), -1)
    order = np.argsort(together, axis=-1)
    pooled = np.take_along_axis(together, order, axis=-1)
    # How many points of each member are up to each of the pooled ones; of equal ones, the last has counted all.
    counts = np.cumsum(order[:, None] // points == np.arange(members)[:, None], axis=-1)
    is_last = np.diff(pooled, append=np.inf) > 0
    indices = np.where(is_last, np.arange(members * points), members * points)
    last = np.minimum.accumulate(indices[:, ::-1], axis=-1)[:, ::-1]

    def score(index: Int[np.ndarray, "rows quantiles"]) -> Float[np.ndarray, "rows quantiles"]:
        """The normal quantile that has the probability of the mixture below a pooled point."""
        index = np.take_along_axis(last, index, axis=-1)[:, None]
        point, count = np.take_along_axis(pooled[:, None], index, -1), np.take_along_axis(counts, index, -1)
        below, above = np.maximum(count - 1, 0), np.minimum(count, points - 1)
        ends = np.take_along_axis(own, below, -1), np.take_along_axis(own, above, -1)
        scores = _interpolate(point, *ends, z[below], z[above])
        scores = np.where(count == 0, -np.inf, np.where(point > own[..., -1:], np.inf, scores))
        # In a tail, the probability beyond is precise, and one minus it is not.
        sign = np.where(asked < 0, 1, -1)
        return sign * ndtri(ndtr(sign * scores).mean(axis=1))

    count = _count_leading(lambda index: score(index) <= asked, pooled.shape[1], (len(pooled), len(asked)))
    below, above = np.maximum(count - 1, 0), np.minimum(count, pooled.shape[1] - 1)
    ends = np.take_along_axis(pooled, below, -1), np.take_along_axis(pooled, above, -1)
    return _interpolate(asked, score(below), score(above), *ends)


def _interpolate(x: Any, left: Any, right: Any, of_left: Any, of_right: Any) -> Float[np.ndarray, "..."]:
    """Linear interpolation; the right end if both are the same, or if the left one is infinitely far."""
    with np.errstate(divide="ignore", invalid="ignore"):
        fraction = (x - left) / (right - left)
    return of_left + np.where(np.isfinite(fraction), fraction, 1) * (of_right - of_left)


def _count_leading(
    holds: Callable[[Int[np.ndarray, "..."]], Bool[np.ndarray, "..."]], size: int, shape: tuple[int, ...]
) -> Int[np.ndarray, "..."]:
    """How many of the first indices up to `size` have what all indices have up to some one: by bisection."""
    count = np.zeros(shape, int)
    for power in reversed(range(size.bit_length())):
        further = count + 2**power
        count = np.where((further <= size) & holds(np.minimum(further, size) - 1), further, count)
    return count
