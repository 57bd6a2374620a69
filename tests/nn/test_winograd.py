"""Winograd's convolution against XLA's."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from charax.nn import convolve
from charax.nn._winograd import convolve_tiles, correlate_tiles


def reference(image, kernel):
    return lax.conv_general_dilated(image, kernel, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))


def random(seed, *shape):
    return jnp.array(np.random.default_rng(seed).normal(size=shape), float)


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize(("batch", "height", "width", "inputs", "outputs"), [(2, 5, 4, 3, 2), (1, 1, 3, 1, 2)])
def test_value_and_kernel_gradient_agree_with_xla(batch, height, width, inputs, outputs):
    image, kernel = random(0, batch, height, width, inputs), random(1, 3, 3, inputs, outputs)
    cotangent = random(2, batch, height, width, outputs)

    @jax.jit
    def both(image, kernel, cotangent):
        out, vjp = jax.vjp(lambda kernel: reference(image, kernel), kernel)
        return (convolve_tiles(image, kernel), correlate_tiles(image, cotangent)), (out, *vjp(cotangent))

    for ours, theirs in zip(*both(image, kernel, cotangent), strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-12)


def test_wide_convolutions_use_winograd_and_agree_with_xla_to_rounding():
    image, kernel = random(0, 1, 131, 127, 40), random(1, 3, 3, 40, 41)
    assert "dot_general" in jax.jit(convolve).lower(image, kernel).as_text()
    loss = lambda convolution: lambda *pair: jnp.sum(jnp.sin(convolution(*pair)))
    both = jax.jit(lambda *pair: [jax.grad(loss(f), (0, 1))(*pair) for f in (convolve, reference)])
    for ours, theirs in zip(*both(image, kernel), strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-5 * np.abs(theirs).max())
