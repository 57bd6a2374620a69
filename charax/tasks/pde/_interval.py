"""How uncertain a learned solution is: intervals of u at any point, as wide as held-out samples show them to be.

The variance of u because of the parameters follows from the curvature of the sum of squares. Its scale is not believed:
the model is fitted to the training split alone, and all intervals are widened or narrowed by one factor, such that the
asked share of the validation split lies inside (split conformal prediction with normalized residuals).
"""

from statistics import NormalDist
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from charax.data import SolutionSamples
from charax.solve import Solver
from charax.tasks.pde._least_squares import (
    Fit,
    distinct_rows,
    evaluate_errors,
    minimize,
    normal_equations,
    prediction_variance,
    single_threaded_blas,
)
from charax.train import Splits

_STEPS = 12


class Interval(NamedTuple):
    """Values, and half the widths of their intervals, in the units of the data."""

    u: Float[np.ndarray, "points n"]
    """The learned solution."""
    confidence: Float[np.ndarray, "points n"]
    """Of the solution: u ± this is where it is."""
    prediction: Float[np.ndarray, "points n"]
    """Of samples, which are noisy: u ± this is where one would be observed."""


def find_interval(
    fit: Fit,
    splits: Splits,
    solver: Solver,
    x: Float[np.ndarray, "points d"],
    t: Float[np.ndarray, "points"],
    *,
    level: float,
) -> Interval:
    """Intervals at points; NaN where no characteristic leads.

    Args:
        fit: The fitted model.
        splits: Its data; the test split is not used.
        solver: How to integrate.
        x: Positions.
        t: Times.
        level: The share that lies inside.

    Returns:
        The values and their intervals.
    """
    train, validation = distinct_rows(splits.train), distinct_rows(splits.validation)
    scale = np.asarray(fit.model.scaling.value_scale)
    with single_threaded_blas():
        # A formula is fitted to the validation split, too, which then shows nothing.
        trained = minimize(fit, train, solver, steps=_STEPS)
        normal = normal_equations(trained, train, solver)
        residual, found = evaluate_errors(trained.model, validation, solver)
        variance = prediction_variance(trained, normal, validation, solver).reshape(residual.shape) + normal.variance
        scores = np.sort((np.abs(residual) / np.sqrt(variance))[found].ravel())
        rank = min(int(np.ceil(level * (len(scores) + 1))), len(scores)) - 1
        factor = float(scores[rank]) if len(scores) else NormalDist().inv_cdf(0.5 + level / 2)
        asked = SolutionSamples(x.astype(np.float32), t.astype(np.float32), np.zeros((len(t), len(scale)), np.float32))
        values, located = evaluate_errors(fit.model, asked, solver)
        normal = normal_equations(fit, train, solver)  # the weights of both fits are not comparable
        own = prediction_variance(fit, normal, asked, solver).reshape(values.shape)
    own = np.where(located[:, None], own, np.nan)
    return Interval(
        np.where(located[:, None], scale * values, np.nan),
        scale * factor * np.sqrt(own),
        scale * factor * np.sqrt(own + normal.variance),
    )
