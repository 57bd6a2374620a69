"""What the adjoints cost in memory, by XLA's own figure."""

import math

import equinox as eqx
import jax
import jax.numpy as jnp
import pytest

from charax.fields import PlainField
from charax.models import SeriesDesign
from charax.nn import Apply, Chain, Conv, InstanceNorm, mlp
from charax.solve import Solver


def gradient_memory(adjoint: str, steps: int) -> int:
    """Temporary bytes of a compiled gradient with respect to the parameters."""
    network = mlp([32, 32], final="tanh", key=jax.random.key(0))
    field, static = eqx.partition(PlainField(network, reads=("u",)), eqx.is_inexact_array)

    def loss(field, u0):
        return jnp.sum(Solver("euler", steps=steps, adjoint=adjoint).solve(eqx.combine(field, static), u0).u ** 2)

    compiled = jax.jit(jax.grad(loss)).lower(field, jnp.ones((256, 32))).compile()
    return compiled.memory_analysis().temp_size_in_bytes


@pytest.mark.parametrize(("adjoint", "growth"), [("backsolve", lambda ratio: 1.0), ("checkpoint", lambda ratio: ratio)])
def test_memory_of_a_gradient_is_constant_or_grows_with_the_logarithm_of_the_steps(adjoint, growth):
    few = gradient_memory(adjoint, 50)
    assert few > 256 * 32 * 4  # the figure is there and counts at least one state
    for steps in (1_000, 20_000):
        assert gradient_memory(adjoint, steps) <= 1.1 * growth(math.log(steps) / math.log(50)) * few


@pytest.mark.parametrize("adjoint", ["checkpoint", "backsolve"])
def test_memory_of_a_gradient_along_an_observed_path_hardly_grows_with_the_steps(adjoint):
    """Between two observations of a series."""
    model = SeriesDesign("cde", width=8, state_dim=4).build(2, 2, key=jax.random.key(0))
    model, static = eqx.partition(model, eqx.is_inexact_array)

    def memory(steps: int) -> int:
        solver = Solver("midpoint", steps=steps, adjoint=adjoint)
        loss = lambda model, *series: eqx.combine(model, static)(*series, solver=solver).values.sum()
        series = jnp.zeros((16, 20)), jnp.zeros((16, 20, 2)), jnp.full(16, 20)
        return jax.jit(jax.grad(loss)).lower(model, *series).compile().memory_analysis().temp_size_in_bytes

    assert memory(16) < 1.3 * memory(1)


def test_direct_keeps_the_results_of_convolutions_and_little_else():
    keys = jax.random.split(jax.random.key(0), 2)
    network = Chain(Conv(2, 16, key=keys[0]), InstanceNorm(16), Apply("softplus"), Conv(16, 2, key=keys[1]))
    field, static = eqx.partition(PlainField(network, reads=("u",)), eqx.is_inexact_array)

    def memory(steps: int) -> int:
        solver = Solver("euler", steps=steps, adjoint="direct")
        loss = lambda field, u0: jnp.sum(solver.solve(eqx.combine(field, static), u0).u ** 2)
        compiled = jax.jit(jax.grad(loss)).lower(field, jnp.ones((4, 8, 8, 2))).compile()
        return compiled.memory_analysis().temp_size_in_bytes

    convolved, state = 4 * 8 * 8 * (16 + 2) * 4, 4 * 8 * 8 * 2 * 4
    each = (memory(30) - memory(10)) / 20
    assert 0.8 * convolved < each < 1.2 * (convolved + state)
