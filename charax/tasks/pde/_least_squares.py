"""Nonlinear least squares for equations: Levenberg–Marquardt on all samples at once, and what its Hessian tells.

A learned equation has a few hundred parameters and about as many samples, of which each has its own gradient at the
price of one: the Jacobian of all residuals costs no more than a step of stochastic gradient descent on all of them.
"""

import contextlib
from collections.abc import Callable, Iterator
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Bool, Float

from charax.data import SolutionSamples
from charax.models import EquationRegressor
from charax.solve import Solver
from charax.tasks.pde._apply import BATCH, apply_model, compile_solves
from charax.train import padded_batches

_LEAST_GAIN = 1e-3
"""Two steps in a row that reduce the sum of squares by less than this end a fit."""
_FORMULA_RIDGE = 1e-3
"""The ridge of the weights of a formula, relative to that of the networks: enough for a unique solution."""


_Rows = tuple[Array, Array, Array]
"""Positions, times and values."""


class Fit(NamedTuple):
    """A model and which of its parameters are fitted; all others are zero."""

    model: EquationRegressor
    active: EquationRegressor
    """The same tree with 1 and 0 instead of the parameters."""
    ridge: float
    """The weight of the parameters in the sum of squares."""


class Errors(NamedTuple):
    """The errors of a model at samples, in units of the value scale."""

    residual: Float[np.ndarray, "samples n"]
    found: Bool[np.ndarray, "samples"]

    @property
    def squared(self) -> Float[np.ndarray, "samples"]:
        """The mean squared error of each sample; 1 where no characteristic was found."""
        return np.where(self.found, np.square(self.residual).mean(axis=1), 1.0)


@contextlib.contextmanager
def single_threaded_blas() -> Iterator[None]:
    """Factorize matrices of a few hundred rows on one thread: several wait for each other longer than they compute."""
    try:
        from threadpoolctl import threadpool_limits
    except ModuleNotFoundError:  # it comes with scikit-learn
        yield
        return
    with threadpool_limits(1, user_api="blas"):
        yield


def distinct_rows(samples: SolutionSamples) -> SolutionSamples:
    """Samples without the repetitions that fill an epoch."""
    rows = np.concatenate([samples.x, samples.t[:, None], samples.u], axis=1)
    _, first = np.unique(rows, axis=0, return_index=True)
    return samples.take(np.sort(first))


def minimize(
    fit: Fit, samples: SolutionSamples, solver: Solver, *, steps: int = 40, least_gain: float = _LEAST_GAIN
) -> Fit:
    """Fit the active parameters to samples, until two steps in turn make the sum of squares smaller by less than
    `least_gain` of it.

    The damping follows H. B. Nielsen, Damping parameter in Marquardt's method, 1999. The steps are made on the host, in
    float64: optimistix's method would evaluate the model again for every column of the Jacobian.
    """
    system = _System(fit, samples, solver)
    vector = system.start
    if not len(vector):
        return fit
    cost, gradient, hessian = system.linearize(vector)
    damping, growth, small = 1e-2 * float(np.diag(hessian).mean()), 2.0, 0
    for _ in range(steps):
        try:
            step = -np.linalg.solve(hessian + damping * np.eye(len(vector)), gradient)
        except np.linalg.LinAlgError:  # to rounding, parameters without effect
            damping, growth = max(damping * growth, 1e-9 * float(np.diag(hessian).max())), 2 * growth
            continue
        trial = system.cost(vector + step)
        gain = (cost - trial) / max(float(step @ (damping * step - gradient)), 1e-300)
        if not (np.isfinite(trial) and gain > 0):
            damping, growth = damping * growth, 2 * growth
            if damping > 1e12:
                break
            continue
        small = small + 1 if cost - trial < least_gain * cost else 0
        vector = vector + step
        if small == 2:
            break
        cost, gradient, hessian = system.linearize(vector)
        damping, growth = damping * max(1 / 3, 1 - (2 * gain - 1) ** 3), 2.0
    return fit._replace(model=system.model(vector))


