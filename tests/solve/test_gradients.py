"""The three adjoints against each other and against finite differences, for all eight methods."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from charax.fields import NetworkVelocity
from charax.models import METHOD_NAMES, Identity, InputLayer, NeuralODE, PositionVelocity, ZeroAugment, parse_method
from charax.models._methods import build_neural_ode
from charax.nn import Apply, Chain, Conv, Flatten, Linear, mlp
from charax.solve import Solver

pytestmark = pytest.mark.usefixtures("x64")

FEATURES, LIFTED, CONTEXT, K = 2, 3, 2, 2


def model_of(method: str, *, images: bool = False) -> NeuralODE:
    """Every part that can carry a gradient: a velocity of s, u0 and context, or a plain field of s, u and context."""
    parts = parse_method(method)
    lift_key, velocity_key, key = jax.random.split(jax.random.key(3), 3)
    layer = Conv(FEATURES, LIFTED, key=lift_key) if images else Linear(FEATURES, LIFTED, key=lift_key)
    lift, channels = {
        "node": (Identity(), FEATURES),
        "anode": (ZeroAugment(LIFTED - FEATURES), LIFTED),
        "il-node": (InputLayer(layer), LIFTED),
        "2nd-order": (PositionVelocity(InputLayer(layer)), 2 * LIFTED),
    }[parts.lift]
    seen = 1 + channels + CONTEXT
    network = (
        Chain(Conv(seen, 3, key=velocity_key), Apply("tanh"), Flatten(), Linear(3 * 9, K, key=velocity_key))
        if images
        else mlp([seen, 6, K], key=velocity_key)
    )

    def column(inputs, outputs, key):
        inputs = inputs if parts.characteristic else inputs + CONTEXT
        if images:
            return Chain(Conv(inputs, 4, key=key), Apply("tanh"), Conv(4, outputs, key=key))
        return mlp([inputs, 6, outputs], key=key)

    return build_neural_ode(
        parts,
        lift,
        channels,
        velocity=NetworkVelocity(network, K, reads=("s", "u0", "context")),
        network=column,
        reads=("s", "u", "context"),
        key=key,
    )


def problem(method: str, *, images: bool):
    """A scalar loss as a function of everything it can be differentiated by."""
    parameters, static = eqx.partition(model_of(method, images=images), eqx.is_inexact_array)
    space = (3, 3) if images else ()
    data_key, context_key = jax.random.split(jax.random.key(4))
    point = {
        "parameters": parameters,
        "data": jax.random.normal(data_key, (3, *space, FEATURES)),
        "context": jax.random.normal(context_key, (3, CONTEXT)),
        "s0": jnp.array(0.1),
        "s1": jnp.array(1.2),
    }

    def loss(point, adjoint, steps=None):
        # Enough steps for the tolerance, no more: the direct adjoint pays for every one it might make.
        solver = Solver("dopri8", rtol=1e-11, atol=1e-11, adjoint=adjoint, max_steps=64, steps=steps)
        model = eqx.combine(point["parameters"], static)
        u = model(point["data"], context=point["context"], s0=point["s0"], s1=point["s1"], solver=solver).u
        return jnp.sum(jnp.sin(u) * jnp.arange(1, 1 + u.size).reshape(u.shape) / u.size)

    return point, loss


def directional_derivative(loss, point, name: str) -> tuple[float, dict]:
    """Fourth-order central differences along a random direction in one of the arguments."""
    leaves, structure = jax.tree.flatten(point[name])
    keys = jax.random.split(jax.random.key(5), len(leaves))
    direction = jax.tree.unflatten(
        structure, [jax.random.normal(key, leaf.shape) for key, leaf in zip(keys, leaves, strict=True)]
    )
    h = 1e-3

    def moved(step: float):
        return loss(point | {name: jax.tree.map(lambda leaf, d: leaf + step * h * d, point[name], direction)})

    return (moved(-2) - 8 * moved(-1) + 8 * moved(1) - moved(2)) / (12 * h), direction


QUICK = ("node", "c-node", "2nd-order+c-node")
"""The methods that are always tested; all of them are with the slow tests, as vectors and as images."""


@pytest.mark.parametrize(
    ("method", "images"),
    [
        *(
            pytest.param(method, False, id=f"{method}-vector", marks=() if method in QUICK else pytest.mark.slow)
            for method in METHOD_NAMES
        ),
        *(pytest.param(method, True, id=f"{method}-image", marks=pytest.mark.slow) for method in METHOD_NAMES),
    ],
)
def test_adjoints_agree_with_each_other_and_with_finite_differences(method, images):
    others = ("backsolve", "direct")
    point, loss = problem(method, images=images)
    gradients = {
        adjoint: jax.jit(jax.grad(lambda point, adjoint=adjoint: loss(point, adjoint)))(point)
        for adjoint in ("checkpoint", *others)
    }
    for name in point:
        reference = gradients["checkpoint"][name]
        for adjoint in others:
            for ours, theirs in zip(jax.tree.leaves(gradients[adjoint][name]), jax.tree.leaves(reference), strict=True):
                np.testing.assert_allclose(ours, theirs, rtol=1e-6, atol=1e-6 * np.abs(theirs).max() + 1e-12)
        difference, direction = directional_derivative(jax.jit(lambda point: loss(point, "checkpoint")), point, name)
        product = jax.tree.map(lambda gradient, d: jnp.sum(gradient * d), reference, direction)
        np.testing.assert_allclose(sum(jax.tree.leaves(product)), difference, rtol=1e-6, err_msg=name)


def test_equal_steps_solved_back_have_the_gradient_of_equal_steps():
    """With respect to everything, s0 and s1 and the context among them; both are exact but for the steps' error."""
    point, loss = problem("c-node", images=False)
    kept, solved_back = (
        jax.jit(jax.grad(lambda point, adjoint=adjoint: loss(point, adjoint, 12)))(point)
        for adjoint in ("checkpoint", "backsolve")
    )
    for ours, theirs in zip(jax.tree.leaves(solved_back), jax.tree.leaves(kept), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-6, atol=1e-7 * np.abs(theirs).max() + 1e-12)


