"""Walk along the characteristics of a problem, each to its own time."""

import dataclasses
import math
from collections.abc import Callable
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from charax.fields import AbstractField, Condition, Read, Scalar
from charax.pde._problem import AbstractProblem
from charax.solve import Solver
from charax.solve._checks import is_concrete


def default_solver(dtype: jnp.dtype) -> Solver:
    """Accurate to about the square root of what the precision resolves, and better in float64."""
    tolerance = 1e-10 if dtype == jnp.float64 else 1e-6
    return Solver("dopri8", rtol=tolerance, atol=tolerance, max_steps=256)


def prepare(solver: Solver | None, dtype: jnp.dtype) -> Solver:
    """Every characteristic takes its own steps, so that one that runs off to infinity does not stop the others."""
    solver = default_solver(dtype) if solver is None else solver
    # Numpy, because a comparison of a jax array is not a bool inside of `jit`, where the solver checks its tolerances.
    plain = lambda value: np.asarray(value) if is_concrete(value) else value
    return dataclasses.replace(solver, per_sample=True, rtol=plain(solver.rtol), atol=plain(solver.atol))


def _rates(problem: AbstractProblem, x: Array, t: Array, u: Array) -> tuple[Array, Array]:
    a, c = problem.velocity(x, t, u), problem.source(x, t, u)
    if a.shape != x.shape:
        raise ValueError(f"velocity(x, t, u) must return [batch, d] = {x.shape}, but returned {a.shape}")
    if c.shape != u.shape:
        raise ValueError(f"source(x, t, u) must return the shape of u, {u.shape}, but returned {c.shape}")
    return a, c


def _per_sample(t: Float[Array, "batch"], like: Array) -> Array:
    return t.reshape(-1, *(1,) * (like.ndim - 1))


Rates = Callable[[AbstractProblem, Array, Array, Array], tuple[Array, Array]]
"""dx/dt and the rate of the state, from a problem, places, times and states."""


class Flow(AbstractField):
    """dx/ds = T·a and du/ds = T·c for s in [0, 1]: one solve takes every sample to its own time T, its context.

    With `linearised` rates the state is a packed `Sensitivity`.
    """

    problem: AbstractProblem
    rates: Rates = eqx.field(static=True, default=_rates)

    @property
    def characteristic_dim(self) -> int:
        return self.problem.dim

    @property
    def reads(self) -> frozenset[Read]:
        return frozenset({"s", "x", "u", "context"})

    def __call__(
        self, s: Scalar, x: Float[Array, "batch k"] | None, u: Float[Array, "batch *state"], z: Condition
    ) -> tuple[Float[Array, "batch k"], Float[Array, "batch *state"]]:
        assert x is not None
        assert z.context is not None
        dx, du = self.rates(self.problem, x, s * z.context, u)
        return _per_sample(z.context, dx) * dx, _per_sample(z.context, du) * du


class Sensitivity(eqx.Module):
    """A value and its derivatives with respect to the foot point, as one state."""

    u: Float[Array, "batch *n"]
    dx: Float[Array, "batch d d"]
    """∂xᵢ/∂ξⱼ: singular where neighbouring characteristics cross."""
    du: Float[Array, "batch *n d"]

    def pack(self) -> Float[Array, "batch state"]:
        return jnp.concatenate([leaf.reshape(leaf.shape[0], -1) for leaf in (self.u, self.dx, self.du)], axis=1)

    @staticmethod
    def unpack(state: Float[Array, "batch state"], value_shape: tuple[int, ...], d: int) -> "Sensitivity":
        size = math.prod(value_shape)
        u, dx, du = jnp.split(state, (size, size + d * d), axis=1)
        batch = state.shape[0]
        return Sensitivity(u.reshape(batch, *value_shape), dx.reshape(batch, d, d), du.reshape(batch, *value_shape, d))


