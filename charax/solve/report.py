"""What there is to say about a solve that has ended."""

import diffrax as dfx
import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array

from charax.fields import AbstractField, Condition
from charax.solve.controller import StepRecord
from charax.solve.course import Course, State
from charax.solve.methods import cost
from charax.solve.solution import Outcome, Stats


def judge(result: dfx.Solution, u: Array) -> Array:
    codes = [
        (result.result == dfx.RESULTS.max_steps_reached, Outcome.OUT_OF_STEPS),
        (result.result == dfx.RESULTS.dt_min_reached, Outcome.STEP_VANISHED),
        (result.result != dfx.RESULTS.successful, Outcome.METHOD_FAILED),
        (~jnp.isfinite(u).all(), Outcome.NOT_FINITE),
    ]
    return jnp.select([when for when, _ in codes], [int(code) for _, code in codes], int(Outcome.SUCCESS))


def count(result: dfx.Solution, method: dfx.AbstractSolver, rtol: Array, max_steps: int) -> Stats:
    assert result.ts is not None
    attempts = jnp.asarray(result.stats["num_steps"])
    if isinstance(result.controller_state, tuple) and isinstance(result.controller_state[-1], StepRecord):
        record: StepRecord = result.controller_state[-1]
        starts, last_step, smallest_step = record.attempts_to_start, record.last_step, record.smallest_step
    else:
        starts = jnp.ones_like(attempts)
        last_step = smallest_step = jnp.asarray(1 / max_steps, rtol.dtype)
    price = cost(method)
    if price is None:
        nfe = None
    else:
        stages, first_is_last = price
        nfe = (stages - 1) * attempts + starts if first_is_last else stages * attempts
    return Stats(
        nfe=nfe,
        accepted=jnp.asarray(result.stats["num_accepted_steps"]),
        rejected=jnp.asarray(result.stats["num_rejected_steps"]),
        reached=jax.lax.stop_gradient(result.ts[-1]),
        last_step=jax.lax.stop_gradient(last_step),
        smallest_step=jax.lax.stop_gradient(smallest_step),
        rtol=rtol,
        stiffness=None,
        max_steps=max_steps,
    )


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
