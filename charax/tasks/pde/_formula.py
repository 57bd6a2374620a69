"""The sparse formula of a learned equation: terms, coefficients and standard errors, found through the characteristics.

All terms of a library are fitted at once, with the initial value as a network and no other networks. Around that fit
the sum of squares is a quadratic function of the coefficients, from which the best subset of each size follows without
fitting (best-subset selection in the metric of the data). These are fitted in turn, and the Bayesian information
criterion of the validation split chooses among them.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from charax.data import SolutionSamples
from charax.models import EquationRegressor
from charax.models._terms import measure_complexity
from charax.solve import Solver
from charax.tasks.pde._formula_slots import (
    Slot,
    activate_terms,
    find_positions,
    formula_of,
    list_slots,
    project_networks,
)
from charax.tasks.pde._formula_text import Term, describe_terms, write_equation
from charax.tasks.pde._least_squares import (
    Errors,
    Fit,
    evaluate_all_errors,
    evaluate_costs,
    evaluate_errors,
    minimize,
    minimize_all,
    normal_equations,
)
from charax.tasks.pde._members import ravel
from charax.tasks.pde._subsets import best_subsets, eliminate, restrict

_MOST_TERMS = 6
_FLOOR = 2e-3
"""Errors below this, in units of the value scale, are those of the solver and the initial value: no reason for a
further term."""
_RIDGES = (3e-4, 0.3)
"""The least and the largest ridge of the initial value."""
_PRIOR_UPDATES, _LEAST_UPDATE = 4, 0.7
"""How often the ridge follows the residuals, and how much smaller they must have become."""
_LEVEL = 1.0
"""Standard errors by which a formula must be better than a simpler one with as many terms."""
_RIVAL = 3.0
"""How much larger the error of a formula with fewer terms may be for another fit to be worth its time."""
_DISTANCE = 0.1
"""How close to the minimum the last fit ends, in standard errors of the coefficients. A step δ reduces the sum of
squares S by δᵀHδ; with a variance of S/N, that is N times the relative gain in squared standard errors. So a gain of
1e-3 with 1,000 numbers would still be a standard error."""
_SLACK = 1.1
"""How much larger the error of a formula may be than the networks' to count as equal."""


class Chosen(NamedTuple):
    """The best formula."""

    fit: Fit
    terms: tuple[Term, ...]
    text: str
    accepted: bool
    """Whether its error is that of the networks."""
    errors: Errors
    """On the validation split, before that was fitted, too."""


def search_formula(network: Fit, train: SolutionSamples, validation: SolutionSamples, solver: Solver) -> Chosen:
    """Search for the formula that explains the data as well as the networks of a fitted model."""
    slots = list(list_slots(network.model))
    start = project_networks(network.model, train, slots)
    full = _fit_with_prior(
        Fit(start, activate_terms(start, slots), _prior_ridge(network.model, train, solver)), train, solver
    )
    ridge = full.ridge
    normal = normal_equations(full, train, solver)
    weights = len(slots)
    # The weights of formulas come last among the active parameters only by chance: find them.
    where = find_positions(full.model, slots)
    inside = np.searchsorted(normal.where, where)
    reduced = eliminate(normal.hessian, inside)
    estimate = ravel(full.model)[where].astype(float)
    candidates: list[_Candidate] = []
    score = lambda candidate: candidate.score(weights)
    best, since = math.inf, 0
    for size in range(min(weights, _MOST_TERMS) + 1):
        starts: list[Fit] = []
        subsets = best_subsets(reduced, estimate, size)
        chosen = [[slots[i] for i in kept] for kept in subsets]
        for kept, terms in zip(subsets, chosen, strict=True):
            guesses = restrict(full, normal, inside, estimate, kept), project_networks(network.model, train, terms)
            starts += [Fit(guess, activate_terms(guess, terms), ridge) for guess in guesses]
        costs = evaluate_costs([(start, train) for start in starts], solver)
        starts = [starts[i + int(costs[i + 1] < costs[i])] for i in range(0, len(starts), 2)]
        fits = minimize_all([(start, train) for start in starts], solver, steps=20)
        latest = _assess(fits, chosen, train, validation, solver)
        candidates += latest
        scores = [math.inf, *map(score, latest)]
        since = 0 if min(scores) < best else since + 1
        best = min(best, *scores)
        if since >= 2 and _is_as_good(min(candidates, key=score).fit.model, network.model, validation, solver):
            break
    candidates += _share_initial_value(candidates, _choose(candidates, weights), train, validation, solver)
    fit, chosen, *_ = _choose(candidates, weights)
    fit = _fit_with_prior(fit, train, solver)
    errors = evaluate_errors(fit.model, validation, solver)
    accepted = _is_as_good(fit.model, network.model, validation, solver) and _has_shape(fit.model, train)
    if accepted:  # nothing is left to select, so that the validation split may be fitted, too
        train = SolutionSamples(*map(np.concatenate, zip(train, validation, strict=True)))
        fit = minimize(fit, train, solver, steps=200, least_gain=_DISTANCE**2 / train.u.size)
    terms = describe_terms(fit.model, normal_equations(fit, train, solver), chosen)
    return Chosen(fit, terms, write_equation(terms, fit.model), accepted, errors)


