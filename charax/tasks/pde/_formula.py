"""The sparse formula of a learned equation: terms, coefficients and standard errors, found through the characteristics.

All terms of a library are fitted at once, with the initial value as a network and no other networks. Around that fit
the sum of squares is a quadratic function of the coefficients, from which the best subset of each size follows without
fitting (best-subset selection in the metric of the data). These are fitted in turn, and the Bayesian information
criterion of the validation split chooses among them.
"""

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from charax.data import SolutionSamples
from charax.models import EquationRegressor
from charax.models._equation_field import Formula
from charax.models._known import KnownSource
from charax.models._terms import measure_complexity
from charax.solve import Solver
from charax.tasks.pde._least_squares import (
    Errors,
    Fit,
    Normal,
    evaluate_cost,
    evaluate_errors,
    minimize,
    normal_equations,
    ravel,
    unravel,
)

_MOST_TERMS = 6
_FITTED_PER_SIZE = 4
_MOST_SUBSETS = 4000
"""Up to this many subsets of a size are all compared; beyond, terms are removed one by one, and exchanged."""
_FLOOR = 2e-3
"""Errors below this, in units of the value scale, are those of the solver and the initial value: no reason for a
further term."""
_RIDGES = (3e-4, 0.3)
"""The least and the largest ridge of the initial value."""
_PRIOR_UPDATES, _LEAST_UPDATE = 4, 0.7
"""How often the ridge follows the residuals, and how much smaller they must have become."""
_LEVEL = 1.0
"""Standard errors by which a formula must be better than a simpler one with as many terms."""
_SLACK = 1.1
"""How much larger the error of a formula may be than the networks' to count as equal."""


@dataclass(frozen=True)
class Term:
    """One term of a learned equation, in the units of the data."""

    name: str
    """The term as it stands in the equation, such as u^2 u_x on the left-hand side, or u on the right."""
    part: str
    """velocity or source."""
    coefficient: float
    """Its coefficient."""
    standard_error: float
    """The standard error of the coefficient, from the curvature of the sum of squares."""


class _Slot(NamedTuple):
    """A weight of a formula."""

    part: str
    term: int
    output: int


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
    slots = list(_slots(network.model))
    start = _project(network.model, train, slots)
    full = _fit_with_prior(
        Fit(start, _activate(start, slots), _prior_ridge(network.model, train, solver)), train, solver
    )
    ridge = full.ridge
    normal = normal_equations(full, train, solver)
    weights = len(slots)
    # The weights of formulas come last among the active parameters only by chance: find them.
    where = _positions(full.model, slots)
    inside = np.searchsorted(normal.where, where)
    reduced = _eliminate(normal.hessian, inside)
    estimate = ravel(full.model)[where].astype(float)
    candidates: list[_Candidate] = []
    score = lambda candidate: candidate.score(weights)
    best, since = math.inf, 0
    for size in range(min(weights, _MOST_TERMS) + 1):
        scores = [math.inf]
        for kept in _best_subsets(reduced, estimate, size):
            chosen = [slots[i] for i in kept]
            guesses = _restrict(full, normal, inside, estimate, kept), _project(network.model, train, chosen)
            starts = [Fit(guess, _activate(guess, chosen), ridge) for guess in guesses]
            fit = min(starts, key=lambda fit: evaluate_cost(fit, train, solver))
            fit = minimize(fit, train, solver, steps=20)
            errors = [evaluate_errors(fit.model, split, solver).squared for split in (train, validation)]
            candidates.append(_Candidate(fit, chosen, *errors))
            scores.append(score(candidates[-1]))
        since = 0 if min(scores) < best else since + 1
        best = min(best, *scores)
        if since >= 2 and _is_as_good(min(candidates, key=score).fit.model, network.model, validation, solver):
            break
    fit, chosen, *_ = _choose(candidates, weights)
    fit = _fit_with_prior(fit, train, solver)
    errors = evaluate_errors(fit.model, validation, solver)
    accepted = _is_as_good(fit.model, network.model, validation, solver) and _has_shape(fit.model, train)
    if accepted:  # nothing is left to select, so that the validation split may be fitted, too
        train = SolutionSamples(*map(np.concatenate, zip(train, validation, strict=True)))
        fit = minimize(fit, train, solver, steps=200, least_gain=1e-5)
    terms = _describe(fit.model, normal_equations(fit, train, solver), chosen)
    return Chosen(fit, terms, write_equation(terms, fit.model), accepted, errors)


