"""After stochastic gradient descent: the networks fitted by least squares, and the formula that they lead to."""

import math
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from charax.data import SolutionSamples
from charax.models import EquationRegressor
from charax.solve import Solver
from charax.tasks.pde._formula import search_formula
from charax.tasks.pde._formula_slots import activate_networks
from charax.tasks.pde._interval import find_interval
from charax.tasks.pde._least_squares import (
    Fit,
    distinct_rows,
    evaluate_errors,
    minimize,
    single_threaded_blas,
)
from charax.tasks.pde._members import ravel, unravel
from charax.tasks.pde._posterior import draw_members, find_shock_time
from charax.train import Splits

_RIDGES = (0.3, 0.1, 0.03, 0.01, 0.003, 0.001, 0.0003)
"""From smooth to close: noise ends the series early."""
_PATIENCE = 2
_MEMBER_RIDGE = 0.01
"""Of the members of an ensemble, so that what the data do not determine stays as it started."""


def fit_networks(model: EquationRegressor, train: SolutionSamples, validation: SolutionSamples, solver: Solver) -> Fit:
    """Fit the networks with less and less regularization; the validation split selects."""
    active = activate_networks(model)
    error = lambda fit: float(evaluate_errors(fit.model, validation, solver).squared.mean())
    fit = best = Fit(model, active, _RIDGES[0])
    lowest, since = error(best), 0
    for ridge in _RIDGES:
        fit = minimize(fit._replace(ridge=ridge), train, solver, steps=30)
        now = error(fit)
        if np.isfinite(now) and now < lowest:
            best, lowest, since = fit, now, 0
        else:
            since += 1
        if since == _PATIENCE:
            break
    return best


_LEVEL = 0.95
_MEMBERS = 8
_HORIZON = 4.0
"""Shocks are looked for up to this many times the last time of the data."""


def refine_equation(
    model: EquationRegressor,
    splits: Splits,
    solver: Solver,
    find_domain: Callable[[EquationRegressor], tuple[tuple[float, float], ...]],
    say: Callable[[str], None],
) -> tuple[EquationRegressor, dict[str, Any]]:
    """Fit by least squares, and find the formula and the shock time.

    Args:
        model: The trained model.
        splits: The data; the test split only tells how many of its samples lie in their intervals.
        solver: How to integrate.
        find_domain: The part of space from which the characteristics of the data start.
        say: Where to report.

    Returns:
        The model: a formula if one explains the validation split as well as the networks, else the networks. And the
        equation in words, its terms and its shock time, and the mean error on the validation split.
    """
    train, validation = distinct_rows(splits.train), distinct_rows(splits.validation)
    model = unravel(ravel(model), model)  # placed like all later ones, which share its compiled programs
    with single_threaded_blas():
        say("fitting by least squares")
        fit = fit_networks(model, train, validation, solver)
        say("searching for a formula")
        chosen = search_formula(fit, train, validation, solver)
        errors = chosen.errors if chosen.accepted else evaluate_errors(fit.model, validation, solver)
        if chosen.accepted:
            fit = chosen.fit
        missed = np.linalg.norm(np.asarray(model.scaling.value_scale) * errors.residual, axis=1)
        found: dict[str, Any] = {
            "validation_error": float(missed[errors.found].mean()) if errors.found.any() else math.nan,
            "equation": chosen.text if chosen.accepted else None,
            "terms": [asdict(term) for term in chosen.terms] if chosen.accepted else [],
            "best_formula": chosen.text,
        }
        test = distinct_rows(splits.test)
        interval = find_interval(fit, splits, solver, test.x, test.t, level=_LEVEL)
        inside = np.abs(test.u - interval.u) <= interval.prediction
        found["covered"] = float(inside[np.isfinite(interval.u)].mean()) if np.isfinite(interval.u).any() else None
        if model.scaling.dim == model.scaling.values == 1:
            say("fitting an ensemble")
            domain, horizon = find_domain(fit.model)[0], _HORIZON * float(train.t.max())
            members = draw_members(fit, train, validation, solver, count=_MEMBERS).members
            time, *others = (find_shock_time(one, domain, horizon) for one in (fit.model, *members))
            is_certain = np.isfinite([time, *others]).all()
            found["shock_time"] = time if np.isfinite(time) else None
            found["shock_time_sd"] = float(np.std(others, ddof=1)) if is_certain else None
    return fit.model, found


def current_fit(model: EquationRegressor) -> Fit:
    """What of a refined model was fitted: a formula and the initial value, or the networks."""
    lines = [coefficient.line for coefficient in model.field.learned.values()]
    is_zero = not any(np.asarray(leaf).any() for leaf in jax.tree.leaves(lines))
    if not is_zero or model.field.velocity.formula is None:
        return Fit(model, activate_networks(model), _MEMBER_RIDGE)
    active = jax.tree.map(lambda leaf: (jnp.abs(leaf) > 0).astype(leaf.dtype), model)
    return Fit(model, active, _MEMBER_RIDGE)
