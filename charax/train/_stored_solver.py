"""A solver as plain JSON."""

from typing import Any

from charax.solve import Solver


def solver_to_json(solver: Solver) -> dict[str, Any]:
    """Names and numbers; only a solver that is known by name can be stored."""
    if not isinstance(solver.method, str):
        raise ValueError(f"a run can be stored only with a solver known by name, not {type(solver.method).__name__}")
    return {
        "method": solver.method,
        "rtol": float(solver.rtol),
        "atol": float(solver.atol),
        "steps": solver.steps,
        "adjoint": solver.adjoint,
        "per_sample": solver.per_sample,
        "max_steps": solver.max_steps,
    }


def solver_from_json(stored: dict[str, Any]) -> Solver:
    """The inverse of `solver_to_json`."""
    return Solver(**stored)
