"""Learned PDEs with known networks inside: they then solve known equations."""

import functools

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from charax.fields import SeparateJacobian
from charax.models import (
    EquationRegressor,
    PathRegressor,
    PathVelocity,
    Scaling,
    TimeRegressor,
    build_regressor,
    crossing_penalty,
)
from charax.models._equation_field import Coefficient, EquationField
from charax.nn import count_parameters
from charax.pde import PaperProblem
from charax.solve import Solver

X = jnp.asarray(np.linspace(1, 2, 7, dtype=np.float32)[:, None])
T = jnp.asarray(np.linspace(0, 1, 7, dtype=np.float32))


class Parabola(eqx.Module):
    """x ↦ a·x² + b·x + c, whose coefficients are arrays, so that models with other ones share a compiled program."""

    coefficients: tuple

    def __call__(self, x):
        a, b, c = self.coefficients
        return a * x**2 + b * x + c


class AtItsValue(eqx.Module):
    """The direction (u, dt) of a characteristic whose dx/ds is its value."""

    dt: np.ndarray

    def __call__(self, u_and_x):
        return jnp.stack([u_and_x[:, 0], jnp.full(len(u_and_x), self.dt)], axis=1)


def zero_derivative(inputs):
    return jnp.zeros_like(inputs[:, :1])


def burgers(*coefficients: float, dt: float = 1.0) -> PathRegressor:
    """Burgers' equation from a parabola: characteristics at speed u/dt, along which the value does not change."""
    before_softplus = np.float32(np.log(np.expm1(dt - 0.1)))  # 0.1 is the minimum of dt
    return PathRegressor(
        initial=Parabola(tuple(np.float32(value) for value in coefficients)),
        velocity=PathVelocity(AtItsValue(before_softplus), dim=1),
        jacobian=SeparateJacobian([zero_derivative] * 2, reads_x=True),
        scaling=Scaling.identity(1, 1),
    )


@eqx.filter_jit
def evaluate(model, x, t):
    """The result, and the gradient of the sum of its values by x."""

    def total(x):
        result = model(x, t)
        return result.u.sum(), result

    gradient, result = jax.grad(total, has_aux=True)(x)
    return result, gradient


def test_characteristics_transport_the_initial_value_as_burgers_equation_does():
    out, gradient = evaluate(burgers(0, 0.5, 0), X, T)
    assert out.found.all()
    spread = 1 + 0.5 * np.asarray(T)
    np.testing.assert_allclose(out.u[:, 0], 0.5 * X[:, 0] / spread, rtol=1e-5)
    np.testing.assert_allclose(out.foot_point[:, 0], X[:, 0] / spread, rtol=1e-5)
    np.testing.assert_allclose(out.jacobian_determinant, spread, rtol=1e-5)
    np.testing.assert_allclose(gradient[:, 0], 0.5 / spread, rtol=1e-4)  # through the foot point


def test_position_that_no_characteristic_reaches_is_marked():
    # With u₀ = x² + 1, x = ξ + t·u₀(ξ)/dt is bounded from below for t > 0.
    out, _ = evaluate(burgers(1, 0, 1, dt=0.1 + np.log(2)), jnp.full_like(X, -5.0), jnp.ones_like(T))
    assert not out.found.any()


def test_characteristics_that_contract_to_less_than_a_quarter_are_penalised():
    determinant = jnp.asarray([2.0, 0.25, 0.05, -1.0])
    np.testing.assert_allclose(crossing_penalty(determinant), [0, 0, 0.04, 1.5625], rtol=1e-6)


def test_the_default_solver_leaves_little_for_coefficients_to_make_up_for():
    constant = Coefficient(jnp.ones_like, jnp.zeros_like, ("u",))
    logistic = Coefficient(lambda u: 2 * u - 2 * u**2, jnp.zeros_like, ("u",))
    model = EquationRegressor(
        lambda x: jnp.full_like(x, 0.05), EquationField(constant, logistic, 1), Scaling.identity(1, 1)
    )
    exact = 0.05 / (0.05 + 0.95 * np.exp(-2 * np.asarray(T)))
    np.testing.assert_allclose(model(X, T).u[:, 0], exact, rtol=3e-4)


@pytest.mark.slow
def test_known_coefficients_give_the_solution_of_their_equation():
    identity = Coefficient(lambda u: u, jnp.zeros_like, ("u",))
    model = EquationRegressor(
        initial_network=lambda x: 2 * x / 3, field=EquationField(identity, identity, 1), scaling=Scaling.identity(1, 1)
    )
    out = model(X, T, solver=Solver("midpoint", steps=40))
    assert out.found.all()
    np.testing.assert_allclose(out.u[:, 0], PaperProblem().exact(X, T), rtol=1e-3)


