"""Adaptive Runge–Kutta steps and their exact gradient.

The steps are those of diffrax. In addition the first stage of a rejected step is kept, and a gradient recomputes every
accepted step once.
"""

from typing import Any

import diffrax as dfx
import equinox as eqx
import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Float, Int

from charax.solve._controller import RecordedController, StepRecord
from charax.solve._explicit.checkpoints import StateCheckpoints
from charax.solve._explicit.tableau import Tableau, VectorField, add_stages
from charax.solve._problem import SolverState


class StepControl(eqx.Module):
    """The step size controller and its limits."""

    controller: RecordedController
    error_order: Any
    max_steps: int = eqx.field(static=True)

    def initial_step(self, vector_field: VectorField, y0: SolverState, f0: SolverState) -> Float[Array, ""]:
        """The estimate of Hairer, Nørsett and Wanner (Solving ODEs I, II.4), with one evaluation."""
        norm, dtype = self.controller.norm, y0.u.dtype
        scale = jax.tree.map(lambda y: self.controller.atol + self.controller.rtol * jnp.abs(y), y0)
        scaled_norm = lambda tree: norm(jax.tree.map(jnp.divide, tree, scale))
        d0, d1 = scaled_norm(y0), scaled_norm(f0)
        h0 = 0.01 * jnp.where((d0 > 1e-5) & (d1 > 1e-5), d0 / d1, 1)
        h0 = jnp.clip(h0, 1e-6, 0.01).astype(dtype)
        f1 = vector_field(h0, add_stages(y0, h0, (1.0,), [f0]))
        d2 = scaled_norm(jax.tree.map(jnp.subtract, f1, f0)) / h0
        largest = jnp.maximum(jnp.maximum(d1, d2), 1e-6)
        step = jnp.minimum(100 * h0, (0.01 / largest) ** (1 / self.error_order))
        return jnp.where(jnp.isfinite(step), jnp.clip(step, 1e-6, 1), h0).astype(dtype)


class LoopState(eqx.Module):
    """The state of the loop over the steps."""

    t: Float[Array, ""]
    next_t: Float[Array, ""]
    """Where the next step ends."""
    y: SolverState
    first_stage: SolverState
    controller_state: Any
    failed: Bool[Array, ""]
    attempts: Int[Array, ""]
    accepted: Int[Array, ""]

    @property
    def record(self) -> StepRecord:
        return self.controller_state[-1]


def integrate_adaptive(tableau: Tableau, vector_field: VectorField, y0: SolverState, control: StepControl) -> LoopState:
    """The loop state at t = 1, or where the integration failed. Only its y has a gradient."""
    t0 = jnp.zeros((), y0.u.dtype)
    # Whatever the vector field closes over becomes part of it: the gradient must know.
    vector_field = eqx.filter_closure_convert(vector_field, t0, y0)
    end = _integrate((vector_field, y0), tableau, control)
    return eqx.tree_at(lambda it: it.y, jax.tree.map(lax.stop_gradient, end), end.y)


def _loop(
    vector_field: VectorField,
    y0: SolverState,
    tableau: Tableau,
    control: StepControl,
    checkpoints: StateCheckpoints | None,
) -> tuple[LoopState, StateCheckpoints | None]:
    t0, t1 = jnp.zeros((), y0.u.dtype), jnp.ones((), y0.u.dtype)
    none = jnp.zeros((), int)
    controller = control.controller
    f0 = vector_field(t0, y0)
    dt0 = control.initial_step(vector_field, y0, f0)
    next_t, controller_state = controller.init(None, t0, t1, y0, dt0, None, vector_field, control.error_order)
    start = LoopState(t0, jnp.asarray(next_t), y0, f0, controller_state, jnp.array(False), none, none)

    def unfinished(carry: tuple[LoopState, StateCheckpoints | None]) -> Array:
        now, _ = carry
        return (now.t < 1) & ~now.failed & (now.attempts < control.max_steps)

    def attempt(
        carry: tuple[LoopState, StateCheckpoints | None],
    ) -> tuple[LoopState, StateCheckpoints | None]:
        now, checkpoints = carry
        h = now.next_t - now.t
        first_stage = now.first_stage if tableau.fsal else vector_field(now.t, now.y)
        y, error, last_stage = tableau.step_with_error(vector_field, now.t, h, now.y, first_stage)
        keep, t, next_t, _, controller_state, result = controller.adapt_step_size(
            now.t, now.next_t, now.y, y, None, error, control.error_order, now.controller_state
        )
        t, next_t = (jnp.where(time > 1 - _CLOSE_TO_END[t1.dtype.name], t1, time) for time in (t, next_t))
        checkpoints = None if checkpoints is None else checkpoints.save(now.accepted, now.y, now.t, h)
        select = lambda new, old: jax.tree.map(lambda new, old: jnp.where(keep, new, old), new, old)
        after = LoopState(
            t=t,
            next_t=next_t,
            y=select(y, now.y),
            first_stage=select(last_stage, now.first_stage),
            controller_state=controller_state,
            failed=result != dfx.RESULTS.successful,
            attempts=now.attempts + 1,
            accepted=now.accepted + keep,
        )
        return after, checkpoints

    return lax.while_loop(unfinished, attempt, (start, checkpoints))


_CLOSE_TO_END = {"float64": 1e-10, "float32": 1e-6, "float16": 1e-3, "bfloat16": 1e-2}
"""A step that would end this close to t = 1 ends there."""


@eqx.filter_custom_vjp
def _integrate(differentiable: tuple[VectorField, SolverState], tableau: Tableau, control: StepControl) -> LoopState:
    return _loop(*differentiable, tableau, control, None)[0]


@_integrate.def_fwd
def _integrate_forward(
    perturbed, differentiable: tuple[VectorField, SolverState], tableau: Tableau, control: StepControl
) -> tuple[LoopState, StateCheckpoints]:
    del perturbed
    checkpoints = StateCheckpoints.allocate(differentiable[1], control.max_steps)
    end, checkpoints = _loop(*differentiable, tableau, control, checkpoints)
    assert checkpoints is not None
    return end, checkpoints.finish(end.accepted)


@_integrate.def_bwd
def _integrate_reverse(
    checkpoints: StateCheckpoints,
    cotangent: LoopState,
    perturbed,
    differentiable: tuple[VectorField, SolverState],
    tableau: Tableau,
    control,
):
    del control
    vector_field, y0 = differentiable
    parameters, static = eqx.partition(vector_field, perturbed[0])

    def step(parameters: VectorField, y: SolverState, t: Array, h: Array) -> SolverState:
        return tableau.step(eqx.combine(parameters, static), t, h, y)

    def pullback(
        carry: tuple[SolverState, VectorField], y: SolverState, t: Array, h: Array
    ) -> tuple[SolverState, VectorField]:
        after, total = carry
        _, vjp = jax.vjp(lambda parameters, y: step(parameters, y, t, h), parameters, y)
        gradient, before = vjp(after)
        return before, jax.tree.map(jnp.add, total, gradient)

    end = jax.tree.map(lambda y, known: jnp.zeros_like(y) if known is None else known, y0, cotangent.y)
    zeros = jax.tree.map(jnp.zeros_like, parameters)
    start, total = checkpoints.reverse(lambda y, t, h: step(parameters, y, t, h), pullback, (end, zeros))
    return total, start
