"""What is integrated, the norms that steer the step size, and what a walk ends with."""

from collections.abc import Callable
from typing import Any, NamedTuple

import diffrax as dfx
import equinox as eqx
import optimistix as optx
from jaxtyping import Array, Float, Int

from charax.fields import AbstractField, Condition
from charax.solve._solution import Stats


class State(NamedTuple):
    """Where a walk is: the value, and the place if it is followed."""

    u: Array
    x: Array | None


class Course(eqx.Module):
    """The field over a fraction of the way in [0, 1], so that s0 and s1 are differentiable in every adjoint."""

    field: AbstractField

    def __call__(self, fraction, state: State, args: tuple[Array, Array, Condition]) -> State:
        s0, s1, z = args
        length = s1 - s0
        seen = state.x if "x" in self.field.reads else None
        dx, du = self.field(s0 + fraction * length, seen, state.u, z)
        if du.shape != state.u.shape:
            raise ValueError(
                f"du/ds must have the shape of u, {state.u.shape}, but the field returned {du.shape}: "
                "check the last layer of its networks"
            )
        return State(length * du, None if state.x is None or dx is None else length * dx)


def u_norm(state: State) -> Array:
    return optx.rms_norm(state.u)


def u_adjoint_norm(augmented: tuple) -> Array:
    state, adjoint, *_ = augmented  # the parameters' part must not steer the step size
    return optx.rms_norm((state.u, adjoint.u))


Norm = Callable[[Any], Any]


class Walk(NamedTuple):
    """What is to be integrated from 0 to 1, and how."""

    method: dfx.AbstractSolver
    course: Course
    start: State
    arguments: tuple[Array, Array, Condition]
    at: Float[Array, "points"] | None
    rtol: Array
    atol: Array
    norms: tuple[Norm, Norm]
    """Of an error, and of an error of the continuous adjoint."""
    steps: int | None
    max_steps: int
    adjoint: str


class Ended(NamedTuple):
    """Where a walk ended, which is the last good state if it failed, and what happened on the way."""

    state: State
    path: State | None
    outcome: Int[Array, ""]
    stats: Stats
