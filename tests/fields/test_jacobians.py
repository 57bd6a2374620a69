"""Every Jacobian: its product is its product, and the balance equations hold where they are said to."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from charax.fields import (
    FunctionJacobian,
    JointJacobian,
    MixedPartialJacobian,
    PotentialJacobian,
    SeparateJacobian,
    balance_residual,
)
from charax.nn import Apply, Chain, Conv, mlp

N, BATCH, SIDE = 3, 4, 5


def networks(inputs: int, outputs: int, images: bool, keys):
    if not images:
        return [mlp([inputs, 16, outputs], key=key) for key in keys]
    return [Chain(Conv(inputs, 6, key=key), Apply("tanh"), Conv(6, outputs, key=key)) for key in keys]


def separate(k: int, images: bool, *, reads_x: bool = False):
    return SeparateJacobian(
        networks(N + k * reads_x, N, images, jax.random.split(jax.random.key(0), k)), reads_x=reads_x
    )


def joint(k: int, images: bool, *, reads_x: bool = False):
    body_key, key = jax.random.split(jax.random.key(0))
    (body,) = networks(N + k * reads_x, 6, images, [body_key])
    return JointJacobian(body, hidden=6, channels=N, characteristic_dim=k, reads_x=reads_x, key=key)


def potential(k: int, images: bool):
    (network,) = networks(N + k, N, images, [jax.random.key(0)])
    return PotentialJacobian(network, characteristic_dim=k)


def mixed_partial(k: int, images: bool):
    (network,) = networks(N + k, N, images, [jax.random.key(0)])
    return MixedPartialJacobian(network, characteristic_dim=k)


BALANCED = {"separate": separate, "joint": joint, "potential": potential, "mixed-partial": mixed_partial}
FREE = {
    "separate of x": lambda k, images: separate(k, images, reads_x=True),
    "joint of x": lambda k, images: joint(k, images, reads_x=True),
}


def place_and_state(k: int, images: bool):
    keys = jax.random.split(jax.random.key(1), 3)
    space = (SIDE, SIDE) if images else ()
    return (
        jax.random.normal(keys[0], (BATCH, k)),
        jax.random.normal(keys[1], (BATCH, *space, N)),
        jax.random.normal(keys[2], (BATCH, k)),
    )


@pytest.mark.parametrize("images", [False, True], ids=["vector", "image"])
@pytest.mark.parametrize("k", [1, 2, 3])
@pytest.mark.parametrize("kind", BALANCED | FREE)
def test_product_is_the_jacobian_times_the_velocity(kind, k, images):
    jacobian = (BALANCED | FREE)[kind](k, images)
    x, u, a = place_and_state(k, images)
    columns = jacobian(x, u)
    assert columns.shape == (BATCH, k, *u.shape[1:])
    assert jacobian.characteristic_dim == k
    np.testing.assert_allclose(
        jacobian.product(x, u, a), jnp.einsum("bk...,bk->b...", columns, a), atol=3e-6, rtol=1e-5
    )


@pytest.mark.parametrize("k", [1, 40])
def test_joint_product_is_right_on_both_sides_of_its_choice_of_order(k):
    # One direction of a vector builds J; forty contract the layer first.
    jacobian = joint(k, images=False)
    x, u, a = place_and_state(k, images=False)
    np.testing.assert_allclose(jacobian.product(x, u, a), jnp.einsum("bkn,bk->bn", jacobian(x, u), a), atol=1e-5)


def test_joint_product_never_builds_the_k_times_larger_array():
    k = 64
    jacobian = joint(k, images=True)
    x, u, a = place_and_state(k, images=True)
    largest = max(
        variable.aval.size
        for equation in jax.make_jaxpr(jacobian.product)(x, u, a).eqns
        for variable in equation.outvars
    )
    assert largest < BATCH * k * SIDE * SIDE * N


@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("images", [False, True], ids=["vector", "image"])
@pytest.mark.parametrize("kind", BALANCED)
def test_balance_equations_hold(kind, images, k):
    jacobian = BALANCED[kind](k, images)
    x, u, _ = place_and_state(k, images)
    assert jacobian.balance != "free"
    assert balance_residual(jacobian, x, u) <= 1e-5


@pytest.mark.parametrize("kind", FREE)
def test_balance_equations_do_not_hold_for_a_free_jacobian(kind):
    jacobian = FREE[kind](3, False)
    x, u, _ = place_and_state(3, False)
    assert jacobian.balance == "free"
    assert balance_residual(jacobian, x, u) > 1e-2


def test_total_balance_sees_through_a_jacobian_that_only_drops_x():
    # u-only columns satisfy the paper's equations, but are the Jacobian of nothing unless they commute.
    x, u, _ = place_and_state(2, False)
    assert balance_residual(separate(2, False), x, u, total=True) > 1e-2
    commuting = FunctionJacobian(lambda x, u: jnp.stack([u, 2 * u], axis=1), 2)
    assert balance_residual(commuting, x, u, total=True) < 1e-6


@pytest.mark.usefixtures("x64")
def test_mixed_partial_is_the_repeated_integral_of_its_network():
    # For g(x, u) = u · cos(x1) · e^x2 the integrals are known: ∂u/∂x1 = u cos(x1) (e^x2 − 1), ∂u/∂x2 = u sin(x1) e^x2.
    def network(h):
        u, x = h[:, :1], h[:, 1:]
        return u * jnp.cos(x[:, :1]) * jnp.exp(x[:, 1:])

    x, u = jnp.array([[0.7, -1.2], [-2.0, 0.4]]), jnp.array([[1.5], [-0.5]])
    expected = jnp.stack(
        [u * jnp.cos(x[:, :1]) * (jnp.exp(x[:, 1:]) - 1), u * jnp.sin(x[:, :1]) * jnp.exp(x[:, 1:])], axis=1
    )
    np.testing.assert_allclose(MixedPartialJacobian(network, characteristic_dim=2)(x, u), expected, atol=1e-9)


@pytest.mark.usefixtures("x64")
def test_potential_is_the_gradient_of_its_network():
    network = lambda h: h[:, :1] * jnp.sin(h[:, 1:2]) * h[:, 2:] ** 2
    x, u = jnp.array([[0.7, -1.2]]), jnp.array([[1.5]])
    expected = jnp.stack([u * jnp.cos(x[:, :1]) * x[:, 1:] ** 2, 2 * u * jnp.sin(x[:, :1]) * x[:, 1:]], axis=1)
    np.testing.assert_allclose(PotentialJacobian(network, characteristic_dim=2)(x, u), expected, rtol=1e-12)


@pytest.mark.parametrize(
    "make",
    [
        lambda: SeparateJacobian([]),
        lambda: joint(0, False),
        lambda: PotentialJacobian(lambda h: h, characteristic_dim=0),
        lambda: MixedPartialJacobian(lambda h: h, characteristic_dim=0),
        lambda: FunctionJacobian(lambda x, u: u, 0),
    ],
)
def test_no_directions_at_all_are_refused(make):
    with pytest.raises(ValueError, match="characteristic_dim must be at least 1"):
        make()


def test_a_jacobian_of_x_without_x_says_so():
    _, u, a = place_and_state(2, False)
    for make in (potential, mixed_partial, FREE["separate of x"]):
        with pytest.raises(ValueError, match="reads x"):
            make(2, False).product(None, u, a)
