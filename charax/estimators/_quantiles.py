"""Points of a normal distribution, and quantiles of a mixture of distributions that flows have mapped them to."""

import numpy as np
from jaxtyping import Float, Float32
from scipy.special import ndtr, ndtri
from scipy.stats import qmc

_TAIL_POINTS = 16


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
    rows = np.moveaxis(np.sort(values, axis=-1), 1, 0)  # the order of near points is that of the solver's errors
    return np.stack([_mixture_quantiles_of_row(row, z, ndtri(probabilities)) for row in rows])


def _mixture_quantiles_of_row(
    members: Float[np.ndarray, "members points"], z: Float[np.ndarray, "points"], asked: Float[np.ndarray, "quantiles"]
) -> Float[np.ndarray, "quantiles"]:
    pooled = np.sort(members.ravel())
    scores = np.stack([np.interp(pooled, own, z, left=-np.inf, right=np.inf) for own in members])
    below, above = ndtr(scores).mean(axis=0), ndtr(-scores).mean(axis=0)
    # From the smaller probability, which alone is precise in a tail.
    return np.interp(asked, np.where(below < above, ndtri(below), -ndtri(above)), pooled)