class _Candidate(NamedTuple):
    """A formula that was fitted."""

    fit: Fit
    slots: list[_Slot]
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
        return sum(measure_complexity(_formula(self.fit.model, slot.part).terms[slot.term]) for slot in self.slots)


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


def write_equation(terms: Sequence[Term], model: EquationRegressor) -> str:
    """The equation as text, with standard errors in parentheses, such as `u_t + 1.00(1) u^2 u_x = -0.20(1) u`."""
    values = _names("u", model.scaling.values)
    lines = []
    for name in values:
        left = [f"{name}_t"]
        right = []
        for term in terms:
            sign = "-" if term.coefficient < 0 else "+"
            number = write_number(abs(term.coefficient), term.standard_error)
            if term.part == "velocity":
                left += [sign, f"{number} {term.name.replace('u_', f'{name}_') if len(values) > 1 else term.name}"]
            elif len(values) == 1 or term.name.startswith(f"{name}: "):
                text = term.name.removeprefix(f"{name}: ")
                right += [sign, number if text == "1" else f"{number} {text}"]
        if isinstance(model.field.source, KnownSource):
            given = model.field.source.given
            right = [
                "known source" if callable(given) else given[values.index(name)].replace("**", "^").replace("*", " ")
            ]
        right = " ".join(right[1:] if right[:1] == ["+"] else right) or "0"
        lines.append(f"{' '.join(left)} = {right.replace('- ', '-', 1) if right.startswith('- ') else right}")
    return "; ".join(lines)


def write_number(value: float, error: float) -> str:
    """A number with its standard error in units of the last digit, such as 0.20(1)."""
    if not (math.isfinite(error) and error > 0):
        return f"{value:.4g}"
    digits = min(max(-math.floor(math.log10(error)), 0), 6)
    last = round(error * 10**digits)
    if last >= 10 and digits > 0:
        digits, last = digits - 1, round(error * 10 ** (digits - 1))
    return f"{value:.{digits}f}({max(last, 1)})"


def _names(letter: str, size: int) -> list[str]:
    return [letter] if size == 1 else [f"{letter}{i + 1}" for i in range(size)]


def _formula(model: EquationRegressor, part: str) -> Formula:
    formula = model.field.learned[part].formula
    assert formula is not None
    return formula


def _slots(model: EquationRegressor) -> Iterator[_Slot]:
    for part in model.field.learned:
        terms, outputs = _formula(model, part).weights.shape
        yield from (_Slot(part, term, output) for output in range(outputs) for term in range(terms))


def _activate(model: EquationRegressor, slots: Sequence[_Slot]) -> EquationRegressor:
    """1 for the initial value and for some weights of the formulas, 0 for all other parameters."""
    zero = jax.tree.map(lambda leaf: jnp.zeros_like(leaf) if eqx.is_inexact_array(leaf) else leaf, model)
    one = lambda tree: jax.tree.map(lambda leaf: jnp.ones_like(leaf) if eqx.is_inexact_array(leaf) else leaf, tree)
    active = zero
    if jax.tree.leaves(zero.initial_network):  # a known initial value has none
        active = eqx.tree_at(lambda it: it.initial_network, zero, one(zero.initial_network))
    for part in model.field.learned:
        weights = np.zeros(_formula(model, part).weights.shape, np.float32)
        for slot in slots:
            if slot.part == part:
                weights[slot.term, slot.output] = 1
        active = eqx.tree_at(lambda it, part=part: _formula(it, part).weights, active, jnp.asarray(weights))
    return active


