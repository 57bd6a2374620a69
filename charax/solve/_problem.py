"""The initial value problem over the unit interval, the norms that control the step size, and the result."""

from collections.abc import Callable
from typing import Any, NamedTuple

import diffrax as dfx
import equinox as eqx
import jax
import jax.numpy as jnp
import optimistix as optx
from jaxtyping import Array, Float, Int, PyTree

from charax.fields import AbstractField, Condition
from charax.fields._names import Count
from charax.solve._solution import Stats


class SolverState(NamedTuple):
    """What is integrated: the state u, and the position x if it is part of the problem."""

    u: Array
    x: Array | None


class UnitIntervalField(eqx.Module):
    """The vector field dy/dt for t in [0, 1], with s = s0 + t·(s1 − s0).

    s0 and s1 are then arguments of the vector field, and differentiable under every adjoint.
    """

    field: AbstractField
    precision: str | None = eqx.field(default=None, static=True)

    def __call__(self, t, y: SolverState, args: tuple[Array, Array, Condition]) -> SolverState:
        s0, s1, z = args
        length = s1 - s0
        x = y.x if "x" in self.field.reads else None
        dx, du = self._evaluate(s0 + t * length, x, y.u, z)
        if du.shape != y.u.shape:
            raise ValueError(
                f"du/ds must have the shape of u, {y.u.shape}, but the field returned {du.shape}: "
                "check the last layer of its networks"
            )
        return SolverState(length * du, None if y.x is None or dx is None else length * dx)

    def _evaluate(self, s: Array, x: Array | None, u: Array, z: Condition) -> tuple[Array | None, Array]:
        if self.precision is None:
            return self.field(s, x, u, z)
        field, arguments = _cast((self.field, (s, x, u, z)), jnp.dtype(self.precision))
        return _cast(field(*arguments), u.dtype)


def _cast(tree: Any, dtype: jnp.dtype) -> Any:
    """The same tree, with its floating-point arrays in another precision."""
    return jax.tree.map(lambda leaf: leaf.astype(dtype) if eqx.is_inexact_array(leaf) else leaf, tree)


def rms_norm(tree: PyTree) -> Array:
    """The root mean square of all numbers, also if there is a symbolic number of them, as in an exported program."""
    size = sum(leaf.size for leaf in jax.tree.leaves(tree))
    return optx.rms_norm(tree) if isinstance(size, int) else optx.two_norm(tree) / jnp.sqrt(jnp.asarray(size, float))


def u_norm(y: SolverState) -> Array:
    """The norm of an error that leaves x out."""
    return rms_norm(y.u)


def u_adjoint_norm(augmented: tuple) -> Array:
    """The norm of an error of the continuous adjoint that leaves x out."""
    y, adjoint, *_ = augmented  # the parameters' part must not control the step size
    return optx.rms_norm((y.u, adjoint.u))


Norm = Callable[[Any], Any]


class InitialValueProblem(NamedTuple):
    """y(0), dy/dt for t in [0, 1], and how to integrate it."""

    method: dfx.AbstractSolver
    vector_field: UnitIntervalField
    y0: SolverState
    args: tuple[Array, Array, Condition]
    at: Float[Array, "points"] | None
    rtol: Array
    atol: Array
    norms: tuple[Norm, Norm]
    """Of an error of the forward solve, and of an error of the continuous adjoint."""
    steps: Count | None
    max_steps: Count
    adjoint: str


class IntegrationResult(NamedTuple):
    """The final state (the last accepted one if the integration failed), and what happened."""

    y1: SolverState
    trajectory: SolverState | None
    outcome: Int[Array, ""]
    stats: Stats
