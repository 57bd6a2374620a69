"""Best-subset selection of terms in the metric of the data, from the quadratic model around a fit of all of them."""

import itertools
import math
from collections.abc import Sequence

import numpy as np
from jaxtyping import Float

from charax.models import EquationRegressor
from charax.tasks.pde._least_squares import Fit, Normal
from charax.tasks.pde._members import ravel, unravel

_FITTED_PER_SIZE = 4
_MOST_SUBSETS = 4000
"""Up to this many subsets of a size are all compared; beyond, terms are removed one by one, and exchanged."""


def eliminate(hessian: Float[np.ndarray, "p p"], kept: np.ndarray) -> Float[np.ndarray, "k k"]:
    """The Hessian of some parameters, with all others at their best (the Schur complement)."""
    others = np.setdiff1d(np.arange(len(hessian)), kept)
    cross = hessian[np.ix_(others, kept)]
    return hessian[np.ix_(kept, kept)] - cross.T @ np.linalg.solve(hessian[np.ix_(others, others)], cross)


def best_subsets(reduced: np.ndarray, estimate: np.ndarray, size: int) -> list[tuple[int, ...]]:
    """The subsets of one size that increase the sum of squares least; one if there are too many to compare them all."""
    covariance, everything = np.linalg.pinv(reduced, hermitian=True), np.arange(len(estimate))

    def increase(kept: Sequence[int] | np.ndarray) -> float:
        """By how much the sum of squares grows if the others are set to zero, and these are fitted again."""
        removed = np.setdiff1d(everything, kept)
        block = covariance[np.ix_(removed, removed)]
        return float(estimate[removed] @ np.linalg.lstsq(block, estimate[removed])[0]) if len(removed) else 0.0

    if math.comb(len(everything), size) <= _MOST_SUBSETS:
        subsets = itertools.combinations(range(len(everything)), size)
        return sorted(subsets, key=increase)[:_FITTED_PER_SIZE]
    kept = everything
    while len(kept) > size:
        kept = np.delete(kept, int(np.argmin([increase(np.delete(kept, i)) for i in range(len(kept))])))
    # Terms that are nearly the same may have been removed in the wrong order: exchange one while that is better.
    best, cost = tuple(kept.tolist()), increase(kept)
    while True:
        others = [one for one in everything.tolist() if one not in best]
        swaps = [(*best[:i], other, *best[i + 1 :]) for i in range(size) for other in others]
        costs = [increase(swap) for swap in swaps]
        if not swaps or min(costs) >= cost * (1 - 1e-9):
            return [tuple(sorted(best))]
        best, cost = swaps[int(np.argmin(costs))], min(costs)


def restrict(
    full: Fit, normal: Normal, inside: np.ndarray, estimate: np.ndarray, kept: Sequence[int]
) -> EquationRegressor:
    """The minimum of the quadratic model with some weights at zero: a guess for the fit of the others."""
    removed = np.setdiff1d(np.arange(len(estimate)), kept)
    vector = ravel(full.model).astype(float)
    gone = inside[removed]
    others = np.setdiff1d(np.arange(len(normal.where)), gone)
    block = normal.hessian[np.ix_(others, others)]
    shift = np.linalg.solve(block, normal.hessian[np.ix_(others, gone)] @ estimate[removed])
    vector[normal.where[others]] += shift
    vector[normal.where[gone]] = 0.0
    return unravel(vector, full.model)