@pytest.mark.slow
def test_gradient_of_a_trajectory_agrees_between_checkpoint_and_backsolve():
    model = model_of("c-node")
    data, context, at = jnp.ones((2, FEATURES)), jnp.ones((2, CONTEXT)), jnp.array([0.2, 0.7, 1.0])

    def loss(data, adjoint):
        solver = Solver("tsit5", rtol=1e-9, atol=1e-9, adjoint=adjoint, max_steps=128)
        path = model(data, context=context, at=at, solver=solver).trajectory
        return jnp.sum(path**2 * jnp.array([1.0, 2.0, 3.0])[:, None, None])

    np.testing.assert_allclose(*(jax.grad(loss)(data, adjoint) for adjoint in ("checkpoint", "backsolve")), rtol=1e-5)


def test_direct_supports_forward_mode_and_second_derivatives():
    model = model_of("il-node+c-node", images=True)
    data, context = jnp.ones((1, 3, 3, FEATURES)), jnp.ones((1, CONTEXT))
    solver = Solver("euler", steps=2, adjoint="direct")
    end = lambda scale: jnp.sum(model(scale * data, context=context, solver=solver).u ** 2)
    point = jnp.array(0.7)
    forward, reverse = jax.jvp(end, (point,), (jnp.array(1.0),))[1], jax.grad(end)(point)
    np.testing.assert_allclose(forward, reverse, rtol=1e-10)
    second = jax.jvp(jax.grad(end), (point,), (jnp.array(1.0),))[1]
    h = 1e-5
    np.testing.assert_allclose(second, (jax.grad(end)(point + h) - jax.grad(end)(point - h)) / (2 * h), rtol=1e-6)


def test_per_sample_gradient_is_the_joint_one():
    model = model_of("anode+c-node")
    data, context = jax.random.normal(jax.random.key(0), (3, FEATURES)), jnp.ones((3, CONTEXT))
    gradients = [
        jax.grad(
            lambda data, per_sample=per_sample: jnp.sum(
                model(data, context=context, solver=Solver("tsit5", rtol=1e-10, atol=1e-10, per_sample=per_sample)).u
                ** 2
            )
        )(data)
        for per_sample in (False, True)
    ]
    np.testing.assert_allclose(gradients[0], gradients[1], rtol=1e-7)
