"""The convolution against XLA's own, in every direction of differentiation."""

import hypothesis
import hypothesis.strategies as st
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.test_util import check_grads

from charax.nn import convolve

pytestmark = pytest.mark.usefixtures("x64")


def reference(image, kernel):
    return lax.conv_general_dilated(image, kernel, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))


def random_pair(batch=2, height=5, width=4, inputs=3, outputs=2, size=3):
    image_key, kernel_key = jax.random.split(jax.random.key(0))
    image = jax.random.normal(image_key, (batch, height, width, inputs))
    return image, jax.random.normal(kernel_key, (size, size, inputs, outputs))


@hypothesis.given(
    batch=st.integers(1, 3),
    height=st.integers(1, 7),
    width=st.integers(1, 7),
    inputs=st.integers(1, 3),
    outputs=st.integers(1, 3),
    size=st.sampled_from([1, 3, 5]),
)
def test_value_and_gradient_agree_with_xla(batch, height, width, inputs, outputs, size):
    image, kernel = random_pair(batch, height, width, inputs, outputs, size)
    loss = lambda convolution: lambda image, kernel: jnp.sum(jnp.sin(convolution(image, kernel)))
    ours = jax.value_and_grad(loss(convolve), (0, 1))(image, kernel)
    theirs = jax.value_and_grad(loss(reference), (0, 1))(image, kernel)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-10), ours, theirs)


def test_derivatives_to_third_order_in_forward_and_reverse_mode():
    function = lambda image, kernel: convolve(jnp.asarray(image), jnp.asarray(kernel))
    check_grads(function, random_pair(1, 3, 3, 2, 2), order=3, modes=("fwd", "rev"))


def test_vmap_over_images_kernels_and_both_agrees_with_xla():
    image, kernel = random_pair()
    images, kernels = jnp.stack([image, 2 * image]), jnp.stack([kernel, 3 * kernel])
    for in_axes, arguments in [
        ((0, None), (images, kernel)),
        ((None, 0), (image, kernels)),
        ((0, 0), (images, kernels)),
    ]:
        ours, theirs = (jax.vmap(convolution, in_axes)(*arguments) for convolution in (convolve, reference))
        np.testing.assert_allclose(ours, theirs, rtol=1e-10)


def test_per_sample_kernel_gradients_agree_with_xla():
    image, kernel = random_pair(batch=3)
    gradient = lambda convolution: jax.vmap(
        jax.grad(lambda kernel, one: jnp.sum(convolution(one[None], kernel) ** 2)), (None, 0)
    )(kernel, image)
    np.testing.assert_allclose(gradient(convolve), gradient(reference), rtol=1e-10)


def test_even_kernel_is_refused():
    with pytest.raises(ValueError, match="odd sides"):
        convolve(jnp.ones((1, 4, 4, 1)), jnp.ones((2, 2, 1, 1)))
