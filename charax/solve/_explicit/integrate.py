"""Walks by explicit Runge–Kutta steps: equal ones, or as a tolerance asks for."""

import diffrax as dfx
import jax.numpy as jnp

from charax.solve._controller import RecordedController
from charax.solve._explicit.adaptive import Control, pursue
from charax.solve._explicit.backsolve import march_and_return
from charax.solve._explicit.tableau import Rule, march
from charax.solve._problem import Ended, Walk
from charax.solve._solution import Outcome, Stats

_FEW = 32
"""Equal steps whose states are all kept; diffrax keeps the logarithm of more of them."""


def is_explicit(task: Walk) -> bool:
    """Whether `walk_explicitly` can do it."""
    if Rule.of(task.method) is None or task.at is not None:
        return False
    if task.steps is None:
        return task.adjoint == "checkpoint"
    return task.adjoint != "checkpoint" or task.steps <= _FEW


def walk_explicitly(task: Walk) -> Ended:
    """Where the walk ends and what happened on the way."""
    rule = Rule.of(task.method)
    assert rule is not None
    rate = lambda t, y: task.course(t, y, task.arguments)
    if task.steps is not None:
        if task.adjoint == "backsolve":
            end = march_and_return(rule, rate, task.start, task.steps)
        else:
            recompute = task.adjoint == "checkpoint" and task.steps > 2
            end = march(rule, rate, task.start, task.steps, recompute=recompute)
        outcome = jnp.where(jnp.isfinite(end.u).all(), Outcome.SUCCESS, Outcome.NOT_FINITE)
        length = jnp.asarray(1 / task.steps, task.rtol.dtype)
        made = jnp.asarray(task.steps)
        stats = Stats(
            nfe=rule.evaluations * made,
            accepted=made,
            rejected=jnp.zeros_like(made),
            reached=jnp.ones_like(length),
            last_step=length,
            smallest_step=length,
            rtol=task.rtol,
            stiffness=None,
            max_steps=task.max_steps,
        )
        return Ended(end, None, outcome, stats)
    controller = RecordedController(dfx.PIDController(task.rtol, task.atol, norm=task.norms[0]))
    order = task.method.error_order(dfx.ODETerm(task.course))
    progress = pursue(rule, rate, task.start, Control(controller, order, task.max_steps))
    codes = [
        (progress.failed, Outcome.STEP_VANISHED),
        (progress.t < 1, Outcome.OUT_OF_STEPS),
        (~jnp.isfinite(progress.y.u).all(), Outcome.NOT_FINITE),
    ]
    outcome = jnp.select([when for when, _ in codes], [int(code) for _, code in codes], int(Outcome.SUCCESS))
    # Two evaluations find the first step.
    stats = Stats(
        nfe=2 + rule.evaluations * progress.attempts,
        accepted=progress.accepted,
        rejected=progress.attempts - progress.accepted,
        reached=progress.t,
        last_step=progress.record.last_step,
        smallest_step=progress.record.smallest_step,
        rtol=task.rtol,
        stiffness=None,
        max_steps=task.max_steps,
    )
    return Ended(progress.y, None, outcome, stats)
