"""The weights of the formulas of an equation: which there are, which are fitted, where they are among all weights."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from charax.data import SolutionSamples
from charax.models import EquationRegressor
from charax.models._equation_field import Formula
from charax.tasks.pde._members import ravel, unravel


class Slot(NamedTuple):
    """A weight of a formula."""

    part: str
    term: int
    output: int


def formula_of(model: EquationRegressor, part: str) -> Formula:
    formula = model.field.learned[part].formula
    assert formula is not None
    return formula


def list_slots(model: EquationRegressor) -> Iterator[Slot]:
    for part in model.field.learned:
        terms, outputs = formula_of(model, part).weights.shape
        yield from (Slot(part, term, output) for output in range(outputs) for term in range(terms))


def activate_terms(model: EquationRegressor, slots: Sequence[Slot]) -> EquationRegressor:
    """1 for the initial value and for some weights of the formulas, 0 for all other parameters."""
    zero = jax.tree.map(lambda leaf: jnp.zeros_like(leaf) if eqx.is_inexact_array(leaf) else leaf, model)
    one = lambda tree: jax.tree.map(lambda leaf: jnp.ones_like(leaf) if eqx.is_inexact_array(leaf) else leaf, tree)
    active = zero
    if jax.tree.leaves(zero.initial_network):  # a known initial value has none
        active = eqx.tree_at(lambda it: it.initial_network, zero, one(zero.initial_network))
    for part in model.field.learned:
        weights = np.zeros(formula_of(model, part).weights.shape, np.float32)
        for slot in slots:
            if slot.part == part:
                weights[slot.term, slot.output] = 1
        active = eqx.tree_at(lambda it, part=part: formula_of(it, part).weights, active, jnp.asarray(weights))
    return active


def activate_networks(model: EquationRegressor) -> EquationRegressor:
    """1 for the networks, 0 for the weights of the formulas."""
    one = jax.tree.map(lambda leaf: jnp.ones_like(leaf) if eqx.is_inexact_array(leaf) else leaf, model)
    for part in model.field.learned:
        if model.field.learned[part].formula is not None:
            where = lambda it, part=part: formula_of(it, part).weights
            one = eqx.tree_at(where, one, jnp.zeros_like(where(one)))
    return one


def find_positions(model: EquationRegressor, slots: Sequence[Slot]) -> np.ndarray:
    """Where the weights are in the vector of all parameters."""
    numbered = unravel(np.arange(len(ravel(model)), dtype=np.float32), model)
    return np.array([int(formula_of(numbered, slot.part).weights[slot.term, slot.output]) for slot in slots])


def project_networks(model: EquationRegressor, train: SolutionSamples, slots: Sequence[Slot]) -> EquationRegressor:
    """Replace the networks of a and c by formulas of some terms that are close to them at the samples."""
    scaling = model.scaling
    x, t, u = (jnp.asarray(part) for part in train)
    scaled = scaling.scale_position(x), t[:, None] / scaling.time, scaling.scale_value(u)
    for part, coefficient in model.field.learned.items():
        formula = formula_of(model, part)
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
        where = lambda it, part=part: formula_of(it, part).weights
        model = eqx.tree_at(where, model, jnp.asarray(weights, jnp.float32))
    return model
