"""An estimate of stiffness, for the message about a solve that ran out of steps."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array

from charax.fields import AbstractField, Condition
from charax.solve._problem import SolverState, UnitIntervalField
from charax.solve._solution import Stats


@eqx.filter_jit
def stiffness(field: AbstractField, stats: Stats, y: SolverState, s0: Array, s1: Array, z: Condition) -> Array:
    """Mean step size times the spectral radius of ∂f/∂u where the solve stopped, by power iteration."""
    t = jnp.max(stats.reached)
    vector_field = lambda u: UnitIntervalField(field)(t, SolverState(u, y.x), (s0, s1, z)).u
    norm = lambda v: jnp.sqrt(jnp.sum(v**2, axis=tuple(range(1, v.ndim)), keepdims=True)) + jnp.finfo(v.dtype).tiny

    def iterate(v: Array, _) -> tuple[Array, Array]:
        image = jax.jvp(vector_field, (y.u,), (v / norm(v),))[1]
        return image, norm(image).reshape(-1)

    v = jax.random.normal(jax.random.key(0), y.u.shape, y.u.dtype)
    _, radii = jax.lax.scan(iterate, v, length=20)
    step = stats.reached / jnp.maximum(stats.accepted, 1)
    per_sample = step * radii[-10:].mean(axis=0)
    return per_sample if stats.reached.ndim else per_sample.max()
