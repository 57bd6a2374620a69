"""Explicit Runge–Kutta steps with their stages written out, so that zeros cost nothing and XLA can fuse them."""

from collections.abc import Callable
from typing import NamedTuple, TypeVar

import diffrax as dfx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from charax.solve._problem import SolverState

VectorField = Callable[[Float[Array, ""], SolverState], SolverState]
"""dy/dt as a function of (t, y), for t in [0, 1]."""

Y = TypeVar("Y")
"""A `SolverState`, or one augmented by its adjoint."""


class Tableau(NamedTuple):
    """A Butcher tableau in Python's numbers."""

    a: tuple[tuple[float, ...], ...]
    c: tuple[float, ...]
    b: tuple[float, ...]
    b_error: tuple[float, ...]
    fsal: bool
    """First same as last: the last stage is the first one of the next step, and has no weight in this one."""

    @classmethod
    def of(cls, method: dfx.AbstractSolver) -> "Tableau | None":
        """The tableau of an explicit Runge–Kutta method; `None` for any other method."""
        if isinstance(method, dfx.Euler):
            return cls((), (), (1.0,), (0.0,), False)
        if not (isinstance(method, dfx.AbstractERK) and isinstance(method.tableau, dfx.ButcherTableau)):
            return None
        table = method.tableau
        numbers = lambda row: tuple(map(float, row))
        rows = tuple(map(numbers, table.a_lower))
        return cls(rows, numbers(table.c), numbers(table.b_sol), numbers(table.b_error), table.fsal)

    @property
    def evaluations(self) -> int:
        """Evaluations of the vector field per step; a stage shared with the next step counts once."""
        return len(self.b) - self.fsal

    def stages(self, vector_field: Callable[[Array, Y], Y], t: Array, h: Array, y: Y, first: Y) -> list[Y]:
        """All stages of a step except the shared last one."""
        stages = [first]
        for node, row in zip(self.c[: self.evaluations - 1], self.a, strict=False):
            stages.append(vector_field(t + node * h, add_stages(y, h, row, stages)))
        return stages

    def step(self, vector_field: Callable[[Array, Y], Y], t: Array, h: Array, y: Y) -> Y:
        """y(t + h)."""
        return add_stages(y, h, self.b, self.stages(vector_field, t, h, y, vector_field(t, y)))

    def step_with_error(
        self, vector_field: VectorField, t: Array, h: Array, y: SolverState, first: SolverState
    ) -> tuple[SolverState, SolverState, SolverState]:
        """y(t + h), its error estimate, and the last stage."""
        stages = self.stages(vector_field, t, h, y, first)
        end = add_stages(y, h, self.b, stages)
        if self.fsal:
            stages.append(vector_field(t + h, end))
        error = add_stages(jax.tree.map(jnp.zeros_like, y), h, self.b_error, stages)
        return end, error, stages[-1]


def add_stages(y: Y, h: Array, weights: tuple[float, ...], stages: list[Y]) -> Y:
    """y + h·Σ weight·stage, without the terms whose weight is 0."""
    used = [(weight, stage) for weight, stage in zip(weights, stages, strict=False) if weight]
    numbers = [weight for weight, _ in used]
    add = lambda y, *stages: y + h * sum(number * stage for number, stage in zip(numbers, stages, strict=True))
    return jax.tree.map(add, y, *(stage for _, stage in used))
