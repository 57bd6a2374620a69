"""Step size control that records its steps."""

from collections.abc import Callable
from typing import Any, NamedTuple

import diffrax as dfx
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Float, Int, PyTree


class StepRecord(NamedTuple):
    """The steps of a solve so far."""

    started: Bool[Array, ""]
    attempts_to_start: Int[Array, ""]
    last_step: Float[Array, ""]
    smallest_step: Float[Array, ""]


class RecordedController(dfx.AbstractAdaptiveStepSizeController):
    """Wraps a controller, records its steps for exact counts, and stops when the step size falls below the precision.

    An FSAL method of diffrax evaluates the first stage again in every attempt until one step is accepted; only the
    controller sees how many attempts that took.
    """

    controller: dfx.AbstractAdaptiveStepSizeController
    rtol: Any
    atol: Any
    norm: Callable[[PyTree], Any]

    def __init__(self, controller: dfx.AbstractAdaptiveStepSizeController):
        self.controller = controller
        # An implicit method takes its own tolerances from these.
        self.rtol, self.atol, self.norm = controller.rtol, controller.atol, controller.norm

    def wrap(self, direction):
        return RecordedController(self.controller.wrap(direction))  # pyright: ignore[reportArgumentType]

    def init(
        self,
        terms: PyTree,
        t0,
        t1,
        y0: PyTree,
        dt0,
        args: PyTree,
        func: Callable[..., Any],
        error_order,
    ):
        first, inner = self.controller.init(terms, t0, t1, y0, dt0, args, func, error_order)
        step = jnp.asarray(first - t0)
        record = StepRecord(jnp.array(False), jnp.array(0), step, jnp.full_like(step, jnp.inf))
        return first, (inner, record)

    def adapt_step_size(
        self, t0, t1, y0: PyTree, y1_candidate: PyTree, args: PyTree, y_error: PyTree, error_order, controller_state
    ):
        inner, record = controller_state
        keep, next_t0, next_t1, made_jump, inner, result = self.controller.adapt_step_size(
            t0, t1, y0, y1_candidate, args, y_error, error_order, inner
        )
        step = lax.stop_gradient(jnp.asarray(t1 - t0))
        # A state that overflows makes the error NaN, and a NaN step would be tried until max_steps.
        next_t1 = jnp.where(jnp.isnan(next_t1), t0 + 0.2 * step, next_t1)
        vanished = ~jnp.asarray(keep) & (next_t1 - next_t0 < jnp.finfo(step.dtype).eps)
        result = dfx.RESULTS.where(vanished, dfx.RESULTS.dt_min_reached, result)
        record = StepRecord(
            started=record.started | keep,
            attempts_to_start=record.attempts_to_start + jnp.where(record.started, 0, 1),
            last_step=step,
            smallest_step=jnp.where(keep, jnp.minimum(record.smallest_step, step), record.smallest_step),
        )
        return keep, next_t0, next_t1, made_jump, (inner, record), result
