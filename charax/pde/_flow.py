"""The characteristics of a problem as a field, each integrated to its own time."""

import dataclasses
import math
from collections.abc import Callable
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from charax.fields import AbstractField, Condition, Read, Time
from charax.pde._problem import AbstractProblem
from charax.solve import Solver
from charax.solve._checks import is_concrete


def default_solver(dtype: jnp.dtype) -> Solver:
    """Accurate to about the square root of the precision, and better in float64."""
    tolerance = 1e-10 if dtype == jnp.float64 else 1e-6
    return Solver("dopri8", rtol=tolerance, atol=tolerance, max_steps=256)


def prepare(solver: Solver | None, dtype: jnp.dtype) -> Solver:
    """Every characteristic has its own steps, so that one that diverges does not stop the others."""
    solver = default_solver(dtype) if solver is None else solver
    # Numpy, because a comparison of a jax array is not a bool inside of `jit`, where the solver checks its tolerances.
    plain = lambda value: np.asarray(value) if is_concrete(value) else value
    return dataclasses.replace(solver, per_sample=True, rtol=plain(solver.rtol), atol=plain(solver.atol))


def _derivatives(problem: AbstractProblem, x: Array, t: Array, u: Array) -> tuple[Array, Array]:
    a, c = problem.velocity(x, t, u), problem.source(x, t, u)
    if a.shape != x.shape:
        raise ValueError(f"velocity(x, t, u) must return [batch, d] = {x.shape}, but returned {a.shape}")
    if c.shape != u.shape:
        raise ValueError(f"source(x, t, u) must return the shape of u, {u.shape}, but returned {c.shape}")
    return a, c


def _per_sample(t: Float[Array, "batch"], like: Array) -> Array:
    return t.reshape(-1, *(1,) * (like.ndim - 1))


Derivatives = Callable[[AbstractProblem, Array, Array, Array], tuple[Array, Array]]
"""dx/dt and the time derivative of the state, as a function of (problem, x, t, state)."""


class Flow(AbstractField):
    """dx/ds = T·a and du/ds = T·c for s in [0, 1]: one solve integrates every sample to its own time T, its context.

    With `linearized` derivatives the state is a packed `Sensitivity`.
    """

    problem: AbstractProblem
    derivatives: Derivatives = eqx.field(static=True, default=_derivatives)

    @property
    def characteristic_dim(self) -> int:
        return self.problem.dim

    @property
    def reads(self) -> frozenset[Read]:
        return frozenset({"s", "x", "u", "context"})

    def __call__(
        self, s: Time, x: Float[Array, "batch k"] | None, u: Float[Array, "batch *state"], z: Condition
    ) -> tuple[Float[Array, "batch k"], Float[Array, "batch *state"]]:
        assert x is not None
        assert z.context is not None
        dx, du = self.derivatives(self.problem, x, s * z.context, u)
        return _per_sample(z.context, dx) * dx, _per_sample(z.context, du) * du


class Sensitivity(eqx.Module):
    """A value and the derivatives with respect to the foot point ξ, as one state."""

    u: Float[Array, "batch *n"]
    dx: Float[Array, "batch d d"]
    """∂xᵢ/∂ξⱼ: singular where neighboring characteristics cross."""
    du: Float[Array, "batch *n d"]
    """∂u/∂ξⱼ"""

    def pack(self) -> Float[Array, "batch state"]:
        return jnp.concatenate([leaf.reshape(leaf.shape[0], -1) for leaf in (self.u, self.dx, self.du)], axis=1)

    @staticmethod
    def unpack(state: Float[Array, "batch state"], value_shape: tuple[int, ...], d: int) -> "Sensitivity":
        size = math.prod(value_shape)
        u, dx, du = jnp.split(state, (size, size + d * d), axis=1)
        batch = state.shape[0]
        return Sensitivity(u.reshape(batch, *value_shape), dx.reshape(batch, d, d), du.reshape(batch, *value_shape, d))


