"""Explicit Runge–Kutta steps with their stages written out, so that zeros cost nothing and XLA can fuse them."""

from collections.abc import Callable
from typing import NamedTuple, TypeVar

import diffrax as dfx
import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float

from charax.nn._convolution import is_product
from charax.solve._problem import State

Rate = Callable[[Float[Array, ""], State], State]
"""dy/dt over the fraction t of the way."""

Y = TypeVar("Y")
"""A state, or a state and what is solved beside it."""


class Rule(NamedTuple):
    """A Butcher tableau in Python's numbers."""

    lower: tuple[tuple[float, ...], ...]
    nodes: tuple[float, ...]
    weights: tuple[float, ...]
    errors: tuple[float, ...]
    first_is_last: bool
    """The last slope is the first one of the next step, and not part of this one."""

    @classmethod
    def of(cls, method: dfx.AbstractSolver) -> "Rule | None":
        """The tableau of a method, if it is one of these."""
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
        """How many slopes a step needs beside those it shares with the next one."""
        return len(self.weights) - self.first_is_last

    def slopes(self, rate: Callable[[Array, Y], Y], t: Array, h: Array, y: Y, first: Y) -> list[Y]:
        """All slopes of a step but the shared last one."""
        slopes = [first]
        for node, row in zip(self.nodes[: self.evaluations - 1], self.lower, strict=False):
            slopes.append(rate(t + node * h, advance(y, h, row, slopes)))
        return slopes

    def step(self, rate: Callable[[Array, Y], Y], t: Array, h: Array, y: Y) -> Y:
        """Where a step leads."""
        return advance(y, h, self.weights, self.slopes(rate, t, h, y, rate(t, y)))

    def attempt(self, rate: Rate, t: Array, h: Array, y: State, first: State) -> tuple[State, State, State]:
        """Where a step leads, its error, and its last slope."""
        slopes = self.slopes(rate, t, h, y, first)
        end = advance(y, h, self.weights, slopes)
        if self.first_is_last:
            slopes.append(rate(t + h, end))
        error = advance(jax.tree.map(jnp.zeros_like, y), h, self.errors, slopes)
        return end, error, slopes[-1]


def advance(y: Y, h: Array, weights: tuple[float, ...], slopes: list[Y]) -> Y:
    """y + h·Σ weight·slope, without the terms whose weight is 0."""
    used = [(weight, slope) for weight, slope in zip(weights, slopes, strict=False) if weight]
    numbers = [weight for weight, _ in used]
    move = lambda y, *slopes: y + h * sum(number * slope for number, slope in zip(numbers, slopes, strict=True))
    return jax.tree.map(move, y, *(slope for _, slope in used))


def march(rule: Rule, rate: Callable[[Float[Array, ""], Y], Y], y: Y, steps: int, *, recompute: bool) -> Y:
    """Equal steps; their gradient keeps the results of all products, or only the states between the steps.

    What lies between two products (sums, norms, activations) is always computed again: a loop copies whatever is kept
    into an array of all steps, which takes longer.
    """
    dtype = jax.tree.leaves(y)[0].dtype
    h = jnp.asarray(1 / steps, dtype)
    if steps == 1:
        return rule.step(rate, jnp.zeros((), dtype), h, y)
    step = lambda y, number: (rule.step(rate, number.astype(dtype) * h, h, y), None)
    policy = None if recompute else is_product
    return lax.scan(jax.checkpoint(step, prevent_cse=False, policy=policy), y, jnp.arange(steps))[0]
