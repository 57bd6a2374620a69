"""Walks through diffrax: implicit methods, states on the way, the adaptive continuous adjoint, very many steps."""

import diffrax as dfx
import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array

from charax.solve._controller import RecordedController, StepRecord
from charax.solve._methods import cost
from charax.solve._problem import Ended, Walk
from charax.solve._solution import Outcome, Stats

# Tried first, as a fraction of the way. Two steps grow it to the whole way, or one rejection shrinks it fivefold;
# an estimate from the field would cost two evaluations.
_FIRST_STEP = 0.01


def walk_with_diffrax(task: Walk) -> Ended:
    """Where the walk ends and what happened on the way."""
    if task.steps is None:
        controller, backward_controller = (
            RecordedController(dfx.PIDController(task.rtol, task.atol, norm=norm)) for norm in task.norms
        )
        dt0 = _FIRST_STEP
    else:
        controller = backward_controller = dfx.ConstantStepSize()
        dt0 = 1 / task.steps
    match task.adjoint:
        case "checkpoint":
            adjoint = dfx.RecursiveCheckpointAdjoint(checkpoints=_checkpoints(task.max_steps))
        case "backsolve":
            # A backward solve that fails has no solution to carry its outcome: it must not pass for a gradient.
            adjoint = dfx.BacksolveAdjoint(stepsize_controller=backward_controller, throw=True)
        case _:
            adjoint = dfx.DirectAdjoint()

    # Python's numbers are checked when they are traced, and not with a callback from the compiled program: JAX does
    # not keep programs with callbacks in its compilation cache. A dtype that is not the default must be said, or the
    # state would be promoted.
    dtype = task.start.u.dtype
    number = float if dtype == jnp.result_type(float) else lambda value: jnp.asarray(value, dtype)
    result = dfx.diffeqsolve(
        dfx.ODETerm(task.course),
        task.method,
        t0=number(0.0),
        t1=number(1.0),
        dt0=number(dt0),
        y0=task.start,
        args=task.arguments,
        saveat=dfx.SaveAt(ts=task.at, t1=True, controller_state=True),
        stepsize_controller=controller,
        adjoint=adjoint,
        max_steps=task.max_steps,
        throw=False,
    )
    state = jax.tree.map(lambda path: path[-1], result.ys)
    path = None if task.at is None else jax.tree.map(lambda path: path[:-1], result.ys)
    return Ended(state, path, _judge(result, state.u), _count(result, task))


def _checkpoints(max_steps: int) -> int:
    """Enough that few steps are recomputed, and no more than twice as many for a million steps as for ten."""
    return min(max_steps, max(16, 2 * (max_steps - 1).bit_length()))


def _judge(result: dfx.Solution, u: Array) -> Array:
    codes = [
        (result.result == dfx.RESULTS.max_steps_reached, Outcome.OUT_OF_STEPS),
        (result.result == dfx.RESULTS.dt_min_reached, Outcome.STEP_VANISHED),
        (result.result != dfx.RESULTS.successful, Outcome.METHOD_FAILED),
        (~jnp.isfinite(u).all(), Outcome.NOT_FINITE),
    ]
    return jnp.select([when for when, _ in codes], [int(code) for _, code in codes], int(Outcome.SUCCESS))


def _count(result: dfx.Solution, task: Walk) -> Stats:
    assert result.ts is not None
    attempts = jnp.asarray(result.stats["num_steps"])
    if isinstance(result.controller_state, tuple) and isinstance(result.controller_state[-1], StepRecord):
        record: StepRecord = result.controller_state[-1]
        starts, last_step, smallest_step = record.attempts_to_start, record.last_step, record.smallest_step
    else:
        starts = jnp.ones_like(attempts)
        last_step = smallest_step = jnp.asarray(1 / task.max_steps, task.rtol.dtype)
    price = cost(task.method)
    if price is None:
        nfe = None
    else:
        stages, first_is_last = price
        nfe = (stages - 1) * attempts + starts if first_is_last else stages * attempts
    return Stats(
        nfe=nfe,
        accepted=jnp.asarray(result.stats["num_accepted_steps"]),
        rejected=jnp.asarray(result.stats["num_rejected_steps"]),
        reached=lax.stop_gradient(result.ts[-1]),
        last_step=lax.stop_gradient(last_step),
        smallest_step=lax.stop_gradient(smallest_step),
        rtol=task.rtol,
        stiffness=None,
        max_steps=task.max_steps,
    )