def linearised(problem: AbstractProblem, x: Array, t: Array, state: Array) -> tuple[Array, Array]:
    """The rates of the flow together with those of its derivatives; the state is a packed `Sensitivity`."""
    at = Sensitivity.unpack(state, value_shape(problem, x.dtype), problem.dim)
    rates, linear = jax.linearize(lambda x, u: _rates(problem, x, t, u), x, at.u)
    ddx, ddu = jax.vmap(linear, in_axes=-1, out_axes=-1)(at.dx, at.du)
    return rates[0], Sensitivity(rates[1], ddx, ddu).pack()


def start_sensitivity(problem: AbstractProblem, foot: Float[Array, "batch d"]) -> Float[Array, "batch state"]:
    """At t = 0, x is the foot point and u its initial value."""
    directions = jnp.eye(problem.dim, dtype=foot.dtype)
    derivative = lambda e: jax.jvp(problem.initial, (foot,), (jnp.broadcast_to(e, foot.shape),))[1]
    return Sensitivity(
        u=problem.initial(foot),
        dx=jnp.broadcast_to(directions, (foot.shape[0], *directions.shape)),
        du=jax.vmap(derivative, out_axes=-1)(directions),
    ).pack()


def value_shape(problem: AbstractProblem, dtype: jnp.dtype) -> tuple[int, ...]:
    """The shape of u at one point; refuses an initial value that does not fit."""
    u = jax.eval_shape(problem.initial, jax.ShapeDtypeStruct((3, problem.dim), dtype))
    if u.ndim == 0 or u.shape[0] != 3:
        raise ValueError(f"initial(x) must return one row per row of x, but for 3 rows it returned shape {u.shape}")
    return u.shape[1:]


class Arrival(NamedTuple):
    """Where a characteristic is at its time."""

    x: Float[Array, "d"]
    u: Float[Array, "*n"]
    outcome: Int[Array, ""] | None
    """An `Outcome` of the solve; None in a derivative."""


def _walk(foot: Array, t: Array, problem: AbstractProblem, solver: Solver) -> Arrival:
    joint = dataclasses.replace(solver, per_sample=False)  # this is one sample; the caller maps over them
    end = joint.solve(Flow(problem), problem.initial(foot[None]), x0=foot[None], context=t[None])
    assert end.x is not None
    return Arrival(end.x[0], end.u[0], end.outcome)


@eqx.filter_custom_jvp
def arrive(foot: Array, t: Array, problem: AbstractProblem, solver: Solver) -> Arrival:
    """Follow the characteristic from one foot point to time t.

    A root finder wants the derivative with respect to the foot point at every iteration: that comes from the
    linearised flow, in the same solve. All other derivatives go through the steps of the solver.
    """
    return _walk(foot, t, problem, solver)


@arrive.def_jvp
def _arrive_jvp(primals, tangents):
    foot, t, problem, solver = primals
    foot_tangent, *others = tangents
    if jax.tree.leaves(others):
        # Only this adjoint has both modes, which an implicit gradient needs: forwards, then transposed.
        direct = dataclasses.replace(solver, adjoint="direct")
        walk = lambda foot, t, problem: _walk(foot, t, problem, direct)
        return eqx.filter_jvp(walk, (foot, t, problem), (foot_tangent, *others[:2]))
    end, x, outcome = follow(foot, t, problem, solver)
    out = Arrival(x, end.u[0], outcome)
    return out, Arrival(end.dx[0] @ foot_tangent, end.du[0] @ foot_tangent, None)


def follow(foot: Array, t: Array, problem: AbstractProblem, solver: Solver) -> tuple[Sensitivity, Array, Array]:
    """The value and sensitivities, the place and the outcome at the end of one characteristic."""
    joint = dataclasses.replace(solver, per_sample=False)
    start = start_sensitivity(problem, foot[None])
    end = joint.solve(Flow(problem, linearised), start, x0=foot[None], context=t[None])
    assert end.x is not None
    return Sensitivity.unpack(end.u, value_shape(problem, foot.dtype), problem.dim), end.x[0], end.outcome
