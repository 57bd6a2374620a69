"""Nonlinear least squares for equations: Levenberg–Marquardt on all samples at once, and what its Hessian tells.

A learned equation has a few hundred parameters and about as many samples, of which each has its own gradient at the
price of one: the Jacobian of all residuals costs no more than a step of stochastic gradient descent on all of them.
"""

import contextlib
from collections.abc import Generator, Iterator, Sequence
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Bool, Float

from charax.data import SolutionSamples
from charax.models import EquationRegressor
from charax.solve import Solver
from charax.tasks.pde._members import Member, Values, evaluate_members, linearize_members, ravel, unravel

_LEAST_GAIN = 1e-3
"""Two steps in a row that reduce the sum of squares by less than this end a fit."""
_FORMULA_RIDGE = 1e-3
"""The ridge of the weights of a formula, relative to that of the networks: enough for a unique solution."""


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
    `least_gain` of it."""
    return minimize_all([(fit, samples)], solver, steps=steps, least_gain=least_gain)[0]


def minimize_all(
    problems: Sequence[tuple[Fit, SolutionSamples]],
    solver: Solver,
    *,
    steps: int = 40,
    least_gain: float = _LEAST_GAIN,
) -> list[Fit]:
    """`minimize` for several models of one structure: one vmapped program evaluates all that have not ended yet.

    Each has steps, damping and an end of its own, so that it becomes what it would be alone.
    """
    systems = [_System(fit, samples) for fit, samples in problems]
    searches = [_search(system, steps, least_gain) for system in systems]
    ends = [system.start for system in systems]
    asked = {i: next(search) for i, search in enumerate(searches) if len(ends[i])}
    while asked:
        for kind, answer in ((_Cost, _costs), (_Linear, _linearize)):
            chosen = [i for i, vector in asked.items() if isinstance(vector, kind)]
            answers = answer([(systems[i], asked[i].vector) for i in chosen], solver)
            for i, value in zip(chosen, answers, strict=True):
                try:
                    asked[i] = searches[i].send(value)
                except StopIteration as end:
                    ends[i] = end.value
                    del asked[i]
    return [
        fit._replace(model=unravel(system.everything(end), fit.model)) if len(end) else fit
        for (fit, _), system, end in zip(problems, systems, ends, strict=True)
    ]


class _Cost(NamedTuple):
    """Asks for the sum of squares."""

    vector: np.ndarray


class _Linear(NamedTuple):
    """Asks for the sum of squares, half its gradient, and half its Hessian in Gauss and Newton's approximation."""

    vector: np.ndarray


def _search(system: "_System", steps: int, least_gain: float) -> Generator[_Cost | _Linear, Any, np.ndarray]:
    """Levenberg–Marquardt steps of one fit: yields where the sum of squares is needed, and returns its minimum.

    The damping follows H. B. Nielsen, Damping parameter in Marquardt's method, 1999. The steps are made on the host, in
    float64: optimistix's method would evaluate the model again for every column of the Jacobian.
    """
    vector = system.start
    cost, gradient, hessian = yield _Linear(vector)
    damping, growth, small = 1e-2 * float(np.diag(hessian).mean()), 2.0, 0
    for _ in range(steps):
        try:
            step = -np.linalg.solve(hessian + damping * np.eye(len(vector)), gradient)
        except np.linalg.LinAlgError:  # to rounding, parameters without effect
            damping, growth = max(damping * growth, 1e-9 * float(np.diag(hessian).max())), 2 * growth
            continue
        trial = yield _Cost(vector + step)
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
        cost, gradient, hessian = yield _Linear(vector)
        damping, growth = damping * max(1 / 3, 1 - (2 * gain - 1) ** 3), 2.0
    return vector


class _System:
    """The sum of squares of a fit as a function of its active parameters."""

    def __init__(self, fit: Fit, samples: SolutionSamples):
        self.like, self.samples = fit.model, samples
        self.index = np.flatnonzero(ravel(fit.active))
        self.ridges = (fit.ridge * _relative_ridges(fit.model))[self.index]
        self._start = ravel(fit.model).astype(float)

    @property
    def start(self) -> np.ndarray:
        return self._start[self.index]

    def everything(self, vector: np.ndarray) -> np.ndarray:
        """All parameters."""
        everything = np.zeros_like(self._start)
        everything[self.index] = vector
        return everything

    def member(self, vector: np.ndarray) -> Member:
        return Member(self.everything(vector), self.samples)

    def penalty(self, vector: np.ndarray) -> float:
        return float(np.square(self.ridges * vector).sum())


_Asked = Sequence[tuple[_System, np.ndarray]]