def test_a_learned_equation_is_a_problem_in_the_units_of_the_data():
    scaling = Scaling((10.0,), (4.0,), 2.0, (1.0,), (0.5,))
    model = EquationRegressor.build(scaling, width=4, key=jax.random.key(0))
    model = jax.tree.map(lambda leaf: leaf + 0.1, model)
    problem = model.problem((8.0, 12.0))
    x, t, u = jnp.array([[9.0], [11.0]]), jnp.array([0.5, 1.0]), jnp.array([0.8, 1.2])
    assert problem.domain == ((8.0, 12.0),)
    np.testing.assert_allclose(problem.velocity(x, t, u), model.velocity(x, t, u[:, None]))
    np.testing.assert_allclose(problem.source(x, t, u), model.source(x, t, u[:, None])[:, 0])
    np.testing.assert_allclose(problem.initial(x), model.initial(x)[:, 0])
    with pytest.raises(ValueError, match="no closed form"):
        problem.exact(x, t)
    with pytest.raises(ValueError, match="2 dimensions"):
        model.problem((0.0, 1.0), (0.0, 1.0))


def test_characteristics_of_a_learned_equation_spread_as_those_of_burgers_equation():
    model = EquationRegressor(
        initial_network=jnp.sin,
        field=EquationField(
            Coefficient(lambda u: u, jnp.zeros_like, ("u",)), Coefficient(jnp.zeros_like, jnp.zeros_like, ("u",)), 1
        ),
        scaling=Scaling((0.0,), (2.0,), 4.0, (0.0,), (1.0,)),
    )
    # In scaled units: x = ξ + t·sin ξ.
    foot, t = jnp.array([[1.0], [6.0]]), jnp.array([2.0, 3.0])
    np.testing.assert_allclose(model.spread(foot, t)[:, 0, 0], 1 + t / 4 * jnp.cos(foot[:, 0] / 2), rtol=1e-4)
    out, gradient = evaluate(model, 2 * (foot / 2 + (t / 4)[:, None] * jnp.sin(foot / 2)), t)
    np.testing.assert_allclose(out.foot_point, foot, rtol=1e-4)
    slope = jnp.cos(foot[:, 0] / 2) / (1 + t / 4 * jnp.cos(foot[:, 0] / 2)) / 2
    np.testing.assert_allclose(gradient[:, 0], slope, rtol=1e-3)


def test_coefficients_are_in_the_units_of_the_data():
    scaling = Scaling((10.0,), (4.0,), 2.0, (1.0,), (0.5,))
    model = eqx.filter_eval_shape(EquationRegressor.build, scaling, width=4, key=jax.random.key(0))
    ones = jax.tree.map(lambda leaf: np.ones(leaf.shape, leaf.dtype), model)
    zero, one = jnp.zeros((1, 1)), jnp.ones((1, 1))
    position, time = 10 * one, zero[0]
    np.testing.assert_allclose(ones.velocity(position, time, one), 2.0 * ones.field.velocity(zero, zero, zero))
    np.testing.assert_allclose(ones.source(position, time, one), 0.25 * ones.field.source(zero, zero, zero))


def test_baseline_of_the_paper_starts_at_zero_and_the_fair_one_need_not():
    scaling = Scaling((0.0,), (1.0,), 1.0, (3.0,), (2.0,))
    build = functools.partial(build_regressor, scaling=scaling, width=32, key=jax.random.key(0))
    paper, fair = build("node"), build("node-fair")
    assert isinstance(paper, TimeRegressor)
    assert count_parameters(paper) == 1185
    start = eqx.filter_jit(lambda model: model(X, jnp.zeros_like(T)).u)
    np.testing.assert_allclose(start(paper), 0, atol=1e-6)
    assert float(jnp.abs(start(fair)).min()) > 0.1


@pytest.mark.parametrize("method", ["c-node", "equation", "node", "node-fair", "mlp"])
def test_two_dimensions_and_two_values_have_their_shapes(method):
    @functools.partial(jax.eval_shape, x=X[:3] * jnp.ones(2), t=T[:3])
    def shapes(x, t):
        model = build_regressor(method, Scaling.identity(2, 2), width=4, key=jax.random.key(0))
        return model(x, t), model.characteristics(x, t[:2])

    result, characteristics = shapes
    assert result.u.shape == result.foot_point.shape == (3, 2)
    assert result.found.shape == result.jacobian_determinant.shape == (3,)
    assert characteristics.shape == (2, 3, 2)


def test_c_node_of_the_experiment_is_no_larger_than_the_papers():
    build = functools.partial(PathRegressor.build, Scaling.identity(1, 1), width=15)
    assert count_parameters(eqx.filter_eval_shape(build, key=jax.random.key(0))) == 755


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: build_regressor("resnet", Scaling.identity(1, 1), width=4, key=jax.random.key(0)), "node-fair"),
        (lambda: Coefficient.build((), Scaling.identity(1, 1), 1, width=4, key=jax.random.key(0)), "got nothing"),
        (lambda: Coefficient.build(("s",), Scaling.identity(1, 1), 1, width=4, key=jax.random.key(0)), "x, t and u"),
    ],
)
def test_bad_input_is_a_sentence(make, words):
    with pytest.raises(ValueError, match=words):
        make()
