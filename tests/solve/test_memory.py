"""What the adjoints cost in memory, by XLA's own figure."""

import equinox as eqx
import jax
import jax.numpy as jnp
import pytest

from charax.fields import PlainField
from charax.nn import mlp
from charax.solve import Solver


def gradient_memory(adjoint: str, steps: int) -> int:
    """Temporary bytes of a compiled gradient with respect to the parameters."""
    field, static = eqx.partition(PlainField(mlp([33, 64, 32], key=jax.random.key(0))), eqx.is_inexact_array)

    def loss(field, u0):
        return jnp.sum(Solver("heun", steps=steps, adjoint=adjoint).solve(eqx.combine(field, static), u0).u ** 2)

    compiled = jax.jit(jax.grad(loss)).lower(field, jnp.ones((256, 32))).compile()
    return compiled.memory_analysis().temp_size_in_bytes


@pytest.mark.parametrize(
    ("adjoint", "most"),
    [("backsolve", 1.05), ("checkpoint", 2.0)],  # constant, and no faster than the logarithm
)
def test_memory_of_a_gradient_from_50_to_1000_steps(adjoint, most):
    few, many = gradient_memory(adjoint, 50), gradient_memory(adjoint, 1000)
    assert few > 256 * 32 * 4  # the figure is there and counts at least one state
    assert many <= most * few
