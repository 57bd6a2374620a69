"""Equations that are fitted at once: each becomes what it would be alone."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from charax.data import SolutionSamples
from charax.models import EquationRegressor, Scaling
from charax.paper.equations import sample_equation
from charax.solve import Solver
from charax.tasks.pde import _least_squares, _members
from charax.tasks.pde._formula_slots import activate_networks
from charax.tasks.pde._least_squares import Fit, evaluate_errors, minimize, minimize_all, normal_equations
from charax.tasks.pde._members import Member, evaluate_members, evaluate_model, ravel, unravel

SOLVER = Solver("bosh3", steps=4)


def draw(count: int, seed: int = 0) -> SolutionSamples:
    x, t, u = sample_equation("growth", count, seed=[seed], between=(0, 1)).values()
    return SolutionSamples(*(part.astype(np.float32) for part in (x[:, None], t, u[:, None])))


def build(seed: int) -> EquationRegressor:
    return EquationRegressor.build(Scaling.fit(*draw(100)), width=3, key=jax.random.key(seed))


@pytest.fixture(scope="module")
def problems() -> list[tuple[Fit, SolutionSamples]]:
    """Other weights, other samples and another number of them, of which no two fill the same blocks."""
    fits = [Fit(build(seed), activate_networks(build(seed)), 0.1) for seed in range(3)]
    converged = minimize(fits[2], draw(40, seed=2), SOLVER, steps=100, least_gain=1e-6)
    return list(zip([*fits[:2], converged], [draw(70), draw(600, seed=1), draw(40, seed=2)], strict=True))


def test_members_have_the_values_of_their_models(problems):
    members = [Member(ravel(fit.model), samples) for fit, samples in problems]
    for (fit, samples), values in zip(problems, evaluate_members(problems[0][0].model, members, SOLVER), strict=True):
        alone = fit.model(jnp.asarray(samples.x), jnp.asarray(samples.t), solver=SOLVER)
        np.testing.assert_array_equal(values.found, alone.found)
        np.testing.assert_allclose(values.u, alone.u, atol=1e-5)
        np.testing.assert_allclose(values.foot_point, alone.foot_point, atol=1e-4)


def test_at_once_every_member_becomes_what_it_would_be_alone(problems):
    together = minimize_all(problems, SOLVER, steps=6)
    for (fit, samples), one in zip(problems, together, strict=True):
        alone = minimize(fit, samples, SOLVER, steps=6)
        np.testing.assert_allclose(ravel(one.model), ravel(alone.model), rtol=2e-3, atol=2e-4)
    for (fit, samples), one in zip(problems[:2], together[:2], strict=True):
        before, after = (evaluate_errors(each.model, samples, SOLVER).squared.mean() for each in (fit, one))
        assert after < 0.8 * before


def test_a_member_at_its_end_takes_no_part(problems, monkeypatch):
    asked: list[int] = []
    count = lambda like, members, solver: asked.append(len(members)) or evaluate_members(like, members, solver)
    monkeypatch.setattr(_least_squares, "evaluate_members", count)
    minimize_all(problems, SOLVER, steps=6)
    assert asked[0] == 3
    assert asked[-1] < 3


def test_blocks_of_a_members_jacobian_are_that_of_all_its_samples(problems):
    fit, samples = problems[1]

    def residual(vector):
        u = unravel_traced(vector)(jnp.asarray(samples.x), jnp.asarray(samples.t), solver=SOLVER).u
        return (u - samples.u).reshape(-1) / jnp.asarray(fit.model.scaling.value_scale)

    unravel_traced = lambda vector: _members._with_parameters(vector, fit.model)
    jacobian = np.asarray(jax.jacrev(residual)(jnp.asarray(ravel(fit.model))), float)
    square = normal_equations(fit, samples, SOLVER).hessian
    data = jacobian.T @ jacobian
    np.testing.assert_allclose(square - data, np.diag(np.diag(square - data)), atol=2e-3 * np.abs(data).max())


def test_a_model_in_float64_is_evaluated_in_float64(x64):
    model = jax.tree.map(lambda leaf: leaf.astype(jnp.float64), build(0))
    samples = draw(5)
    points = np.concatenate([samples.x, samples.t[:, None]], axis=1)
    u = evaluate_model(model, points, Solver("bosh3", steps=4)).u
    assert u.dtype == np.float64
    assert ravel(unravel(ravel(model), model)).dtype == np.float64
