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
    return jax.random.normal(jax.random.key(seed), shape)


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize(("batch", "height", "width", "inputs", "outputs"), [(2, 5, 4, 3, 2), (1, 1, 3, 1, 2)])
def test_value_and_kernel_gradient_agree_with_xla(batch, height, width, inputs, outputs):
    image, kernel = random(0, batch, height, width, inputs), random(1, 3, 3, inputs, outputs)
    cotangent = random(2, batch, height, width, outputs)
    ours = jax.jit(lambda image, kernel, cotangent: (convolve_tiles(image, kernel), correlate_tiles(image, cotangent)))
    out, pull = jax.vjp(lambda kernel: reference(image, kernel), kernel)
    for mine, xla in zip(ours(image, kernel, cotangent), (out, *pull(cotangent)), strict=True):
        np.testing.assert_allclose(mine, xla, atol=1e-12)


def test_wide_convolutions_take_this_way_and_agree_with_xla_to_rounding():
    image, kernel = random(0, 1, 131, 127, 40), random(1, 3, 3, 40, 41)
    assert "dot_general" in jax.jit(convolve).lower(image, kernel).as_text()
    loss = lambda convolution: lambda image, kernel: jnp.sum(jnp.sin(convolution(image, kernel)))
    ours = jax.grad(loss(convolve), (0, 1))(image, kernel)
    theirs = jax.grad(loss(reference), (0, 1))(image, kernel)
    for mine, xla in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(mine, xla, atol=1e-5 * float(jnp.abs(xla).max()))
