"""Maps of pixels: invertible, with the log-determinant of autodiff; and what they make of images."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import kstest, multivariate_normal

from charax.models.flows import NormalQuantiles, Pixels, SingleScaleFlowDesign, StandardizedLogits, WhitenedPixels
from charax.solve import Solver
from charax.tasks.density import pixel_histograms, whitening_moments

SHAPE = (2, 2, 1)
EDGES = (0.0, 0.25, 0.5, 1.0)
PROBABILITIES = ((0.98, 0.01, 0.01), (0.2, 0.3, 0.5), (1e-5, 1e-5, 1 - 2e-5), (0.4, 1e-3, 0.599))
SCALINGS = {
    "logits": StandardizedLogits(SHAPE, Pixels(), mean=(0.0, 1.0, -1.0, 2.0), std=(1.0, 2.0, 0.5, 1.0)),
    "quantiles": NormalQuantiles(SHAPE, edges=EDGES, probabilities=PROBABILITIES),
    "whitened": WhitenedPixels(
        (1, 2, 2), mean=(0.1, 0.2, 0.5, 0.9), std=(2.0, 0.1, 0.03, 1.0), rotation=(0.6, 0.8, -0.8, 0.6)
    ),
}


@pytest.mark.usefixtures("x64")
@settings(max_examples=30, deadline=None)
@given(pixels=st.lists(st.floats(0.001, 0.999), min_size=4, max_size=4))
@pytest.mark.parametrize("name", SCALINGS)
def test_every_image_comes_back(name, pixels):
    x = jnp.asarray(pixels, jnp.float64).reshape(1, *SCALINGS[name].shape)
    y, _ = SCALINGS[name].forward(x)
    np.testing.assert_allclose(SCALINGS[name].inverse(y), x, atol=1e-8)


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("name", SCALINGS)
def test_log_determinants_are_those_of_autodiff(name):
    x = jax.random.uniform(jax.random.key(0), (5, *SCALINGS[name].shape), jnp.float64)
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


def _textures(n: int) -> np.ndarray:
    """Grey levels of smooth colour images, whose three colours are nearly equal."""
    generator = np.random.default_rng(0)
    rough = generator.normal(size=(n, 6, 6, 1)).cumsum(axis=1).cumsum(axis=2)
    smooth = (rough - rough.mean(axis=(1, 2), keepdims=True)) * [0.9, 1.0, 1.2]
    return np.round(128 + 10 * smooth + generator.normal(size=smooth.shape)).clip(0, 255)


def test_whitened_pixels_are_hardly_correlated():
    images = _textures(4_000)
    mean, std, rotation = whitening_moments(images, 256)
    scaling = WhitenedPixels((6, 6, 3), mean=mean, std=std, rotation=rotation)
    x = (images + np.random.default_rng(1).uniform(size=images.shape)) / 256
    y = np.asarray(scaling.forward(jnp.asarray(x, jnp.float32))[0]).reshape(len(x), -1)
    correlations = lambda rows: np.abs(np.corrcoef(rows.T) - np.eye(108)).mean()
    assert correlations(y) < 0.1 < 0.3 < correlations(x.reshape(len(x), -1))
    np.testing.assert_allclose(y.mean(axis=0), 0, atol=0.02)
    # Every coefficient has variance 1, so the pixels have on average.
    np.testing.assert_allclose(y.var(axis=0).mean(), 1, atol=0.02)


def test_the_density_of_a_flow_that_does_nothing_is_normal_with_the_covariance_of_whitened_images():
    images = _textures(300).astype(np.float32)
    mean, std, rotation = whitening_moments(images, 256)
    design = SingleScaleFlowDesign("node", width=4, mean=mean, std=std, rotation=rotation)
    flow = design.build((6, 6, 3), key=jax.random.key(0))
    still = jax.tree.map(lambda leaf: 0 * leaf if isinstance(leaf, jax.Array) else leaf, flow)
    x = jnp.asarray((images[:5] + 0.5) / 256)
    found = still.forward(x, solver=Solver("euler", steps=1), key=jax.random.key(1)).log_prob
    # Its square root: an image from each white coefficient.
    whole = (len(std), 6, 6, 3)
    root = np.asarray(still.scaling.inverse(0.01 * jnp.eye(len(std)).reshape(whole))) - np.reshape(mean, whole[1:])
    root = 100 * root.reshape(len(std), -1).astype(float)
    exact = multivariate_normal(np.asarray(mean), root.T @ root).logpdf(np.asarray(x).reshape(5, -1))
    np.testing.assert_allclose(found, exact, rtol=2e-3)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"mean": (0.5,) * 3, "std": (1.0,) * 4, "rotation": (1.0,)}, "mean must have 4 numbers"),
        ({"mean": (0.5,) * 4, "std": (1.0,) * 5, "rotation": (1.0,)}, "std must have 4 numbers"),
        ({"mean": (0.5,) * 4, "std": (1.0, 1.0, 1.0, 0.0), "rotation": (1.0,)}, "above 0"),
        ({"mean": (0.5,) * 4, "std": (1.0,) * 4, "rotation": (1.0, 0.0)}, "rotation must have 1 numbers"),
        ({"mean": (0.5,) * 4, "std": (1.0,) * 4, "rotation": (0.5,)}, "orthogonal"),
    ],
)
def test_moments_must_be_those_of_every_pixel(options, message):
    with pytest.raises(ValueError, match=message):
        WhitenedPixels(SHAPE, **options)


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
