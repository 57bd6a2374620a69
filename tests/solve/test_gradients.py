"""The three adjoints against each other and against finite differences, for all eight methods."""

import math
from collections.abc import Sequence

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from charax.fields import AbstractField, Condition, NetworkVelocity, PlainField
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
    inputs = 1 + channels + CONTEXT
    network = (
        Chain(Conv(inputs, 3, key=velocity_key), Apply("tanh"), Flatten(), Linear(3 * 9, K, key=velocity_key))
        if images
        else mlp([inputs, K], final="tanh", key=velocity_key)
    )

    def column(inputs, outputs, key):
        inputs = inputs if parts.characteristic else inputs + CONTEXT
        return Chain(Conv(inputs, outputs, key=key) if images else Linear(inputs, outputs, key=key), Apply("tanh"))

    return build_neural_ode(
        parts,
        lift,
        channels,
        velocity=NetworkVelocity(network, K, reads=("s", "u0", "context")),
        network=column,
        reads=("s", "u", "context"),
        key=key,
    )


TIGHT = {"rtol": 1e-10, "atol": 1e-10}
SOLVERS = {
    "checkpoint": {"method": "bosh3", **TIGHT},
    "backsolve": {"method": "dopri8", **TIGHT},
    "direct": {"method": "dopri8", **TIGHT, "max_steps": 16},
}
"""The fastest to compile: every stage is compiled for the first, and nested loops over `max_steps` for the last."""


class Together(AbstractField):
    """Independent fields as one, with their states side by side: one solve to compile for several methods."""

    fields: tuple[AbstractField, ...]
    channels: tuple[int, ...] = eqx.field(static=True)

    @property
    def characteristic_dim(self) -> int:
        return 0

    @property
    def reads(self):
        return frozenset().union(*(field.reads for field in self.fields))

    def __call__(self, s, x, u, z):
        split = lambda u: jnp.split(u, np.cumsum(self.channels)[:-1], axis=-1)
        u0 = [None] * len(self.fields) if z.u0 is None else split(z.u0)
        du = [f(s, None, u, Condition(u0, z.context))[1] for f, u, u0 in zip(self.fields, split(u), u0, strict=True)]
        return None, jnp.concatenate(du, axis=-1)


def problem(methods: Sequence[str], *, images: bool = False):
    """A scalar loss as a function of everything it can be differentiated by."""
    models = {method: model_of(method, images=images) for method in methods}
    parameters, static = eqx.partition(models, eqx.is_inexact_array)
    space = (3, 3) if images else ()
    random = np.random.default_rng(4)
    point = {
        "parameters": parameters,
        "data": jnp.array(random.normal(size=(3, *space, FEATURES))),
        "context": jnp.array(random.normal(size=(3, CONTEXT))),
        "s0": jnp.array(0.1),
        "s1": jnp.array(1.2),
    }

    def loss(point, solver: Solver):
        models = eqx.combine(point["parameters"], static).values()
        states = [model.lift(point["data"]) for model in models]
        field = Together(tuple(model.field for model in models), tuple(state.shape[-1] for state in states))
        u0 = jnp.concatenate(states, axis=-1)
        u = solver.solve(field, u0, context=point["context"], s0=point["s0"], s1=point["s1"]).u
        return jnp.sum(jnp.sin(u) * jnp.arange(1, 1 + u.size).reshape(u.shape) / u.size)

    def value_and_grad(**options):
        return jax.jit(jax.value_and_grad(lambda point: loss(point, Solver(**options))))

    return point, value_and_grad


def directional_derivative(loss, point, name: str) -> tuple[float, dict]:
    """Fourth-order central differences along a random direction in one of the arguments."""
    random, h = np.random.default_rng(5), 4e-3
    direction = jax.tree.map(lambda leaf: random.normal(size=leaf.shape), point[name])

    def shifted(step: float):
        shift = lambda leaf, d: jnp.asarray(np.asarray(leaf) + step * h * d)
        return float(loss(point | {name: jax.tree.map(shift, point[name], direction)}))

    return (shifted(-2) - 8 * shifted(-1) + 8 * shifted(1) - shifted(2)) / (12 * h), direction


def assert_same_gradient(ours, expected, *, atol: float):
    for (path, a), b in zip(jax.tree.leaves_with_path(ours), jax.tree.leaves(expected), strict=True):
        tolerance = atol * np.abs(b).max() + 1e-12
        np.testing.assert_allclose(a, b, rtol=1e-6, atol=tolerance, err_msg=jax.tree_util.keystr(path))


