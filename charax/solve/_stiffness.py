"""Why a solve took so many steps."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array

from charax.fields import AbstractField, Condition
from charax.solve._problem import Course, State
from charax.solve._solution import Stats


@eqx.filter_jit
def stiffness(field: AbstractField, stats: Stats, stopped: State, s0: Array, s1: Array, z: Condition) -> Array:
    """Step size times the field's fastest rate where the solve stopped, by power iteration on ∂f/∂u."""
    fraction = jnp.max(stats.reached)
    course = lambda u: Course(field)(fraction, State(u, stopped.x), (s0, s1, z)).u
    size = lambda v: jnp.sqrt(jnp.sum(v**2, axis=tuple(range(1, v.ndim)), keepdims=True)) + jnp.finfo(v.dtype).tiny

    def sharpen(v: Array, _) -> tuple[Array, Array]:
        image = jax.jvp(course, (stopped.u,), (v / size(v),))[1]
        return image, size(image).reshape(-1)

    v = jax.random.normal(jax.random.key(0), stopped.u.shape, stopped.u.dtype)
    _, rates = jax.lax.scan(sharpen, v, length=20)
    step = stats.reached / jnp.maximum(stats.accepted, 1)
    per_sample = step * rates[-10:].mean(axis=0)
    return per_sample if stats.reached.ndim else per_sample.max()
