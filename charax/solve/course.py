"""What diffrax integrates: the state of a walk, its derivative, and the norms that steer the step size."""

from typing import NamedTuple

import equinox as eqx
import optimistix as optx
from jaxtyping import Array

from charax.fields import AbstractField, Condition


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
