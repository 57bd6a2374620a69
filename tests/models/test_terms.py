"""Terms of equations as text."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from charax.models import EquationRegressor, Scaling, default_terms, parse_term
from charax.models._terms import measure_complexity


@pytest.mark.parametrize(
    ("text", "value"),
    [("1", 1.0), ("u^2", 9.0), ("u**2*x", 18.0), ("-u + 1/2", -2.5), ("sin(x - 2)", 0.0), ("abs(t - u)", 2.0)],
)
def test_a_term_has_the_value_of_its_formula(text, value):
    assert parse_term(text, ("x", "t", "u"))({"x": 2.0, "t": 1.0, "u": 3.0}) == pytest.approx(value)


@pytest.mark.parametrize(
    ("text", "words"),
    [("u +", "not a formula"), ("v", "'v'"), ("open(u)", "open"), ("u.real", "real"), ("x", "it has 'x'")],
)
def test_nothing_but_a_formula_of_the_variables_is_understood(text, words):
    with pytest.raises(ValueError, match=words):
        parse_term(text, ("u",))


def test_the_library_has_powers_products_and_waves():
    assert {"u**3", "x*u", "cos(x)", "sin(u)"} <= set(default_terms(("x", "u")))
    assert "cos(u)" not in default_terms(("x", "u"))


def test_weights_of_a_formula_are_coefficients_in_the_units_of_the_data():
    scaling = Scaling((10.0,), (4.0,), 2.0, (1.0,), (0.5,))
    terms = {"velocity_reads": ("x", "u"), "velocity_terms": ("x*u", "1"), "source_terms": ("u**2",)}
    model = EquationRegressor.build(scaling, width=2, **terms, key=jax.random.key(0))
    formula = model.field.velocity.formula
    unit = 4.0 / 2.0 / np.asarray(formula.scales)  # of a velocity, per weight
    weights = jnp.asarray([[3.0], [5.0]]) / unit[:, None]
    model = with_weights(model, weights)
    x, t, u = jnp.array([[7.0]]), jnp.array([0.3]), jnp.array([[2.0]])
    np.testing.assert_allclose(model.velocity(x, t, u), 3.0 * 7.0 * 2.0 + 5.0, rtol=1e-5)
    np.testing.assert_allclose(model.source(x, t, u), 0)


def with_weights(model, weights):

    return eqx.tree_at(lambda it: it.field.velocity.formula.weights, model, weights)


def test_simpler_terms_have_less_to_write():
    terms = ["1", "u", "u**2", "u**3", "sin(u)", "u*sin(x)"]
    assert [measure_complexity(term) for term in terms] == [0, 1, 2, 3, 4, 6]
