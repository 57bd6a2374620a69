"""Terms of a learned equation with their standard errors, and the equation as text."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from charax.models import EquationRegressor
from charax.models._known import KnownSource
from charax.tasks.pde._formula_slots import Slot, find_positions, formula_of
from charax.tasks.pde._least_squares import Normal


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


def describe_terms(model: EquationRegressor, normal: Normal, slots: Sequence[Slot]) -> tuple[Term, ...]:
    scaling = model.scaling
    positions, values = _names("x", scaling.dim), _names("u", scaling.values)
    units = {"velocity": scaling.position_scale, "source": scaling.value_scale}
    covariance = normal.covariance
    inside = np.searchsorted(normal.where, find_positions(model, slots)) if slots else []
    terms = []
    for slot, i in zip(slots, inside, strict=True):
        formula = formula_of(model, slot.part)
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
