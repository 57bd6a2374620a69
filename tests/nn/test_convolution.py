"""The convolution against XLA's own, in every direction of differentiation."""

import os
import subprocess
import sys
from pathlib import Path

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
    random = np.random.default_rng(0)
    image = jnp.array(random.normal(size=(batch, height, width, inputs)))
    return image, jnp.array(random.normal(size=(size, size, inputs, outputs)))


@pytest.mark.parametrize(
    ("batch", "height", "width", "inputs", "outputs", "size"),
    [
        (1, 1, 1, 1, 1, 1),
        (2, 5, 4, 3, 2, 3),
        (3, 1, 7, 2, 1, 5),  # larger than the image
        (1, 7, 2, 1, 3, 3),
        (2, 6, 6, 3, 3, 5),
        (3, 2, 3, 1, 2, 1),
        (5, 28, 56, 1, 2, 3),  # the gradient of the kernel goes over parts of the batch
        (2, 4, 5, 5, 20, 3),  # more channels of zeros into the convolution
        (2, 4, 3, 12, 7, 3),  # and out of it
        (2, 4, 3, 20, 3, 3),
    ],
)
def test_value_and_gradient_agree_with_xla(batch, height, width, inputs, outputs, size):
    loss = lambda convolution: lambda image, kernel: jnp.sum(jnp.sin(convolution(image, kernel)))
    both = jax.jit(lambda *pair: [jax.value_and_grad(loss(f), (0, 1))(*pair) for f in (convolve, reference)])
    ours, theirs = both(*random_pair(batch, height, width, inputs, outputs, size))
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-10), ours, theirs)


def test_derivatives_to_third_order_in_forward_and_reverse_mode():
    function = lambda image, kernel: convolve(jnp.asarray(image), jnp.asarray(kernel))
    check_grads(function, random_pair(1, 3, 3, 2, 2), order=3, modes=("fwd", "rev"))


def test_vmap_over_images_kernels_and_both_agrees_with_xla():
    @jax.jit
    def both(image, kernel):
        images, kernels = jnp.stack([image, 2 * image]), jnp.stack([kernel, 3 * kernel])
        return [
            [jax.vmap(convolution, in_axes)(*arguments) for convolution in (convolve, reference)]
            for in_axes, arguments in [
                ((0, None), (images, kernel)),
                ((None, 0), (image, kernels)),
                ((0, 0), (images, kernels)),
            ]
        ]

    for ours, theirs in both(*random_pair()):
        np.testing.assert_allclose(ours, theirs, rtol=1e-10, atol=1e-12)


def test_per_sample_kernel_gradients_agree_with_xla():
    loss = lambda convolution: lambda kernel, one: jnp.sum(convolution(one[None], kernel) ** 2)
    per_sample = lambda convolution: jax.vmap(jax.grad(loss(convolution)), (None, 0))
    both = jax.jit(lambda image, kernel: [per_sample(f)(kernel, image) for f in (convolve, reference)])
    np.testing.assert_allclose(*both(*random_pair(batch=3)), rtol=1e-10)


def test_even_kernel_is_refused():
    with pytest.raises(ValueError, match="odd sides"):
        convolve(jnp.ones((1, 4, 4, 1)), jnp.ones((2, 2, 1, 1)))


@pytest.mark.parametrize("platform", ["cpu", "cuda", "tpu"])
def test_only_cpus_get_more_than_the_plain_convolutions(platform):
    loss = lambda image, kernel: jnp.sum(convolve(image, kernel) ** 2)
    traced = jax.jit(jax.grad(loss, (0, 1))).trace(*random_pair(inputs=5, outputs=20))
    program = traced.lower(lowering_platforms=(platform,)).as_text()
    assert program.count("stablehlo.convolution") == (2 if platform == "cpu" else 3)
    assert ("stablehlo.pad" in program) == (platform == "cpu")


ROOT = str(Path(__file__).parents[2])
SHARED = """
import re
import jax, jax.numpy as jnp, numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from tests.nn.test_convolution import reference
from charax.nn import convolve

whole = NamedSharding(Mesh(np.asarray(jax.devices()), ("batch",)), PartitionSpec())
rows = NamedSharding(whole.mesh, PartitionSpec("batch"))
keys = jax.random.split(jax.random.key(0), 3)
image, kernel = jax.random.normal(keys[0], (76, 16, 16, 3)), jax.random.normal(keys[1], (3, 3, 3, 4))
cotangent = jax.random.normal(keys[2], (76, 16, 16, 4))
gradient = lambda f: lambda image, cotangent: jax.vjp(lambda kernel: f(image, kernel), kernel)[1](cotangent)[0]
function = jax.jit(gradient(convolve), out_shardings=whole)
arguments = jax.device_put((image, cotangent), rows)
program = function.lower(*arguments).compile().as_text()
print(len(re.findall(r" all-gather[-(]", program)), len(re.findall(r" all-reduce[-(]", program)), " while(" in program)
print(float(jnp.abs(function(*arguments) - gradient(reference)(image, cotangent)).max()))
"""


def test_devices_that_share_a_batch_exchange_gradients_of_the_kernel_and_no_images():
    environment = {**os.environ, "XLA_FLAGS": "--xla_force_host_platform_device_count=2", "PYTHONPATH": ROOT}
    done = subprocess.run([sys.executable, "-c", SHARED], env=environment, capture_output=True, text=True, check=True)
    collectives, error = done.stdout.splitlines()
    assert collectives == "0 1 True"  # the images of each device are taken few by few
    assert float(error) < 1e-3