class _Candidate(NamedTuple):
    """A formula that was fitted."""

    fit: Fit
    slots: list[Slot]
    fitted: Float[np.ndarray, "samples"]
    """Its squared errors on the training split."""
    squared: Float[np.ndarray, "samples"]
    """Its squared errors on the validation split."""

    def score(self, library: int) -> float:
        """The Bayesian information criterion; the penalty of a larger library is that of Chen and Chen (2008)."""
        count = len(self.squared)
        score = count * math.log(float(self.squared.mean()) + _FLOOR**2)
        score += len(self.slots) * (math.log(count) + 2 * math.log(max(library, 2)))
        return score if math.isfinite(score) else math.inf

    @property
    def complexity(self) -> int:
        """How much there is to write."""
        return sum(measure_complexity(formula_of(self.fit.model, slot.part).terms[slot.term]) for slot in self.slots)


def _assess(
    fits: Sequence[Fit],
    slots: Sequence[list[Slot]],
    train: SolutionSamples,
    validation: SolutionSamples,
    solver: Solver,
) -> list[_Candidate]:
    """Fitted formulas with their errors on both splits."""
    errors = evaluate_all_errors([(fit.model, split) for fit in fits for split in (train, validation)], solver)
    squared = [each.squared for each in errors]
    return [
        _Candidate(fit, terms, squared[2 * i], squared[2 * i + 1])
        for i, (fit, terms) in enumerate(zip(fits, slots, strict=True))
    ]


def _choose(candidates: Sequence[_Candidate], library: int) -> _Candidate:
    """The best by the criterion, or the simplest of those with as many terms that cannot be told from it.

    Over a narrow range of u, its sine is a straight line. Two formulas with as many weights are compared by all their
    errors, also those that were fitted, as in Vuong's test (Econometrica 57, 1989): within one standard error they
    count as equal.
    """
    best = min(candidates, key=lambda one: one.score(library))

    def is_as_good(one: _Candidate) -> bool:
        if len(one.slots) != len(best.slots):
            return False
        difference = np.concatenate([one.fitted - best.fitted, one.squared - best.squared])
        slack = _LEVEL * float(difference.std()) / math.sqrt(len(difference))
        return float(difference.mean()) <= slack + 1e-2 * _FLOOR**2

    return min(filter(is_as_good, candidates), key=lambda one: (one.complexity, one.score(library)))


def _share_initial_value(
    candidates: Sequence[_Candidate],
    best: _Candidate,
    train: SolutionSamples,
    validation: SolutionSamples,
    solver: Solver,
) -> list[_Candidate]:
    """The best formulas of each smaller size, fitted again from the initial value of the best of all.

    The initial value is a network, whose fit ends sooner for one formula than for another. Further terms should not be
    chosen for an initial value that goes with fewer of them as well.
    """
    error = lambda one: math.sqrt(float(one.squared.mean()))
    largest = _RIVAL * max(error(best), _FLOOR)
    rivals: dict[int, _Candidate] = {}
    for one in sorted(candidates, key=error, reverse=True):
        if len(one.slots) < len(best.slots) and error(one) <= largest:
            rivals[len(one.slots)] = one
    initial = lambda it: it.initial_network
    starts = [
        rival.fit._replace(model=eqx.tree_at(initial, rival.fit.model, initial(best.fit.model)))
        for rival in rivals.values()
    ]
    fits = minimize_all([(start, train) for start in starts], solver)
    return _assess(fits, [rival.slots for rival in rivals.values()], train, validation, solver)


def _fit_with_prior(fit: Fit, train: SolutionSamples, solver: Solver) -> Fit:
    """Fit with a ridge that follows the residuals: the weights have a prior with standard deviation 1."""
    for _ in range(_PRIOR_UPDATES):
        fit = minimize(fit, train, solver, steps=60)
        ridge = _prior_ridge(fit.model, train, solver)
        if ridge > _LEAST_UPDATE * fit.ridge:
            break
        fit = fit._replace(ridge=ridge)
    return fit


def _prior_ridge(model: EquationRegressor, train: SolutionSamples, solver: Solver) -> float:
    """The ridge of that prior: any other would bias the coefficients."""
    noise = math.sqrt(float(evaluate_errors(model, train, solver).squared.mean()))
    return min(max(noise, _RIDGES[0]), _RIDGES[1])


def _is_as_good(
    formula: EquationRegressor, network: EquationRegressor, validation: SolutionSamples, solver: Solver
) -> bool:
    """Whether a formula's validation error is that of the networks, or not significantly larger."""
    ours, theirs = (evaluate_errors(model, validation, solver).squared for model in (formula, network))
    difference = ours - theirs
    spread = float(difference.std()) / math.sqrt(len(difference))
    close = ours.mean() <= _SLACK**2 * theirs.mean() + _FLOOR**2
    return bool(close or (difference.mean() <= 2 * spread and ours.mean() <= 2 * theirs.mean()))


def _has_shape(model: EquationRegressor, train: SolutionSamples) -> bool:
    """Whether the formula of a flux has the shape that is asked for, over the values of the data."""
    shape = model.field.velocity.flux
    if shape in (None, "any"):
        return True
    u = jnp.linspace(float(train.u.min()), float(train.u.max()), 201)[:, None]
    speed = np.asarray(model.velocity(jnp.zeros_like(u), jnp.zeros(len(u)), u))[:, 0]
    slack = 1e-5 * np.abs(speed).max()
    values = np.diff(speed) if shape in ("convex", "concave") else speed
    return bool((values >= -slack).all() if shape in ("increasing", "convex") else (values <= slack).all())
