"""As many Runge–Kutta steps as a tolerance asks for, and their exact gradient.

diffrax makes the same steps. Here the first slope of a rejected step is kept, and a gradient recomputes every accepted
step once.
"""

from typing import Any

import diffrax as dfx
import equinox as eqx
import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Float, Int

from charax.solve._controller import RecordedController, StepRecord
from charax.solve._explicit.checkpoints import Tape
from charax.solve._explicit.tableau import Rate, Rule, advance
from charax.solve._problem import State


class Control(eqx.Module):
    """What decides about the steps."""

    controller: RecordedController
    error_order: Any
    max_steps: int = eqx.field(static=True)

    def first_step(self, rate: Rate, y: State, slope: State) -> Float[Array, ""]:
        """As Hairer, Nørsett and Wanner estimate it (Solving ODEs I, II.4), with one evaluation."""
        norm, dtype = self.controller.norm, y.u.dtype
        scale = jax.tree.map(lambda y: self.controller.atol + self.controller.rtol * jnp.abs(y), y)
        size = lambda tree: norm(jax.tree.map(jnp.divide, tree, scale))
        state, speed = size(y), size(slope)
        little = 0.01 * jnp.where((state > 1e-5) & (speed > 1e-5), state / speed, 1)
        little = jnp.clip(little, 1e-6, 0.01).astype(dtype)
        ahead = rate(little, advance(y, little, (1.0,), [slope]))
        bend = size(jax.tree.map(jnp.subtract, ahead, slope)) / little
        fastest = jnp.maximum(jnp.maximum(speed, bend), 1e-6)
        step = jnp.minimum(100 * little, (0.01 / fastest) ** (1 / self.error_order))
        return jnp.where(jnp.isfinite(step), jnp.clip(step, 1e-6, 1), little).astype(dtype)


class Progress(eqx.Module):
    """How far an adaptive walk has come."""

    t: Float[Array, ""]
    aim: Float[Array, ""]
    """Where the next step is to end."""
    y: State
    slope: State
    control: Any
    failed: Bool[Array, ""]
    attempts: Int[Array, ""]
    accepted: Int[Array, ""]

    @property
    def record(self) -> StepRecord:
        return self.control[-1]


def pursue(rule: Rule, rate: Rate, y: State, control: Control) -> Progress:
    """Steps as a tolerance asks for."""
    t = jnp.zeros((), y.u.dtype)
    # Whatever the rate closes over becomes part of it: the gradient must know.
    rate = eqx.filter_closure_convert(rate, t, y)
    progress = _pursue((rate, y), rule, control)
    return eqx.tree_at(lambda it: it.y, jax.tree.map(lax.stop_gradient, progress), progress.y)


def _run(rate: Rate, y: State, rule: Rule, control: Control, tape: Tape | None) -> tuple[Progress, Tape | None]:
    zero, one = jnp.zeros((), y.u.dtype), jnp.ones((), y.u.dtype)
    nothing = jnp.zeros((), int)
    controller = control.controller
    slope = rate(zero, y)
    first = control.first_step(rate, y, slope)
    aim, state = controller.init(None, zero, one, y, first, None, rate, control.error_order)
    start = Progress(zero, jnp.asarray(aim), y, slope, state, jnp.array(False), nothing, nothing)

    def goes_on(carry: tuple[Progress, Tape | None]) -> Array:
        now, _ = carry
        return (now.t < 1) & ~now.failed & (now.attempts < control.max_steps)

    def attempt(carry: tuple[Progress, Tape | None]) -> tuple[Progress, Tape | None]:
        now, tape = carry
        h = now.aim - now.t
        slope = now.slope if rule.first_is_last else rate(now.t, now.y)
        end, error, last = rule.attempt(rate, now.t, h, now.y, slope)
        keep, t, aim, _, state, result = controller.adapt_step_size(
            now.t, now.aim, now.y, end, None, error, control.error_order, now.control
        )
        t, aim = (jnp.where(time > 1 - _CLOSE[one.dtype.name], one, time) for time in (t, aim))
        tape = None if tape is None else tape.write(now.accepted, now.y, now.t, h)
        pick = lambda new, old: jax.tree.map(lambda new, old: jnp.where(keep, new, old), new, old)
        ahead = Progress(
            t=t,
            aim=aim,
            y=pick(end, now.y),
            slope=pick(last, now.slope),
            control=state,
            failed=result != dfx.RESULTS.successful,
            attempts=now.attempts + 1,
            accepted=now.accepted + keep,
        )
        return ahead, tape

    return lax.while_loop(goes_on, attempt, (start, tape))


_CLOSE = {"float64": 1e-10, "float32": 1e-6, "float16": 1e-3, "bfloat16": 1e-2}
"""A step that would end this close to the end ends there."""


@eqx.filter_custom_vjp
def _pursue(moving: tuple[Rate, State], rule: Rule, control: Control) -> Progress:
    return _run(*moving, rule, control, None)[0]


@_pursue.def_fwd
def _pursue_forward(perturbed, moving: tuple[Rate, State], rule: Rule, control: Control) -> tuple[Progress, Tape]:
    del perturbed
    progress, tape = _run(*moving, rule, control, Tape.blank(moving[1], control.max_steps))
    assert tape is not None
    return progress, tape.end(progress.accepted)


@_pursue.def_bwd
def _pursue_backward(tape: Tape, gradient: Progress, perturbed, moving: tuple[Rate, State], rule: Rule, control):
    del control
    rate, start = moving
    moved, still = eqx.partition(rate, perturbed[0])

    def step(moved: Rate, y: State, t: Array, h: Array) -> State:
        return rule.step(eqx.combine(moved, still), t, h, y)

    end = jax.tree.map(lambda y, known: jnp.zeros_like(y) if known is None else known, start, gradient.y)

    def pull(carry: tuple[State, Rate], y: State, t: Array, h: Array) -> tuple[State, Rate]:
        after, total = carry
        _, back = jax.vjp(lambda moved, y: step(moved, y, t, h), moved, y)
        more, before = back(after)
        return before, jax.tree.map(jnp.add, total, more)

    nothing = jax.tree.map(jnp.zeros_like, moved)
    before, total = tape.unwind(lambda y, t, h: step(moved, y, t, h), pull, (end, nothing))
    return total, before
