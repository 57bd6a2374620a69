"""Flows of images: exact through all scales, grey levels, and the paper's sizes."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from charax.models.flows import (
    PAPER_FLOWS,
    ExactTrace,
    Hutchinson,
    ImageFlowDesign,
    Pixels,
    paper_flow_design,
    plan_scales,
)
from charax.solve import Solver


def log_dets(function, u):
    """log|det| of the autodiff Jacobian of a map of one sample, for a batch."""
    size = u[0].size
    jacobians = jax.vmap(jax.jacrev(lambda one: function(one[None])[0].reshape(-1)))(u).reshape(-1, size, size)
    return jnp.linalg.slogdet(jacobians)[1]


@pytest.mark.slow
@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize(
    ("method", "shape"),
    [
        ("c-node", (4, 4, 1)),
        ("node", (4, 4, 3)),
        ("node", (8, 8, 1)),
        ("c-node", (8, 8, 1)),
        ("c-node", (8, 8, 3)),
    ],
)
def test_density_of_images_is_exact_through_all_scales(method, shape):
    flow = ImageFlowDesign(method, width=4, depth=2, levels=17, alpha=0.01).build(shape, key=jax.random.key(0))
    x = jax.random.uniform(jax.random.key(1), (2, *shape), minval=0.1, maxval=0.9)
    solver = Solver("tsit5", rtol=1e-7, atol=1e-7)
    there = jax.jit(lambda x: flow.forward(x, solver=solver, trace=ExactTrace()))(x)
    expected = log_dets(lambda x: flow.forward(x, solver=solver, trace=Hutchinson(), key=jax.random.key(0)).u, x)
    np.testing.assert_allclose(there.log_det, expected, atol=1e-5)
    back = jax.jit(lambda z: flow.inverse(z, solver=solver, trace=ExactTrace()))(there.u)
    np.testing.assert_allclose(back.u, x, atol=1e-5)
    np.testing.assert_allclose(back.log_det, -there.log_det, atol=1e-4)
    np.testing.assert_allclose(back.log_prob, there.log_prob, atol=1e-4)


@pytest.mark.parametrize("levels", [2, 17, 256])
def test_uniform_noise_costs_the_logarithm_of_its_levels(levels):
    """bits/dim of images that are uniform over their levels under the uniform density is log2(levels)."""
    assert np.isclose(Pixels(levels).bits_per_dim(jnp.zeros(1), 64)[0], np.log2(levels))


@pytest.mark.usefixtures("x64")
def test_logit_has_the_log_determinant_of_its_derivative():
    pixels, x = Pixels(256, alpha=0.05), np.linspace(0.0, 1.0, 16).reshape(1, 4, 4, 1)

    @jax.jit
    def both(x):
        derivative = jax.vmap(jax.grad(lambda one: pixels.logit(one.reshape(1, 1, 1, 1))[0].sum()))(x.reshape(-1))
        return pixels.logit(x)[1][0], jnp.log(derivative).sum()

    np.testing.assert_allclose(*both(x), rtol=1e-10)


@pytest.mark.parametrize(("side", "scales"), [(4, 1), (8, 2), (14, 2), (28, 3), (32, 4)])
def test_scales_are_those_of_ffjord(side, scales):
    assert len(plan_scales((side, side, 3))) == scales


@pytest.mark.parametrize(
    ("dataset", "shape"), [("mnist", (28, 28, 1)), ("cifar10", (32, 32, 3)), ("svhn", (32, 32, 3))]
)
@pytest.mark.parametrize("method", ["node", "c-node"])
def test_flows_of_the_paper_have_its_number_of_parameters(dataset, shape, method):
    parameters = paper_flow_design(dataset, method).count(shape)
    assert abs(parameters / PAPER_FLOWS[dataset][method].parameters - 1) < 0.02


@functools.cache
def _small_flow():
    return ImageFlowDesign("node", width=1, depth=1).build((4, 4, 1), key=jax.random.key(0))


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: plan_scales((27, 27, 1)), "27x27 pixels cannot be squeezed"),
        (lambda: plan_scales((28,)), "height, width, channels"),
        (lambda: Pixels(1), "at least 2 grey levels"),
        (lambda: Pixels(17).dequantise(jnp.full((1, 4, 4, 1), 17.0), key=jax.random.key(0)), "from 0 to 16"),
        (lambda: _small_flow().evaluate(jnp.zeros((3, 4, 4, 1)), context=jnp.eye(3), key=jax.random.key(0)), "context"),
        (lambda: _small_flow().sample(3, context=jnp.eye(3), key=jax.random.key(0)), "takes no context"),
        (lambda: _small_flow().evaluate(jnp.zeros((3, 4, 4, 1))), "needs key="),
        (lambda: _small_flow().forward(jnp.zeros((3, 8, 8, 1))), "images of shape"),
    ],
)
def test_bad_input_is_a_sentence(make, words):
    with pytest.raises(ValueError, match=words):
        make()