def activate_networks(model: EquationRegressor) -> EquationRegressor:
    """1 for the networks, 0 for the weights of the formulas."""
    one = jax.tree.map(lambda leaf: jnp.ones_like(leaf) if eqx.is_inexact_array(leaf) else leaf, model)
    for part in model.field.learned:
        if model.field.learned[part].formula is not None:
            where = lambda it, part=part: _formula(it, part).weights
            one = eqx.tree_at(where, one, jnp.zeros_like(where(one)))
    return one


def _positions(model: EquationRegressor, slots: Sequence[_Slot]) -> np.ndarray:
    """Where the weights are in the vector of all parameters."""
    numbered = unravel(np.arange(len(ravel(model)), dtype=np.float32), model)
    return np.array([int(_formula(numbered, slot.part).weights[slot.term, slot.output]) for slot in slots])


def _project(model: EquationRegressor, train: SolutionSamples, slots: Sequence[_Slot]) -> EquationRegressor:
    """Replace the networks of a and c by formulas of some terms that are close to them at the samples."""
    scaling = model.scaling
    x, t, u = (jnp.asarray(part) for part in train)
    scaled = scaling.scale_position(x), t[:, None] / scaling.time, scaling.scale_value(u)
    for part, coefficient in model.field.learned.items():
        formula = _formula(model, part)
        terms = np.asarray(formula.evaluate(*scaled), float)
        target = np.asarray(coefficient(*scaled), float)
        weights = np.zeros(formula.weights.shape)
        for output in range(weights.shape[1]):
            kept = [slot.term for slot in slots if (slot.part, slot.output) == (part, output)]
            square = terms[:, kept].T @ terms[:, kept]
            ridge = 1e-3 * np.trace(square) / max(len(kept), 1)
            weights[kept, output] = np.linalg.solve(
                square + ridge * np.eye(len(kept)), terms[:, kept].T @ target[:, output]
            )
        where = lambda it, part=part: _formula(it, part).weights
        model = eqx.tree_at(where, model, jnp.asarray(weights, jnp.float32))
    return model


def _eliminate(hessian: Float[np.ndarray, "p p"], kept: np.ndarray) -> Float[np.ndarray, "k k"]:
    """The Hessian of some parameters, with all others at their best (the Schur complement)."""
    others = np.setdiff1d(np.arange(len(hessian)), kept)
    cross = hessian[np.ix_(others, kept)]
    return hessian[np.ix_(kept, kept)] - cross.T @ np.linalg.solve(hessian[np.ix_(others, others)], cross)


def _best_subsets(reduced: np.ndarray, estimate: np.ndarray, size: int) -> list[tuple[int, ...]]:
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


def _restrict(
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


def _describe(model: EquationRegressor, normal: Normal, slots: Sequence[_Slot]) -> tuple[Term, ...]:
    scaling = model.scaling
    positions, values = _names("x", scaling.dim), _names("u", scaling.values)
    units = {"velocity": scaling.position_scale, "source": scaling.value_scale}
    covariance = normal.covariance
    inside = np.searchsorted(normal.where, _positions(model, slots)) if slots else []
    terms = []
    for slot, i in zip(slots, inside, strict=True):
        formula = _formula(model, slot.part)
        factor = units[slot.part][slot.output] / scaling.time / formula.scales[slot.term]
        name = formula.terms[slot.term].replace("**", "^").replace("*", " ")
        if formula.of_flux:
            name = f"u_{positions[slot.output]}" if name == "u" else f"({name})_{positions[slot.output]}"
        elif slot.part == "velocity":
            name = f"u_{positions[slot.output]}" if name == "1" else f"{name} u_{positions[slot.output]}"
        elif len(values) > 1:
            name = f"{values[slot.output]}: {name}"
        weight = float(formula.weights[slot.term, slot.output])
        terms.append(Term(name, slot.part, factor * weight, factor * math.sqrt(covariance[i, i])))
    return tuple(terms)
