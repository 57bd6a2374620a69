"""Flows of images with one field: exact densities, matching, and guided samples."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from charax.fields import Condition
from charax.models.flows import (
    ExactTrace,
    GuidedField,
    Hutchinson,
    SingleScaleFlow,
    SingleScaleFlowDesign,
    hide_context,
    state_shape,
)
from charax.models.matching import FlowMatching
from charax.solve import Solver

SHAPE = (4, 4, 1)
SOLVER = Solver("dopri5", rtol=1e-7, atol=1e-7)
MEAN, STD = tuple(np.linspace(-1, 1, 16).tolist()), tuple(np.linspace(0.5, 2, 16).tolist())


def build(method: str, *, classes: int = 0) -> SingleScaleFlow:
    design = SingleScaleFlowDesign(
        method,
        width=4,
        characteristic_dim=2,
        velocity_width=4,
        classes=classes,
        levels=17,
        alpha=0.01,
        mean=MEAN,
        std=STD,
    )
    return design.build(SHAPE, key=jax.random.key(0))


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("method", [pytest.param("node", marks=pytest.mark.slow), "c-node"])
def test_log_densities_are_those_of_the_autodiff_jacobian(method):
    """Through the logit, the standardization of every pixel, the squeeze and the solve."""
    flow = build(method)
    x = jax.random.uniform(jax.random.key(1), (2, *SHAPE), minval=0.1, maxval=0.9)

    @jax.jit
    def both(x):
        result = flow.forward(x, solver=SOLVER, trace=ExactTrace())
        end = lambda one: (
            flow.flow.forward(flow.scale_pixels(one[None])[0], solver=Solver("dopri5", steps=16)).u[0].ravel()
        )
        return result, jax.vmap(jax.jacfwd(end))(x).reshape(2, 16, 16)

    result, jacobians = both(x)
    np.testing.assert_allclose(result.log_det, jnp.linalg.slogdet(jacobians)[1], atol=1e-5)
    base = -0.5 * (result.u**2).sum((1, 2, 3)) - 8 * np.log(2 * np.pi)
    np.testing.assert_allclose(result.log_prob, base + result.log_det, atol=1e-6)


def test_matching_is_that_of_the_standardized_logits():
    flow = build("node")
    images = jnp.asarray(np.random.default_rng(0).integers(0, 17, (8, *SHAPE)), jnp.float32)
    key = jax.random.key(3)
    noise_key, own_key = jax.random.split(key)
    logits, _ = flow.pixels.logit(flow.pixels.dequantise(images, key=noise_key))
    state = (logits - jnp.asarray(MEAN).reshape(SHAPE)) / jnp.asarray(STD).reshape(SHAPE)
    squares = state.reshape(8, 2, 2, 2, 2, 1).transpose(0, 1, 3, 5, 2, 4).reshape(8, 2, 2, 4)
    expected = flow.flow.match(squares, FlowMatching(), key=own_key)
    np.testing.assert_allclose(flow.match(images, FlowMatching(), key=key), expected, rtol=1e-5)


def test_samples_are_grey_levels_whose_logits_come_from_the_base_distribution():
    flow = build("c-node")
    drawn = flow.sample(6, key=jax.random.key(0), solver=Solver("midpoint", steps=2))
    assert drawn.shape == (6, *SHAPE)
    assert set(np.unique(drawn)) <= set(range(17))
    with pytest.raises(ValueError, match=r"images of shape \(4, 4, 1\)"):
        flow.forward(jnp.full((2, 5, 5, 1), 0.5))
    with pytest.raises(ValueError, match="needs key"):
        flow.evaluate(drawn)


def test_a_guided_field_is_moved_away_from_that_of_all_classes():
    field = build("node", classes=3).flow.field
    u, context = jax.random.normal(jax.random.key(0), (2, *state_shape(SHAPE))), jnp.eye(3)[:2]
    rate = lambda field, context: field(0.3, None, u, Condition(None, context))[1]
    own, every = rate(field, context), rate(field, jnp.zeros_like(context))
    assert float(jnp.abs(own - every).max()) > 1e-4
    np.testing.assert_allclose(rate(GuidedField(field, 1.5), context), 2.5 * own - 1.5 * every, rtol=1e-4, atol=1e-5)
    flow, options = build("node", classes=3), {"key": jax.random.key(0), "solver": Solver("euler", steps=2)}
    plain, guided = (flow.flow.sample(2, context=context, guidance=weight, **options) for weight in (0.0, 4.0))
    assert float(jnp.abs(plain - guided).max()) > 1e-3
    with pytest.raises(ValueError, match="reads classes"):
        build("node").sample(2, guidance=1.0, **options)
    with pytest.raises(ValueError, match="guidance must be at least 0"):
        flow.sample(2, context=context, guidance=-1.0, **options)


def test_hidden_contexts_are_zero_and_the_others_are_as_they_were():
    context = jnp.arange(1.0, 2_001.0).reshape(1_000, 2)
    hidden = hide_context(context, 0.3, key=jax.random.key(0))
    rows = np.asarray(hidden == 0).all(axis=1)
    assert 0.25 < rows.mean() < 0.35
    np.testing.assert_array_equal(hidden[~rows], context[~rows])


def test_more_probes_have_a_smaller_error():
    flow = build("c-node")
    images = jnp.asarray(np.random.default_rng(0).integers(0, 17, (2, *SHAPE)), jnp.float32)
    x = flow.pixels.dequantise(images, key=jax.random.key(0))
    solver = Solver("midpoint", steps=2)
    exact = flow.forward(x, solver=solver, trace=ExactTrace()).log_prob

    def spread(probes: int) -> float:
        one = lambda key: flow.forward(x, solver=solver, trace=Hutchinson(probes), key=key).log_prob - exact
        return float(jnp.std(jax.jit(jax.vmap(one))(jax.random.split(jax.random.key(1), 64))))

    assert spread(16) < 0.4 * spread(1)


def test_moments_must_be_those_of_every_pixel():
    with pytest.raises(ValueError, match="mean must have 16 numbers"):
        SingleScaleFlowDesign("node", width=4, mean=(0.0,) * 3).build(SHAPE, key=jax.random.key(0))
    with pytest.raises(ValueError, match="above 0"):
        SingleScaleFlowDesign("node", width=4, std=(0.0,) * 16).build(SHAPE, key=jax.random.key(0))
    with pytest.raises(ValueError, match="cannot be one"):
        SingleScaleFlowDesign("anode", width=4).build(SHAPE, key=jax.random.key(0))
