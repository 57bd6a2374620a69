"""Integration by diffrax: implicit methods, states at requested points, the adaptive continuous adjoint."""

import diffrax as dfx
import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array

from charax.solve._controller import RecordedController, StepRecord
from charax.solve._methods import evaluations_per_step
from charax.solve._problem import InitialValueProblem, IntegrationResult
from charax.solve._solution import Outcome, Stats

# As a fraction of the interval. Two steps grow it to the whole interval, or one rejection shrinks it fivefold; an
# estimate from the vector field would cost two evaluations.
_INITIAL_STEP = 0.01


def integrate_with_diffrax(problem: InitialValueProblem) -> IntegrationResult:
    """Integrate from t = 0 to 1."""
    if problem.steps is None:
        controller, adjoint_controller = (
            RecordedController(dfx.PIDController(problem.rtol, problem.atol, norm=norm)) for norm in problem.norms
        )
        dt0 = _INITIAL_STEP
    else:
        controller = adjoint_controller = dfx.ConstantStepSize()
        dt0 = 1 / problem.steps
    match problem.adjoint:
        case "checkpoint":
            adjoint = dfx.RecursiveCheckpointAdjoint(checkpoints=_num_checkpoints(problem.max_steps))
        case "backsolve":
            # A backward solve that fails has no solution to report its outcome: it must not pass for a gradient.
            adjoint = dfx.BacksolveAdjoint(stepsize_controller=adjoint_controller, throw=True)
        case _:
            adjoint = dfx.DirectAdjoint()

    # Python's numbers are checked when they are traced, and not with a callback from the compiled program: JAX does
    # not keep programs with callbacks in its compilation cache. A dtype that is not the default must be given, or the
    # state would be promoted.
    dtype = problem.y0.u.dtype
    number = float if dtype == jnp.result_type(float) else lambda value: jnp.asarray(value, dtype)
    result = dfx.diffeqsolve(
        dfx.ODETerm(problem.vector_field),
        problem.method,
        t0=number(0.0),
        t1=number(1.0),
        dt0=number(dt0),
        y0=problem.y0,
        args=problem.args,
        saveat=dfx.SaveAt(ts=problem.at, t1=True, controller_state=True),
        stepsize_controller=controller,
        adjoint=adjoint,
        max_steps=problem.max_steps,
        throw=False,
    )
    y1 = jax.tree.map(lambda ys: ys[-1], result.ys)
    trajectory = None if problem.at is None else jax.tree.map(lambda ys: ys[:-1], result.ys)
    return IntegrationResult(y1, trajectory, _outcome(result, y1.u), _stats(result, problem))


def _num_checkpoints(max_steps: int) -> int:
    """Enough that few steps are recomputed, and at most a logarithmic number of them."""
    return min(max_steps, max(16, 2 * (max_steps - 1).bit_length()))


def _outcome(result: dfx.Solution, u: Array) -> Array:
    codes = [
        (result.result == dfx.RESULTS.max_steps_reached, Outcome.OUT_OF_STEPS),
        (result.result == dfx.RESULTS.dt_min_reached, Outcome.STEP_VANISHED),
        (result.result != dfx.RESULTS.successful, Outcome.METHOD_FAILED),
        (~jnp.isfinite(u).all(), Outcome.NOT_FINITE),
    ]
    return jnp.select([when for when, _ in codes], [int(code) for _, code in codes], int(Outcome.SUCCESS))


def _stats(result: dfx.Solution, problem: InitialValueProblem) -> Stats:
    assert result.ts is not None
    attempts = jnp.asarray(result.stats["num_steps"])
    if isinstance(result.controller_state, tuple) and isinstance(result.controller_state[-1], StepRecord):
        record: StepRecord = result.controller_state[-1]
        starts, last_step, smallest_step = record.attempts_to_start, record.last_step, record.smallest_step
    else:
        starts = jnp.ones_like(attempts)
        last_step = smallest_step = jnp.asarray(1 / problem.max_steps, problem.rtol.dtype)
    cost = evaluations_per_step(problem.method)
    if cost is None:
        nfe = None
    else:
        stages, fsal = cost
        nfe = (stages - 1) * attempts + starts if fsal else stages * attempts
    return Stats(
        nfe=nfe,
        accepted=jnp.asarray(result.stats["num_accepted_steps"]),
        rejected=jnp.asarray(result.stats["num_rejected_steps"]),
        reached=lax.stop_gradient(result.ts[-1]),
        last_step=lax.stop_gradient(last_step),
        smallest_step=lax.stop_gradient(smallest_step),
        rtol=problem.rtol,
        stiffness=None,
        max_steps=problem.max_steps,
    )
