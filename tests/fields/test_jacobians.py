"""Every Jacobian: `product` is its product, and the balance equations hold where `balance` claims it."""

from functools import cache
from typing import NamedTuple

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
KEYS = [jax.random.key(number) for number in range(3)]


def networks(inputs: int, outputs: int, images: bool, keys):
    if not images:
        return [mlp([inputs, 16, outputs], key=key) for key in keys]
    return [Chain(Conv(inputs, 6, key=key), Apply("tanh"), Conv(6, outputs, key=key)) for key in keys]


def separate(k: int, images: bool, *, reads_x: bool = False):
    return SeparateJacobian(networks(N + k * reads_x, N, images, KEYS[:k]), reads_x=reads_x)


def joint(k: int, images: bool, *, reads_x: bool = False):
    (body,) = networks(N + k * reads_x, 6, images, KEYS[:1])
    return JointJacobian(body, hidden=6, channels=N, characteristic_dim=k, reads_x=reads_x, key=KEYS[1])


def potential(k: int, images: bool):
    (network,) = networks(N + k, N, images, KEYS[:1])
    return PotentialJacobian(network, characteristic_dim=k)


def mixed_partial(k: int, images: bool):
    (network,) = networks(N + k, N, images, KEYS[:1])
    return MixedPartialJacobian(network, characteristic_dim=k)


BALANCED = {"separate": separate, "joint": joint, "potential": potential, "mixed-partial": mixed_partial}
FREE = {
    "separate of x": lambda k, images: separate(k, images, reads_x=True),
    "joint of x": lambda k, images: joint(k, images, reads_x=True),
}


def position_and_state(k: int, images: bool):
    random = np.random.default_rng(1)
    space = (SIDE, SIDE) if images else ()
    shapes = (BATCH, k), (BATCH, *space, N), (BATCH, k)
    return tuple(jnp.array(random.normal(size=shape), "float32") for shape in shapes)


class Evaluated(NamedTuple):
    """What a Jacobian returns for the same input."""

    columns: np.ndarray
    product: np.ndarray
    residual: np.ndarray


@cache
def evaluate(kind: str, images: bool) -> dict[int, Evaluated]:
    """A Jacobian of every dimension, in one compilation."""
    jacobians = {k: (BALANCED | FREE)[kind](k, images) for k in (1, 2, 3)}

    @jax.jit
    def run(inputs):
        return {
            k: Evaluated(jacobian(x, u), jacobian.product(x, u, a), balance_residual(jacobian, x, u))
            for (k, jacobian), (x, u, a) in zip(jacobians.items(), inputs, strict=True)
        }

    assert all(jacobian.characteristic_dim == k for k, jacobian in jacobians.items())
    return jax.device_get(run([position_and_state(k, images) for k in jacobians]))


@pytest.mark.parametrize("images", [False, True], ids=["vector", "image"])
@pytest.mark.parametrize("k", [1, 2, 3])
@pytest.mark.parametrize("kind", BALANCED | FREE)
def test_product_is_the_jacobian_times_the_velocity(kind, k, images):
    _, u, a = position_and_state(k, images)
    out = evaluate(kind, images)[k]
    assert out.columns.shape == (BATCH, k, *u.shape[1:])
    np.testing.assert_allclose(out.product, np.einsum("bk...,bk->b...", out.columns, a), atol=3e-6, rtol=1e-5)


@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("images", [False, True], ids=["vector", "image"])
@pytest.mark.parametrize("kind", BALANCED)
def test_balance_equations_hold(kind, images, k):
    assert BALANCED[kind](k, images).balance != "free"
    assert evaluate(kind, images)[k].residual <= 1e-5


@pytest.mark.parametrize("kind", FREE)
def test_balance_equations_do_not_hold_for_a_free_jacobian(kind):
    assert FREE[kind](3, False).balance == "free"
    assert evaluate(kind, False)[3].residual > 1e-2


@pytest.mark.parametrize("k", [1, 40])
def test_joint_product_is_right_for_both_orders_of_contraction(k):
    # One dimension of a vector builds J; forty contract the layer first.
    jacobian = joint(k, images=False)
    x, u, a = position_and_state(k, images=False)
    product, columns = jax.jit(lambda: (jacobian.product(x, u, a), jacobian(x, u)))()
    np.testing.assert_allclose(product, np.einsum("bkn,bk->bn", columns, a), atol=1e-5)


def test_joint_product_never_builds_the_k_times_larger_array():
    k = 64
    jacobian = joint(k, images=True)
    x, u, a = position_and_state(k, images=True)
    largest = max(
        variable.aval.size
        for equation in jax.make_jaxpr(jacobian.product)(x, u, a).eqns
        for variable in equation.outvars
    )
    assert largest < BATCH * k * SIDE * SIDE * N


def test_total_balance_detects_a_jacobian_that_only_drops_x():
    # u-only columns satisfy the paper's equations, but are the Jacobian of nothing unless they commute.
    x, u, _ = position_and_state(2, False)
    commuting = FunctionJacobian(lambda x, u: jnp.stack([u, 2 * u], axis=1), 2)
    residual = jax.jit(lambda: [balance_residual(j, x, u, total=True) for j in (separate(2, False), commuting)])
    wrong, right = residual()
    assert wrong > 1e-2
    assert right < 1e-6


@pytest.mark.usefixtures("x64")
def test_mixed_partial_is_the_repeated_integral_of_its_network():
    # For g(x, u) = u · cos(x1) · e^x2 the integrals are known: ∂u/∂x1 = u cos(x1) (e^x2 − 1), ∂u/∂x2 = u sin(x1) e^x2.
    def network(h):
        u, x = h[:, :1], h[:, 1:]
        return u * jnp.cos(x[:, :1]) * jnp.exp(x[:, 1:])

    x, u = np.array([[0.7, -1.2], [-2.0, 0.4]]), np.array([[1.5], [-0.5]])
    expected = np.stack(
        [u * np.cos(x[:, :1]) * (np.exp(x[:, 1:]) - 1), u * np.sin(x[:, :1]) * np.exp(x[:, 1:])], axis=1
    )
    jacobian = jax.jit(MixedPartialJacobian(network, characteristic_dim=2))
    np.testing.assert_allclose(jacobian(jnp.array(x), jnp.array(u)), expected, atol=1e-9)


@pytest.mark.usefixtures("x64")
def test_potential_is_the_gradient_of_its_network():
    network = lambda h: h[:, :1] * jnp.sin(h[:, 1:2]) * h[:, 2:] ** 2
    x, u = np.array([[0.7, -1.2]]), np.array([[1.5]])
    expected = np.stack([u * np.cos(x[:, :1]) * x[:, 1:] ** 2, 2 * u * np.sin(x[:, :1]) * x[:, 1:]], axis=1)
    jacobian = jax.jit(PotentialJacobian(network, characteristic_dim=2))
    np.testing.assert_allclose(jacobian(jnp.array(x), jnp.array(u)), expected, rtol=1e-12)


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
def test_zero_dimensions_are_refused(make):
    with pytest.raises(ValueError, match="characteristic_dim must be at least 1"):
        make()


def test_a_jacobian_of_x_needs_x():
    _, u, a = position_and_state(2, False)
    for make in (potential, mixed_partial, FREE["separate of x"]):
        with pytest.raises(ValueError, match="reads x"):
            make(2, False).product(None, u, a)
