"""Learned PDEs with known networks inside: they then solve known equations."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from charax.fields import SeparateJacobian
from charax.models import EquationRegressor, PathRegressor, PathVelocity, Scaling, TimeRegressor
from charax.models._equation_field import Coefficient, EquationField
from charax.nn import count_parameters
from charax.pde import PaperProblem
from charax.solve import Solver

X, T = jnp.linspace(1, 2, 7)[:, None], jnp.linspace(0, 1, 7)


def burgers_path(slope: float) -> PathRegressor:
    """u = slope·ξ along paths that go at speed u: Burgers' equation, whose value does not change on the way."""
    one = float(jnp.log(jnp.expm1(0.9)))  # softplus of it is 0.9, and 0.1 is the least
    return PathRegressor(
        initial=lambda x: slope * x,
        velocity=PathVelocity(lambda seen: jnp.stack([seen[:, 0], jnp.full(len(seen), one)], axis=1), dim=1),
        jacobian=SeparateJacobian([lambda seen: jnp.zeros_like(seen[:, :1])] * 2, reads_x=True),
        scaling=Scaling.identity(1, 1),
    )


def test_paths_carry_the_initial_value_as_burgers_equation_does():
    out = burgers_path(0.5)(X, T)
    assert out.found.all()
    np.testing.assert_allclose(out.u, 0.5 * X / (1 + 0.5 * T[:, None]), rtol=1e-5)
    np.testing.assert_allclose(out.foot_point, X / (1 + 0.5 * T[:, None]), rtol=1e-5)


def test_gradient_through_the_foot_point_agrees_with_the_closed_form():
    slope = lambda x: burgers_path(0.5)(x, T).u.sum()
    np.testing.assert_allclose(jax.grad(slope)(X)[:, 0], 0.5 / (1 + 0.5 * T), rtol=1e-4)


def test_place_that_no_path_reaches_is_marked():
    # Paths from both sides meet in the origin at t = 1 and never come back there.
    model = PathRegressor(
        initial=lambda x: x**2 + 1,
        velocity=PathVelocity(lambda seen: jnp.stack([seen[:, 0], jnp.zeros(len(seen))], axis=1), dim=1),
        jacobian=SeparateJacobian([lambda seen: jnp.zeros_like(seen[:, :1])] * 2, reads_x=True),
        scaling=Scaling.identity(1, 1),
    )
    assert model(jnp.array([[-5.0]]), jnp.array([1.0])).found.tolist() == [False]


@pytest.mark.slow
def test_known_coefficients_give_the_solution_of_their_equation():
    identity = Coefficient(lambda u: u, jnp.zeros_like, ("u",))
    model = EquationRegressor(
        initial_network=lambda x: 2 * x / 3, field=EquationField(identity, identity, 1), scaling=Scaling.identity(1, 1)
    )
    out = model(X, T, solver=Solver("midpoint", steps=40))
    assert out.found.all()
    np.testing.assert_allclose(out.u[:, 0], PaperProblem().exact(X, T), rtol=1e-3)


def test_coefficients_are_told_in_the_units_of_the_data():
    scaling = Scaling((10.0,), (4.0,), 2.0, (1.0,), (0.5,))
    model = EquationRegressor.build(scaling, width=4, key=jax.random.key(0))
    ones = jax.tree.map(jnp.ones_like, model)
    hat = ones.field.velocity(jnp.zeros((1, 1)), jnp.zeros((1, 1)), jnp.zeros((1, 1)))
    np.testing.assert_allclose(ones.velocity(jnp.full((1, 1), 10.0), jnp.zeros(1), jnp.ones((1, 1))), 2.0 * hat)


def test_baseline_of_the_paper_starts_at_zero_and_the_fair_one_need_not():
    build = lambda fair: TimeRegressor.build(
        Scaling((0.0,), (1.0,), 1.0, (3.0,), (2.0,)), width=32, fair=fair, key=jax.random.key(0)
    )
    assert count_parameters(build(False)) == 1185
    np.testing.assert_allclose(build(False)(X, 0 * T).u, 0, atol=1e-6)
    assert float(jnp.abs(build(True)(X, 0 * T).u).min()) > 0.1


@pytest.mark.slow
def test_two_dimensions_and_two_values_have_their_shapes():
    model = PathRegressor.build(Scaling.identity(2, 2), width=4, key=jax.random.key(0))
    assert model(jnp.ones((3, 2)), jnp.ones(3)).u.shape == (3, 2)
    assert model.characteristics(jnp.ones((5, 2)), jnp.array([0.0, 1.0])).shape == (2, 5, 2)


def test_c_node_of_the_experiment_is_no_larger_than_the_papers():
    assert count_parameters(PathRegressor.build(Scaling.identity(1, 1), width=15, key=jax.random.key(0))) == 755
