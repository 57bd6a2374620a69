"""Sine and cosine together: next to NumPy in double precision, and their derivatives next to each other."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from charax.nn import FourierFeatures
from charax.nn._trigonometry import sine_and_cosine


@pytest.mark.parametrize("largest", [1.0, 100.0, 1e5])
def test_errors_are_below_those_of_rounding(largest):
    angles = np.linspace(-largest, largest, 200_001).astype(np.float32)
    sine, cosine = jax.jit(sine_and_cosine)(angles)
    exact = angles.astype(np.float64)
    np.testing.assert_allclose(sine, np.sin(exact), rtol=0, atol=1e-7)
    np.testing.assert_allclose(cosine, np.cos(exact), rtol=0, atol=1e-7)


def test_small_angles_keep_their_relative_precision():
    angles = np.geomspace(1e-30, 1e-2, 50).astype(np.float32)
    np.testing.assert_allclose(sine_and_cosine(jnp.asarray(angles))[0], np.sin(angles.astype(float)), rtol=2e-7)


def test_derivatives_are_those_of_sine_and_cosine():
    angles, both = jnp.linspace(-20, 20, 101), lambda f: jax.vmap(jax.grad(f))
    wave = lambda angle: sine_and_cosine(angle)[0] + 2 * sine_and_cosine(angle)[1]
    np.testing.assert_allclose(both(wave)(angles), jnp.cos(angles) - 2 * jnp.sin(angles), atol=1e-6)
    np.testing.assert_allclose(both(jax.grad(wave))(angles), -jnp.sin(angles) - 2 * jnp.cos(angles), atol=1e-6)


def test_double_precision_is_kept():
    with jax.enable_x64(True):
        angles = jnp.linspace(-3, 3, 7)
        np.testing.assert_allclose(sine_and_cosine(angles)[0], np.sin(np.asarray(angles)), rtol=1e-14)


def test_huge_angles_stay_bounded_and_what_is_no_number_is_none():
    sine, cosine = sine_and_cosine(jnp.array([1e12, -1e30, jnp.inf, jnp.nan]))
    assert (abs(jnp.stack([sine, cosine]))[:, :2] <= 1).all()
    assert jnp.isnan(jnp.stack([sine, cosine]))[:, 2:].all()


def test_features_are_the_inputs_the_sines_and_the_cosines():
    features = FourierFeatures([(1, 6.0, 2), (2, 4.0, 3)], key=jax.random.key(0))
    inputs = jax.random.normal(jax.random.key(1), (4, 3))
    phase = inputs @ features.frequencies
    expected = jnp.concatenate([inputs, jnp.sin(phase), jnp.cos(phase)], axis=1)
    np.testing.assert_allclose(features(inputs), expected, atol=1e-6)
    assert not features.frequencies[0, 2:].any()  # no frequency mixes two groups at first
    assert not features.frequencies[1:, :2].any()
    assert features.frequencies[1:, 2:].all()
