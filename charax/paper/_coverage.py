"""How often the intervals of a learned equation contain the truth, for equations whose truth is known."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from jaxtyping import Float

from charax.models import EquationRegressor, parse_term
from charax.models._terms import Evaluate
from charax.paper._closed_forms import Flow
from charax.tasks.pde import PDETask
from charax.tasks.pde._plots import choose_variable, draw_ensemble

if TYPE_CHECKING:
    from charax import train

LEVEL = 0.95
WIDTH = 2.0
"""Of the bands of a, c and the shock time, in standard deviations of the ensemble."""
_FEET = 4001


class TrueTerm(NamedTuple):
    """A term of a known equation."""

    part: str
    """velocity or source."""
    coefficient: float
    evaluate: Evaluate
    """From x and u to the term without its coefficient."""


def parse_terms(coefficients: Mapping[str, float]) -> list[TrueTerm]:
    """Make functions of the terms of an equation, such as `u u_x` on its left-hand side or `u` on its right."""
    terms = []
    for name, value in coefficients.items():
        text = name.removesuffix("u_x").strip() or "1"
        part = "velocity" if name.endswith("u_x") else "source"
        terms.append(TrueTerm(part, value, parse_term(text.replace(" ", "*"), ("x", "u"))))
    return terms


def first_crossing(flow: Flow, feet: tuple[float, float], horizon: float) -> float | None:
    """Find the first time at which neighboring characteristics cross, by bisection; None if not before the horizon."""
    starts = np.linspace(*feet, _FEET)
    is_crossed = lambda t: bool((np.diff(flow(starts, np.full(_FEET, t))[0]) <= 0).any())
    before, after = 0.0, horizon
    if not is_crossed(after):
        return None
    while after - before > 1e-6 * horizon:
        middle = (before + after) / 2
        before, after = (before, middle) if is_crossed(middle) else (middle, after)
    return after


def measure_coverage(
    run: "train.Run",
    coefficients: Mapping[str, float],
    shock_time: float | None,
    points: Float[np.ndarray, "points 2"],
    u: Float[np.ndarray, "points"],
) -> dict[str, Any]:
    """Measure which share of the truth lies in the intervals of a trained `EquationRegressor`.

    Args:
        run: The run.
        coefficients: The true equation.
        shock_time: The time at which its characteristics cross; None if they do not.
        points: Held-out points (x, t), inside the data's times.
        u: The solution there, without noise.

    Returns:
        Shares: `coverage` of test samples, which are noisy, in their 95% prediction intervals; `coverage_solution` of
        the solution in its 95% intervals; `coverage_velocity` and `coverage_source` of a and c in their bands, over the
        values of the data; `coverage_shock_time` is 1 or 0, and None if there is none.
    """
    task, model, summary = run.trained.task, run.trained.model, run.summary()
    assert isinstance(task, PDETask)
    assert isinstance(model, EquationRegressor)
    interval = task.interval(model, run.splits, points, level=LEVEL)
    inside = np.abs(interval.u[:, 0] - u) <= interval.confidence[:, 0]
    result: dict[str, Any] = {
        "coverage": summary["covered"],
        "coverage_solution": float(inside[np.isfinite(interval.u[:, 0])].mean()),
    }
    members = draw_ensemble(task, model, run.splits)
    for part in ("velocity", "source"):
        over = choose_variable(model, part)
        grid, learned, _ = task.tabulate_equation(model, over=over)
        spread = np.std([task.tabulate_equation(member, over=over)[1][part] for member in members], axis=0, ddof=1)
        values = {"x": grid, "u": grid}
        terms = [term for term in parse_terms(coefficients) if term.part == part]
        truth = sum((term.coefficient * term.evaluate(values) for term in terms), np.zeros_like(grid))
        result[f"coverage_{part}"] = float((np.abs(learned[part] - truth) <= WIDTH * spread).mean())
    found, deviation = summary.get("shock_time"), summary.get("shock_time_sd")
    if shock_time is None:
        return result | {"coverage_shock_time": None}
    covered = found is not None and deviation is not None and abs(found - shock_time) <= WIDTH * deviation
    return result | {"coverage_shock_time": float(covered)}
