"""The solvers by name, and the cost of their steps."""

import difflib
from collections.abc import Mapping
from types import MappingProxyType

import diffrax as dfx

METHODS: Mapping[str, type[dfx.AbstractSolver]] = MappingProxyType(
    {
        "euler": dfx.Euler,
        "midpoint": dfx.Midpoint,
        "heun": dfx.Heun,
        "bosh3": dfx.Bosh3,
        "tsit5": dfx.Tsit5,
        "dopri5": dfx.Dopri5,
        "dopri8": dfx.Dopri8,
    }
)
"""Diffrax solvers by name, which are those of `SolverName`."""


def find_method(method: str | dfx.AbstractSolver) -> dfx.AbstractSolver:
    """A diffrax solver by name; a solver object is returned as it is."""
    if isinstance(method, dfx.AbstractSolver):
        return method
    if method not in METHODS:
        near = difflib.get_close_matches(method, METHODS, n=1)
        guess = f"did you mean {near[0]!r}? " if near else ""
        raise ValueError(
            f"unknown method {method!r}: {guess}choose from {', '.join(METHODS)}, or give a diffrax solver"
        )
    return METHODS[method]()


def has_error_estimate(method: dfx.AbstractSolver) -> bool:
    """Whether the method can take adaptive steps."""
    return isinstance(method, dfx.AbstractAdaptiveSolver)


def evaluations_per_step(method: dfx.AbstractSolver) -> tuple[int, bool] | None:
    """The number of stages of one step, and whether the first is the last one of the step before (FSAL).

    `None` where the number is not known beforehand: an implicit method iterates.
    """
    if isinstance(method, dfx.Euler):
        return 1, False
    if isinstance(method, dfx.AbstractERK) and isinstance(method.tableau, dfx.ButcherTableau):
        return method.tableau.num_stages, method.tableau.fsal
    return None