def linearized(problem: AbstractProblem, x: Array, t: Array, state: Array) -> tuple[Array, Array]:
    """The derivatives of the flow together with those of its sensitivities; the state is a packed `Sensitivity`."""
    now = Sensitivity.unpack(state, value_shape(problem, x.dtype), problem.dim)
    (a, c), linear = jax.linearize(lambda x, u: _derivatives(problem, x, t, u), x, now.u)
    ddx, ddu = jax.vmap(linear, in_axes=-1, out_axes=-1)(now.dx, now.du)
    return a, Sensitivity(c, ddx, ddu).pack()


def initial_sensitivity(problem: AbstractProblem, foot: Float[Array, "batch d"]) -> Float[Array, "batch state"]:
    """At t = 0, x is the foot point and u its initial value."""
    directions = jnp.eye(problem.dim, dtype=foot.dtype)
    derivative = lambda e: jax.jvp(problem.initial, (foot,), (jnp.broadcast_to(e, foot.shape),))[1]
    return Sensitivity(
        u=problem.initial(foot),
        dx=jnp.broadcast_to(directions, (foot.shape[0], *directions.shape)),
        du=jax.vmap(derivative, out_axes=-1)(directions),
    ).pack()


def value_shape(problem: AbstractProblem, dtype: jnp.dtype) -> tuple[int, ...]:
    """The shape of u at one point; raises if the initial value does not have one row per point."""
    u = jax.eval_shape(problem.initial, jax.ShapeDtypeStruct((3, problem.dim), dtype))
    if u.ndim == 0 or u.shape[0] != 3:
        raise ValueError(f"initial(x) must return one row per row of x, but for 3 rows it returned shape {u.shape}")
    return u.shape[1:]


class Endpoint(NamedTuple):
    """Position and value of a characteristic at time t."""

    x: Float[Array, "d"]
    u: Float[Array, "*n"]
    outcome: Int[Array, ""] | None
    """An `Outcome` of the solve; None in a derivative."""


def _integrate(foot: Array, t: Array, problem: AbstractProblem, solver: Solver) -> Endpoint:
    joint = dataclasses.replace(solver, per_sample=False)  # this is one sample; the caller maps over them
    end = joint.solve(Flow(problem), problem.initial(foot[None]), x0=foot[None], context=t[None])
    assert end.x is not None
    return Endpoint(end.x[0], end.u[0], end.outcome)


@eqx.filter_custom_jvp
def integrate_characteristic(foot: Array, t: Array, problem: AbstractProblem, solver: Solver) -> Endpoint:
    """Integrate the characteristic from one foot point to time t.

    A root finder needs the derivative with respect to the foot point at every iteration: that comes from the
    linearized flow, in the same solve. All other derivatives go through the steps of the solver.
    """
    return _integrate(foot, t, problem, solver)


@integrate_characteristic.def_jvp
def _integrate_characteristic_jvp(primals, tangents):
    foot, t, problem, solver = primals
    foot_tangent, *others = tangents
    if jax.tree.leaves(others):
        # Only this adjoint has both modes, which an implicit gradient needs: forwards, then transposed.
        direct = dataclasses.replace(solver, adjoint="direct")
        integrate = lambda foot, t, problem: _integrate(foot, t, problem, direct)
        return eqx.filter_jvp(integrate, (foot, t, problem), (foot_tangent, *others[:2]))
    sensitivity, x, outcome = integrate_linearized(foot, t, problem, solver)
    end = Endpoint(x, sensitivity.u[0], outcome)
    return end, Endpoint(sensitivity.dx[0] @ foot_tangent, sensitivity.du[0] @ foot_tangent, None)


def integrate_linearized(
    foot: Array, t: Array, problem: AbstractProblem, solver: Solver
) -> tuple[Sensitivity, Array, Array]:
    """The value with its sensitivities, the position and the outcome at the end of one characteristic."""
    joint = dataclasses.replace(solver, per_sample=False)
    start = initial_sensitivity(problem, foot[None])
    end = joint.solve(Flow(problem, linearized), start, x0=foot[None], context=t[None])
    assert end.x is not None
    return Sensitivity.unpack(end.u, value_shape(problem, foot.dtype), problem.dim), end.x[0], end.outcome
