"""What is known about an equation before it is learned: its source, its initial value, its period, its flux."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from charax.models import EquationRegressor, Scaling, default_terms, flux_terms
from charax.models._equation_field import Formula

SCALING = Scaling((1.0,), (2.0,), 4.0, (0.5,), (0.25,))
X, T, U = jnp.linspace(-3, 5, 9)[:, None], jnp.linspace(0, 4, 9), jnp.linspace(-1, 2, 9)[:, None]


def build(scaling: Scaling = SCALING, **structure) -> EquationRegressor:
    """A model with large random weights, so that nothing holds by chance."""
    model = EquationRegressor.build(scaling, width=6, key=jax.random.key(0), **structure)
    random = np.random.default_rng(0)
    draw = lambda leaf: jnp.asarray(random.normal(size=leaf.shape), leaf.dtype) if eqx.is_inexact_array(leaf) else leaf
    return jax.tree.map(draw, model)


@pytest.mark.parametrize("given", [("x*t - 0.2*u",), lambda x, t, u: x * t[:, None] - 0.2 * u])
def test_a_known_source_is_what_was_given(given):
    model = build(known_source=given)
    np.testing.assert_allclose(model.source(X, T, U), X * T[:, None] - 0.2 * U, rtol=1e-4, atol=1e-5)
    assert not jax.tree.leaves(model.field.source)


@pytest.mark.parametrize("given", [("2 + sin(x)",), lambda x: 2 + jnp.sin(x)])
def test_a_known_initial_value_is_what_was_given(given):
    model = build(known_initial=given)
    np.testing.assert_allclose(model.initial(X), 2 + np.sin(X), rtol=1e-5)
    assert not jax.tree.leaves(model.initial_network)


def test_several_values_have_a_formula_each():
    scaling = Scaling.identity(1, 2)
    u = jnp.concatenate([U, 2 * U], axis=1)
    source = build(scaling, known_source=("u2", "-u1")).source(X, T, u)
    np.testing.assert_allclose(source, jnp.stack([u[:, 1], -u[:, 0]], axis=1), rtol=1e-6)
    with pytest.raises(ValueError, match="2 values, so give a formula for each"):
        build(scaling, known_source=("u1",))


def test_everything_on_a_circle_has_its_period():
    model = build(period=(3.0,), velocity_reads=("x", "u"))
    np.testing.assert_allclose(model.initial(X + 3), model.initial(X), atol=1e-5)
    np.testing.assert_allclose(model.velocity(X + 6, T, U), model.velocity(X, T, U), atol=1e-4)
    assert np.ptp(model.initial(X)) > 0.1


def test_terms_on_a_circle_are_waves_of_its_length():
    assert default_terms(("x", "u"), period={"x": 2 * np.pi})[-2:] == ("sin(x)", "cos(x)")
    assert default_terms(("x",), period={"x": 1.0}) == ("1", "sin(6.28319*x)", "cos(6.28319*x)")


@pytest.mark.parametrize(
    ("shape", "holds"),
    [
        ("increasing", lambda a: (a >= 0).all()),
        ("decreasing", lambda a: (a <= 0).all()),
        ("convex", lambda a: (np.diff(a) >= 0).all()),
        ("concave", lambda a: (np.diff(a) <= 0).all()),
    ],
)
def test_a_flux_has_the_shape_that_is_asked_for(shape, holds):
    u = jnp.linspace(-2, 3, 101)[:, None]
    speed = lambda model: np.asarray(model.velocity(jnp.zeros_like(u), jnp.zeros(101), u))[:, 0]
    assert holds(speed(build(flux=shape)))
    assert np.ptp(speed(build(flux=shape))) > 0.1
    assert not holds(speed(build(flux="any")))


def test_the_velocity_is_the_derivative_of_the_flux():
    model, u = build(flux="any"), jnp.linspace(-1, 2, 7)
    slope = jax.vmap(jax.grad(lambda u: model.flux(u[None])[0, 0]))(u)
    speed = model.velocity(jnp.zeros((7, 1)), jnp.zeros(7), u[:, None])[:, 0]
    np.testing.assert_allclose(slope, speed, rtol=1e-3, atol=1e-3)
    assert model.flux(jnp.zeros(1)) == 0


def test_the_terms_of_a_flux_are_evaluated_as_derivatives():
    formula = Formula.build(flux_terms(), ("u",), SCALING, 1, of_flux=True)
    u = SCALING.unscale_value(U)
    values = formula.evaluate(X, T[:, None], U) * jnp.asarray(formula.scales)
    expected = jnp.concatenate([jnp.ones_like(u), 2 * u, 3 * u**2, 4 * u**3, -jnp.sin(u)], axis=1)
    np.testing.assert_allclose(values, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("structure", "words"),
    [
        ({"flux": "any", "velocity_reads": ("x", "u")}, "reads u only"),
        ({"period": (1.0, 2.0)}, "a period for each of them, got 2"),
        ({"period": (0.0,)}, "above 0"),
        ({"known_initial": ("u",)}, "'u'"),
    ],
)
def test_what_does_not_fit_is_named(structure, words):
    with pytest.raises(ValueError, match=words):
        build(**structure)


def test_only_a_velocity_of_u_has_a_flux():
    with pytest.raises(ValueError, match="only a velocity a"):
        build(velocity_reads=("x", "u")).flux(jnp.ones(2))
