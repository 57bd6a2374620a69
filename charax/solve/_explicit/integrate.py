"""Integration by explicit Runge–Kutta steps, fixed or adaptive."""

import diffrax as dfx
import jax.numpy as jnp

from charax.fields._names import Count
from charax.solve._controller import RecordedController
from charax.solve._explicit.adaptive import StepControl, integrate_adaptive
from charax.solve._explicit.backsolve import integrate_fixed_backsolve
from charax.solve._explicit.fixed import integrate_fixed
from charax.solve._explicit.tableau import Tableau
from charax.solve._problem import InitialValueProblem, IntegrationResult
from charax.solve._solution import Outcome, Stats


def is_explicit(problem: InitialValueProblem) -> bool:
    """Whether `integrate_explicitly` can solve it."""
    if Tableau.of(problem.method) is None or problem.at is not None:
        return False
    return problem.steps is not None or problem.adjoint == "checkpoint"


def integrate_explicitly(problem: InitialValueProblem) -> IntegrationResult:
    """Integrate from t = 0 to 1."""
    tableau = Tableau.of(problem.method)
    assert tableau is not None
    if problem.steps is None:
        return _with_adaptive_steps(problem, tableau)
    return _with_fixed_steps(problem, tableau, problem.steps)


def _with_fixed_steps(problem: InitialValueProblem, tableau: Tableau, steps: Count) -> IntegrationResult:
    vector_field = lambda t, y: problem.vector_field(t, y, problem.args)
    if problem.adjoint == "backsolve":
        y1 = integrate_fixed_backsolve(tableau, vector_field, problem.y0, steps)
    else:
        recompute = problem.adjoint == "checkpoint" and steps > 2
        y1 = integrate_fixed(tableau, vector_field, problem.y0, steps, recompute=recompute)
    step_size = jnp.asarray(1 / steps, problem.rtol.dtype)
    accepted = jnp.asarray(steps)
    stats = Stats(
        nfe=tableau.evaluations * accepted,
        accepted=accepted,
        rejected=jnp.zeros_like(accepted),
        reached=jnp.ones_like(step_size),
        last_step=step_size,
        smallest_step=step_size,
        rtol=problem.rtol,
        stiffness=None,
        max_steps=problem.max_steps,
    )
    outcome = jnp.where(jnp.isfinite(y1.u).all(), Outcome.SUCCESS, Outcome.NOT_FINITE)
    return IntegrationResult(y1, None, outcome, stats)


def _with_adaptive_steps(problem: InitialValueProblem, tableau: Tableau) -> IntegrationResult:
    vector_field = lambda t, y: problem.vector_field(t, y, problem.args)
    controller = RecordedController(dfx.PIDController(problem.rtol, problem.atol, norm=problem.norms[0]))
    error_order = problem.method.error_order(dfx.ODETerm(problem.vector_field))
    end = integrate_adaptive(tableau, vector_field, problem.y0, StepControl(controller, error_order, problem.max_steps))
    codes = [
        (end.failed, Outcome.STEP_VANISHED),
        (end.t < 1, Outcome.OUT_OF_STEPS),
        (~jnp.isfinite(end.y.u).all(), Outcome.NOT_FINITE),
    ]
    outcome = jnp.select([when for when, _ in codes], [int(code) for _, code in codes], int(Outcome.SUCCESS))
    stats = Stats(
        nfe=2 + tableau.evaluations * end.attempts,  # two for the size of the first step
        accepted=end.accepted,
        rejected=end.attempts - end.accepted,
        reached=end.t,
        last_step=end.record.last_step,
        smallest_step=end.record.smallest_step,
        rtol=problem.rtol,
        stiffness=None,
        max_steps=problem.max_steps,
    )
    return IntegrationResult(end.y, None, outcome, stats)