@pytest.mark.parametrize(
    ("methods", "images"),
    [
        pytest.param(("node", "c-node", "2nd-order+c-node"), False, id="some"),
        pytest.param(METHOD_NAMES, False, id="all", marks=pytest.mark.slow),
        pytest.param(METHOD_NAMES, True, id="all-images", marks=pytest.mark.slow),
    ],
)
def test_adjoints_agree_with_each_other_and_with_finite_differences(methods, images):
    point, value_and_grad = problem(methods, images=images)
    checkpoint, *others = (value_and_grad(**options, adjoint=adjoint) for adjoint, options in SOLVERS.items())
    expected = jax.device_get(checkpoint(point)[1])
    for other in others:
        assert_same_gradient(other(point)[1], expected, atol=1e-6)
    for name in point:
        difference, direction = directional_derivative(lambda point: checkpoint(point)[0], point, name)
        product = jax.tree.map(lambda gradient, d: np.sum(gradient * d), expected[name], direction)
        np.testing.assert_allclose(sum(jax.tree.leaves(product)), difference, rtol=1e-6, err_msg=name)


def test_fixed_steps_with_the_continuous_adjoint_have_the_gradient_of_fixed_steps():
    """With respect to everything, including s0, s1 and the context; both are exact up to the discretization error."""
    point, value_and_grad = problem(["c-node"])
    expected, ours = (
        value_and_grad(method="dopri5", steps=32, adjoint=adjoint)(point)[1] for adjoint in ("checkpoint", "backsolve")
    )
    assert_same_gradient(ours, jax.device_get(expected), atol=1e-7)


@pytest.mark.parametrize("shape", [(3,), (2, 2, 1)], ids=["vectors", "images"])
@pytest.mark.parametrize("steps", [32, 33, 200, 300, 1100])
def test_states_that_are_recomputed_give_the_gradient_of_those_that_are_kept(steps, shape):
    """One level of checkpoints, two with short and with long segments, and three; with and without a rest."""
    field = lambda rate: PlainField(lambda u: rate * jnp.sin(3 * u), reads=("u",))

    @jax.jit
    def gradients(rate, u0):
        end = lambda rate, u0, adjoint: Solver("midpoint", steps=steps, adjoint=adjoint).solve(field(rate), u0).u
        loss = lambda *point: jnp.sum(end(*point) ** 2)
        return [jax.grad(loss, (0, 1))(rate, u0, adjoint) for adjoint in ("checkpoint", "direct")]

    ours, expected = gradients(jnp.array(0.7), jnp.linspace(-1, 1, 2 * math.prod(shape)).reshape(2, *shape))
    assert_same_gradient(ours, jax.device_get(expected), atol=1e-12)


@pytest.mark.slow
def test_gradient_of_a_trajectory_agrees_between_checkpoint_and_backsolve():
    model = model_of("c-node")
    data, context, at = jnp.ones((2, FEATURES)), jnp.ones((2, CONTEXT)), jnp.array([0.2, 0.7, 1.0])

    def loss(data, adjoint):
        solver = Solver("tsit5", rtol=1e-9, atol=1e-9, adjoint=adjoint, max_steps=128)
        trajectory = model(data, context=context, at=at, solver=solver).trajectory
        return jnp.sum(trajectory**2 * jnp.array([1.0, 2.0, 3.0])[:, None, None])

    np.testing.assert_allclose(*(jax.grad(loss)(data, adjoint) for adjoint in ("checkpoint", "backsolve")), rtol=1e-5)


def test_direct_supports_forward_mode_and_second_derivatives():
    model = model_of("il-node+c-node", images=True)
    data, context = jnp.ones((1, 3, 3, FEATURES)), jnp.ones((1, CONTEXT))
    solver = Solver("euler", steps=2, adjoint="direct")
    end = lambda scale: jnp.sum(model(scale * data, context=context, solver=solver).u ** 2)

    @jax.jit
    def derivatives(point):
        gradient, second = jax.jvp(jax.grad(end), (point,), (jnp.array(1.0),))
        return jax.jvp(end, (point,), (jnp.array(1.0),))[1], gradient, second

    point, h = jnp.array(0.7), 1e-5
    forward, reverse, second = derivatives(point)
    np.testing.assert_allclose(forward, reverse, rtol=1e-10)
    difference = (derivatives(point + h)[1] - derivatives(point - h)[1]) / (2 * h)
    np.testing.assert_allclose(second, difference, rtol=1e-6)


def test_per_sample_gradient_is_the_joint_one():
    model = model_of("anode+c-node")
    data, context = jnp.array([[0.3, -1.0], [1.2, 0.1], [-0.7, 0.5]]), jnp.ones((3, CONTEXT))

    @eqx.filter_jit
    @jax.grad
    def gradient(data, solver):
        return jnp.sum(model(data, context=context, solver=solver).u ** 2)

    joint, per_sample = (
        gradient(data, Solver(**SOLVERS["checkpoint"], per_sample=per_sample)) for per_sample in (False, True)
    )
    np.testing.assert_allclose(joint, per_sample, rtol=1e-7)
