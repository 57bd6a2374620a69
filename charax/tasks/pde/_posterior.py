"""What the data leave open: an ensemble of equations that fit them as well as the fitted one, and its shock times.

Every member is fitted to other noise on the fitted solution (the parametric bootstrap), as large as the residuals, and
larger if the validation split is further from the fit than that explains. The networks of a and c start from other
weights, which stay different where the data do not determine them.
"""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from charax.data import SolutionSamples
from charax.models import EquationRegressor
from charax.solve import Solver
from charax.tasks.pde._apply import compile_solves
from charax.tasks.pde._least_squares import (
    Fit,
    evaluate_errors,
    minimize_all,
    normal_equations,
    prediction_variance,
)
from charax.tasks.pde._members import ravel, unravel

_FEET, _TIMES = 256, 64
_STEPS = 12
_START_DEVIATION = 0.3
"""Standard deviation of the weights that the members start from, around the fitted ones."""


class Posterior(NamedTuple):
    """An ensemble of models that the data cannot tell apart."""

    members: list[EquationRegressor]
    """The models."""
    calibration: float
    """The factor by which the validation split widened the ensemble; 1 if it was wide enough."""


def draw_members(
    fit: Fit, train: SolutionSamples, validation: SolutionSamples, solver: Solver, *, count: int, seed: int = 0
) -> Posterior:
    """Fit an ensemble, as spread out as the data allow: all members at once."""
    normal = normal_equations(fit, train, solver)
    errors, found = evaluate_errors(fit.model, validation, solver)
    predicted = prediction_variance(fit, normal, validation, solver) + normal.variance
    ratio = (np.square(errors.reshape(-1)) / predicted)[np.repeat(found, errors.shape[1])]
    calibration = max(1.0, float(np.sqrt(ratio.mean()))) if len(ratio) else 1.0
    scale = np.asarray(fit.model.scaling.value_scale, np.float32)
    residual, located = evaluate_errors(fit.model, train, solver)
    fitted = train.u + scale * np.where(located[:, None], residual, 0)
    deviation, random = calibration * np.sqrt(normal.variance), np.random.default_rng(seed)
    free = _START_DEVIATION * ravel(_networks_of_coefficients(fit.active))
    problems = []
    for _ in range(count):
        noisy = fitted + scale * deviation * random.standard_normal(train.u.shape)
        start = unravel(ravel(fit.model) + free * random.standard_normal(len(free)), fit.model)
        problems.append((fit._replace(model=start), train._replace(u=noisy.astype(np.float32))))
    members = minimize_all(problems, solver, steps=_STEPS)
    return Posterior([member.model for member in members], calibration)


def _networks_of_coefficients(active: EquationRegressor) -> EquationRegressor:
    """The mask without the initial value and the formulas."""
    zero = lambda tree: jax.tree.map(lambda leaf: jnp.zeros_like(leaf) if eqx.is_inexact_array(leaf) else leaf, tree)
    parts = lambda it: (it.initial_network, *(one.formula for one in it.field.learned.values()))
    return eqx.tree_at(parts, active, zero(parts(active)), is_leaf=lambda it: it is None)


def find_shock_time(model: EquationRegressor, domain: tuple[float, float], horizon: float) -> float:
    """The time at which characteristics from a part of the line first cross; infinity if not before `horizon`."""
    spread = np.asarray(_least_spread(model, jnp.asarray(domain), jnp.asarray(horizon)))
    times = np.linspace(0, horizon, _TIMES + 1)
    crossed = np.flatnonzero(~(spread > 0))
    if not len(crossed):
        return np.inf
    after = int(crossed[0])
    before, high, low = after - 1, spread[after - 1], spread[after]
    share = high / (high - low) if np.isfinite(low) else 1.0
    return float(times[before] + share * (times[after] - times[before]))


@compile_solves
def _least_spread(
    model: EquationRegressor, domain: Float[Array, "2"], horizon: Float[Array, ""]
) -> Float[Array, "times"]:
    """The least ∂x/∂ξ over the foot points of an interval, at equidistant times."""
    feet = jnp.linspace(domain[0], domain[1], _FEET)[:, None]
    at = lambda t: model.spread(feet, jnp.full(_FEET, t), solver=Solver("bosh3", steps=16))[:, 0, 0].min()
    return jax.lax.map(at, jnp.linspace(0, horizon, _TIMES + 1))
