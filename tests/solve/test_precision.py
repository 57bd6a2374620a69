"""Networks in bfloat16, the state in float32."""

import equinox as eqx
import jax
import jax.numpy as jnp
import pytest

from charax.models import neural_ode
from charax.solve import Solver

SOLVER = Solver("midpoint", steps=4)
LOW = Solver("midpoint", steps=4, precision="bfloat16")


@pytest.fixture(scope="module")
def model():
    return neural_ode("c-node", 3, width=8, key=jax.random.key(0))


@eqx.filter_jit
def end_and_gradient(model, u, solver):
    """The final state, and the gradient of its sum."""
    gradient = eqx.filter_grad(lambda model: model(u, solver=solver).u.sum())(model)
    return model(u, solver=solver).u, jax.flatten_util.ravel_pytree(eqx.filter(gradient, eqx.is_inexact_array))[0]


def test_bfloat16_changes_the_third_digit_and_not_the_types(model):
    u = jax.random.normal(jax.random.key(1), (16, 3))
    (full, full_gradient), (low, low_gradient) = (end_and_gradient(model, u, solver) for solver in (SOLVER, LOW))
    assert low.dtype == low_gradient.dtype == jnp.float32
    relative = lambda a, b: float(jnp.linalg.norm(a - b) / jnp.linalg.norm(b))
    assert 1e-5 < relative(low, full) < 0.02
    assert 1e-5 < relative(low_gradient, full_gradient) < 0.05


def test_an_unknown_precision_is_refused():
    with pytest.raises(ValueError, match="unknown precision 'float8'; use 'bfloat16'"):
        Solver(precision="float8")