class _System:
    """The sum of squares of a fit as a function of its active parameters."""

    def __init__(self, fit: Fit, samples: SolutionSamples, solver: Solver):
        self.fit, self.samples, self.solver = fit, samples, solver
        self.index = np.flatnonzero(ravel(fit.active))
        self.ridges = (fit.ridge * _relative_ridges(fit.model))[self.index]
        self.like = fit.model

    @property
    def start(self) -> np.ndarray:
        return ravel(self.fit.model)[self.index].astype(float)

    def model(self, vector: np.ndarray) -> EquationRegressor:
        everything = np.zeros(len(ravel(self.like)))
        everything[self.index] = vector
        return unravel(everything, self.like)

    def cost(self, vector: np.ndarray) -> float:
        residual, found = evaluate_errors(self.model(vector), self.samples, self.solver)
        squares = np.where(found[:, None], residual, 0).astype(float) ** 2
        return float(squares.sum() + (~found).sum() + np.square(self.ridges * vector).sum())

    def jacobian(self, vector: np.ndarray) -> tuple[np.ndarray, np.ndarray, int]:
        model = self.model(vector)
        jacobian, residual, found = _in_chunks(lambda rows: _linearize(model, rows, self.solver), self.samples)
        jacobian = jacobian.reshape(-1, jacobian.shape[-1])[:, self.index].astype(float)
        return jacobian, residual.reshape(-1).astype(float), int((~found).sum())

    def linearize(self, vector: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
        """The sum of squares, half its gradient, and half its Hessian in Gauss and Newton's approximation."""
        J, r, lost = self.jacobian(vector)
        cost = float(r @ r) + lost + float(np.square(self.ridges * vector).sum())
        return cost, J.T @ r + self.ridges**2 * vector, J.T @ J + np.diag(self.ridges**2)


def evaluate_cost(fit: Fit, samples: SolutionSamples, solver: Solver) -> float:
    """What `minimize` minimizes, for the parameters of the model; infinity if it is not finite."""
    system = _System(fit, samples, solver)
    cost = system.cost(system.start)
    return cost if np.isfinite(cost) else np.inf


def evaluate_errors(model: EquationRegressor, samples: SolutionSamples, solver: Solver) -> Errors:
    """The errors at samples."""
    at = lambda rows: apply_model(model, jnp.concatenate([rows[0], rows[1][:, None]], axis=1), solver)[1:3]
    u, found = _in_chunks(at, samples)
    return Errors((u - samples.u) / np.asarray(model.scaling.value_scale, u.dtype), found)


class Normal(NamedTuple):
    """The normal equations of a fit at its minimum: the inverse of `hessian` is the covariance up to the variance."""

    where: np.ndarray
    """The active parameters in the vector of all."""
    hessian: Float[np.ndarray, "active active"]
    """JᵀJ, plus the variance over that of a prior of the weights with mean 0 and standard deviation 1."""
    variance: float
    """The estimated variance of the residuals."""

    @property
    def covariance(self) -> Float[np.ndarray, "active active"]:
        """The covariance of the active parameters."""
        return self.variance * np.linalg.inv(self.hessian)


def normal_equations(fit: Fit, samples: SolutionSamples, solver: Solver) -> Normal:
    """The Gauss–Newton approximation at the minimum, in float64."""
    system = _System(fit, samples, solver)
    J, r, _ = system.jacobian(system.start)
    data, relative = J.T @ J, _relative_ridges(fit.model)[system.index]
    prior = np.square(relative) * float(r @ r) / len(r) + 1e-12 * np.trace(data) / len(data)
    hessian = data + np.diag(prior)
    used = float(np.trace(np.linalg.solve(hessian, data)))  # the effective number of parameters
    return Normal(system.index, hessian, float(r @ r) / max(len(r) - used, 1.0))


def prediction_variance(fit: Fit, normal: Normal, samples: SolutionSamples, solver: Solver) -> np.ndarray:
    """The variance of u at samples because of that of the parameters, in units of the squared value scale."""
    J, _, _ = _System(fit, samples, solver).jacobian(ravel(fit.model)[normal.where].astype(float))
    return np.einsum("ij,jk,ik->i", J, normal.covariance, J)


def ravel(model: EquationRegressor) -> Float[np.ndarray, "parameters"]:
    """All parameters as one vector."""
    return np.asarray(ravel_pytree(eqx.filter(model, eqx.is_inexact_array))[0])


def unravel(vector: np.ndarray, like: EquationRegressor) -> EquationRegressor:
    """The model with these parameters."""
    params, static = eqx.partition(like, eqx.is_inexact_array)
    return eqx.combine(ravel_pytree(params)[1](jnp.asarray(vector, jnp.float32)), static)


def _as_arrays(samples: SolutionSamples) -> _Rows:
    return jnp.asarray(samples.x), jnp.asarray(samples.t), jnp.asarray(samples.u)


def _in_chunks(function: Callable[[_Rows], tuple[Array, ...]], samples: SolutionSamples) -> tuple[np.ndarray, ...]:
    """Call a compiled function with one shape, whatever the number of samples: it is compiled once for all data."""
    parts = [function(_as_arrays(samples.take(rows))) for rows in padded_batches(len(samples.t), BATCH)]
    return tuple(np.concatenate(pieces)[: len(samples.t)] for pieces in zip(*parts, strict=True))


@compile_solves
def _linearize(model: EquationRegressor, rows: _Rows, solver: Solver) -> tuple[Array, Array, Array]:
    """The Jacobian of all residuals by all parameters, from one gradient per number; the residuals; which are found."""
    params, static = eqx.partition(model, eqx.is_inexact_array)
    vector, unravel = ravel_pytree(params)

    def residual(vector: Array, x: Array, t: Array, u: Array) -> tuple[Array, tuple[Array, Array]]:
        out = eqx.combine(unravel(vector), static)(x[None], t[None], solver=solver)
        error = (out.u[0] - u) / jnp.asarray(model.scaling.value_scale, u.dtype)
        # A point without a characteristic has no gradient; the others are fitted without it.
        error = jnp.where(out.found, error, 0)
        return error, (error, out.found[0])

    of_rows = jax.vmap(jax.jacrev(residual, has_aux=True), in_axes=(None, 0, 0, 0))
    jacobian, (error, found) = of_rows(vector, *rows)
    return jacobian, error, found


def _relative_ridges(model: EquationRegressor) -> Float[np.ndarray, "parameters"]:
    ones = jax.tree.map(lambda leaf: jnp.ones_like(leaf) if eqx.is_inexact_array(leaf) else leaf, model)
    for part, coefficient in model.field.learned.items():
        if coefficient.formula is not None:
            where = lambda it, part=part: it.field.learned[part].formula.weights
            ones = eqx.tree_at(where, ones, _FORMULA_RIDGE * where(ones))
    return ravel(ones)
