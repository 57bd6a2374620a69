"""Maps of single pixels: invertible, with the log-determinant of autodiff; and what they make of images."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import kstest

from charax.models.flows import NormalQuantiles, Pixels, SingleScaleFlowDesign, StandardizedLogits
from charax.solve import Solver
from charax.tasks.density import pixel_histograms

SHAPE = (2, 2, 1)
EDGES = (0.0, 0.25, 0.5, 1.0)
PROBABILITIES = ((0.98, 0.01, 0.01), (0.2, 0.3, 0.5), (1e-5, 1e-5, 1 - 2e-5), (0.4, 1e-3, 0.599))
SCALINGS = {
    "logits": StandardizedLogits(SHAPE, Pixels(), mean=(0.0, 1.0, -1.0, 2.0), std=(1.0, 2.0, 0.5, 1.0)),
    "quantiles": NormalQuantiles(SHAPE, edges=EDGES, probabilities=PROBABILITIES),
}


@pytest.mark.usefixtures("x64")
@settings(max_examples=30, deadline=None)
@given(pixels=st.lists(st.floats(0.001, 0.999), min_size=4, max_size=4))
@pytest.mark.parametrize("name", SCALINGS)
def test_every_image_comes_back(name, pixels):
    x = jnp.asarray(pixels, jnp.float64).reshape(1, *SHAPE)
    y, _ = SCALINGS[name].forward(x)
    np.testing.assert_allclose(SCALINGS[name].inverse(y), x, atol=1e-8)


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("name", SCALINGS)
def test_log_determinants_are_those_of_autodiff(name):
    x = jax.random.uniform(jax.random.key(0), (5, *SHAPE), jnp.float64)
    map_one = lambda one: SCALINGS[name].forward(one[None])[0].ravel()
    jacobians = jax.vmap(jax.jacfwd(map_one))(x).reshape(5, 4, 4)
    np.testing.assert_allclose(SCALINGS[name].forward(x)[1], jnp.linalg.slogdet(jacobians)[1], atol=1e-8)


def test_pixels_become_normal():
    """Images that have the histograms, which are far from normal."""
    generator = np.random.default_rng(0)
    bins = np.stack([generator.choice(3, 4_000, p=row) for row in PROBABILITIES], axis=1)
    x = np.asarray(EDGES)[bins] + np.diff(EDGES)[bins] * generator.uniform(size=bins.shape)
    y = np.asarray(SCALINGS["quantiles"].forward(jnp.asarray(x, jnp.float32).reshape(-1, *SHAPE))[0]).reshape(-1, 4)
    assert all(kstest(column, "norm").pvalue > 1e-3 for column in y.T)
    shifted = np.asarray(SCALINGS["logits"].forward(jnp.asarray(x, jnp.float32).reshape(-1, *SHAPE))[0]).reshape(-1, 4)
    assert all(kstest(column, "norm").pvalue < 1e-3 for column in shifted.T)


def test_the_density_of_a_flow_that_does_nothing_is_that_of_independent_pixels():
    generator = np.random.default_rng(0)
    images = generator.choice([0, 0, 0, 7, 16], (500, *SHAPE)).astype(np.float32)
    edges, probabilities = pixel_histograms(images, 17)
    design = SingleScaleFlowDesign("node", width=4, levels=17, edges=edges, probabilities=probabilities)
    flow = design.build(SHAPE, key=jax.random.key(0))
    still = jax.tree.map(lambda leaf: 0 * leaf if isinstance(leaf, jax.Array) else leaf, flow)
    result = still.evaluate(jnp.asarray(images[:50]), solver=Solver("euler", steps=1), key=jax.random.key(1))
    widths, index = 17 * np.diff(edges), np.searchsorted(17 * np.asarray(edges), images[:50], side="right") - 1
    each = np.asarray(probabilities)[np.arange(4), index.reshape(50, 4)] / widths[index.reshape(50, 4)]
    np.testing.assert_allclose(still.loss(result.log_prob), -np.log2(each).mean(axis=1), rtol=1e-4)


def test_bins_are_where_the_levels_differ_and_none_is_empty():
    images = np.zeros((1_000, 1, 2, 1))
    images[:, 0, 1, 0] = np.tile([0, 100, 101, 102, 255], 200)
    edges, probabilities = pixel_histograms(images, 256)
    assert set(np.round(256 * np.asarray(edges)).astype(int)) == {0, 1, 100, 103, 255, 256}
    assert min(min(row) for row in probabilities) > 0
    np.testing.assert_allclose(np.sum(probabilities, axis=1), 1, atol=1e-4)
    np.testing.assert_allclose(probabilities[0][0], 1, atol=1e-3)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"edges": (0.0, 1.0, 0.5), "probabilities": ((0.5, 0.5),) * 4}, "increase from 0 to 1"),
        ({"edges": (0.1, 1.0), "probabilities": ((1.0,),) * 4}, "increase from 0 to 1"),
        ({"edges": (0.0, 1.0), "probabilities": ((1.0,),) * 3}, "4 rows of 1 numbers"),
        ({"edges": (0.0, 0.5, 1.0), "probabilities": ((1.0, 0.0),) * 4}, "above 0"),
    ],
)
def test_histograms_must_be_those_of_every_pixel(options, message):
    with pytest.raises(ValueError, match=message):
        NormalQuantiles(SHAPE, **options)
