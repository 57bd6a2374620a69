"""The equation, what it reads, and what it refuses."""

import hypothesis
import hypothesis.strategies as st
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from charax.fields import (
    CharacteristicField,
    Condition,
    FunctionVelocity,
    NetworkVelocity,
    PlainField,
    SecondOrderField,
    SeparateJacobian,
    check_flow_field,
)
from charax.nn import mlp

KEY = jax.random.key(0)
SIZES = {"s": 1, "x": 2, "u": 3, "u0": 3, "context": 4}


def inputs(batch=5):
    random = np.random.default_rng(0)
    x, u, u0, context = (
        jnp.array(random.normal(size=(batch, SIZES[name])), "float32") for name in ("x", "u", "u0", "context")
    )
    return 0.3, x, u, Condition(u0, context)


@hypothesis.given(reads=st.sets(st.sampled_from(list(SIZES)), min_size=1))
def test_a_velocity_depends_on_exactly_what_it_reads(reads):
    velocity = NetworkVelocity(mlp([sum(SIZES[read] for read in reads), 8, 2], key=KEY), 2, reads=reads)

    @jax.jit
    def evaluate(s, x, u, z):
        before, changed = (
            velocity(s, x, u, z),
            {
                "s": velocity(s + 1, x, u, z),
                "x": velocity(s, x + 1, u, z),
                "u": velocity(s, x, u + 1, z),
                "u0": velocity(s, x, u, z._replace(u0=z.u0 + 1)),
                "context": velocity(s, x, u, z._replace(context=z.context + 1)),
            },
        )
        return {name: jnp.any(after != before) for name, after in changed.items()}

    assert {name for name, differs in evaluate(*inputs()).items() if differs} == reads


def test_the_equation_is_jacobian_times_velocity():
    velocity = NetworkVelocity(mlp([4, 8, 2], key=KEY), 2, reads=("s", "u"))
    jacobian = SeparateJacobian([mlp([3, 8, 3], key=key) for key in jax.random.split(KEY, 2)])
    s, x, u, z = inputs()
    dx, du = CharacteristicField(velocity, jacobian)(s, x, u, z)
    np.testing.assert_allclose(dx, velocity(s, x, u, z), rtol=1e-6)
    np.testing.assert_allclose(du, jnp.einsum("bkn,bk->bn", jacobian(x, u), dx), atol=1e-6)


def test_second_order_moves_the_position_by_the_velocity():
    field = SecondOrderField(PlainField(mlp([6, 8, 3], key=KEY), reads=("u",)))
    state = jax.random.normal(KEY, (5, 6))
    _, change = field(0.0, None, state, Condition())
    np.testing.assert_array_equal(change[:, :3], state[:, 3:])
    assert change.shape == state.shape


def test_second_order_refuses_what_cannot_be_positions_and_velocities():
    with pytest.raises(ValueError, match="PositionVelocity"):
        SecondOrderField(PlainField(lambda u: u, reads="u"))(0.0, None, jnp.ones((2, 3)), Condition())
    with pytest.raises(ValueError, match="half the channels"):
        SecondOrderField(PlainField(lambda u: u, reads="u"))(0.0, None, jnp.ones((2, 4)), Condition())


def test_velocity_and_jacobian_must_have_the_same_dimension():
    velocity = FunctionVelocity(lambda s, x, u, z: u, 2, reads=("u",))
    with pytest.raises(ValueError, match="characteristic_dim, but it is 2 for the velocity and 1"):
        CharacteristicField(velocity, SeparateJacobian([lambda u: u]))


@pytest.mark.parametrize("reads", [("s", "y"), ()])
def test_unknown_or_no_reads_are_refused(reads):
    with pytest.raises(ValueError, match="reads"):
        PlainField(lambda u: u, reads=reads)


def test_a_plain_field_cannot_read_x():
    with pytest.raises(ValueError, match="no characteristic"):
        PlainField(lambda u: u, reads=("x", "u"))


def test_zero_dimensions_are_refused_and_the_plain_field_is_named():
    with pytest.raises(ValueError, match="PlainField"):
        NetworkVelocity(lambda h: h, 0)


def test_missing_context_is_named():
    velocity = NetworkVelocity(lambda h: h, 2, reads=("context",))
    with pytest.raises(ValueError, match="context"):
        velocity(0.0, None, jnp.ones((2, 2)), Condition())


@pytest.mark.parametrize(("reads", "reads_x"), [(("s", "u0"), False), (("s", "x"), False), (("s", "u"), True)])
def test_a_field_that_is_not_a_flow_is_refused_as_one(reads, reads_x):
    velocity = FunctionVelocity(lambda s, x, u, z: u[:, :1], 1, reads=reads)
    field = CharacteristicField(velocity, SeparateJacobian([lambda u: u], reads_x=reads_x))
    with pytest.raises(ValueError, match="a flow's field may not read"):
        check_flow_field(field)


def test_a_field_of_s_u_and_context_may_be_a_flow():
    velocity = FunctionVelocity(lambda s, x, u, z: u[:, :1], 1, reads=("s", "u", "context"))
    field = CharacteristicField(velocity, SeparateJacobian([lambda u: u]))
    assert check_flow_field(field) is field