def _costs(asked: _Asked, solver: Solver) -> list[float]:
    if not asked:
        return []
    like = asked[0][0].like
    values = evaluate_members(like, [system.member(vector) for system, vector in asked], solver)
    costs = []
    for (system, vector), value in zip(asked, values, strict=True):
        residual, found = _errors(like, system.samples, value)
        squares = np.where(found[:, None], residual, 0).astype(float) ** 2
        costs.append(float(squares.sum() + (~found).sum() + system.penalty(vector)))
    return costs


def _linearize(asked: _Asked, solver: Solver) -> list[tuple[float, np.ndarray, np.ndarray]]:
    if not asked:
        return []
    found = []
    for system, vector in asked:
        square = system.ridges**2
        found.append([system.penalty(vector), square * vector, np.diag(square)])
    members = [system.member(vector) for system, vector in asked]
    for which, piece in linearize_members(asked[0][0].like, members, solver):
        J, r, lost = _reduce(piece, asked[which][0].index)
        cost, gradient, hessian = found[which]
        found[which] = [cost + float(r @ r) + lost, gradient + J.T @ r, hessian + J.T @ J]
    return [(cost, gradient, hessian) for cost, gradient, hessian in found]


def _reduce(piece: tuple[np.ndarray, ...], index: np.ndarray) -> tuple[np.ndarray, np.ndarray, int]:
    """The Jacobian by the active parameters, the residuals and the number of lost rows, in float64."""
    jacobian, residual, found = piece
    jacobian = jacobian.reshape(-1, jacobian.shape[-1])[:, index].astype(float)
    return jacobian, residual.reshape(-1).astype(float), int((~found).sum())


def _jacobian(system: _System, vector: np.ndarray, solver: Solver) -> tuple[np.ndarray, np.ndarray]:
    pieces = [piece for _, piece in linearize_members(system.like, [system.member(vector)], solver)]
    J, r, _ = _reduce(tuple(map(np.concatenate, zip(*pieces, strict=True))), system.index)
    return J, r


def evaluate_costs(problems: Sequence[tuple[Fit, SolutionSamples]], solver: Solver) -> list[float]:
    """What `minimize` minimizes, for the parameters of the models; infinity where it is not finite."""
    systems = [_System(fit, samples) for fit, samples in problems]
    costs = _costs([(system, system.start) for system in systems], solver)
    return [cost if np.isfinite(cost) else np.inf for cost in costs]


def evaluate_errors(model: EquationRegressor, samples: SolutionSamples, solver: Solver) -> Errors:
    """The errors at samples."""
    return evaluate_all_errors([(model, samples)], solver)[0]


def evaluate_all_errors(problems: Sequence[tuple[EquationRegressor, SolutionSamples]], solver: Solver) -> list[Errors]:
    """The errors of models of one structure, each at its own samples."""
    if not problems:
        return []
    like = problems[0][0]
    values = evaluate_members(like, [Member(ravel(model), samples) for model, samples in problems], solver)
    return [_errors(like, samples, value) for (_, samples), value in zip(problems, values, strict=True)]


def _errors(like: EquationRegressor, samples: SolutionSamples, values: Values) -> Errors:
    return Errors((values.u - samples.u) / np.asarray(like.scaling.value_scale, values.u.dtype), values.found)


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
    system = _System(fit, samples)
    J, r = _jacobian(system, system.start, solver)
    data, relative = J.T @ J, _relative_ridges(fit.model)[system.index]
    prior = np.square(relative) * float(r @ r) / len(r) + 1e-12 * np.trace(data) / len(data)
    hessian = data + np.diag(prior)
    used = float(np.trace(np.linalg.solve(hessian, data)))  # the effective number of parameters
    return Normal(system.index, hessian, float(r @ r) / max(len(r) - used, 1.0))


def prediction_variance(fit: Fit, normal: Normal, samples: SolutionSamples, solver: Solver) -> np.ndarray:
    """The variance of u at samples because of that of the parameters, in units of the squared value scale."""
    system = _System(fit, samples)
    J, _ = _jacobian(system, system.start, solver)
    return np.einsum("ij,jk,ik->i", J, normal.covariance, J)


def _relative_ridges(model: EquationRegressor) -> Float[np.ndarray, "parameters"]:
    ones = jax.tree.map(lambda leaf: jnp.ones_like(leaf) if eqx.is_inexact_array(leaf) else leaf, model)
    for part, coefficient in model.field.learned.items():
        if coefficient.formula is not None:
            where = lambda it, part=part: it.field.learned[part].formula.weights
            ones = eqx.tree_at(where, ones, _FORMULA_RIDGE * where(ones))
    return ravel(ones)
