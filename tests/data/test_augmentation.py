import os
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
from scipy import ndimage

from charax.data import random_affine, random_flip_crop

IMAGES = jnp.arange(1.0, 1 + 64 * 12 * 10 * 2).reshape(64, 12, 10, 2)


def test_every_image_is_a_flip_and_a_shift_of_itself_by_at_most_four_pixels():
    out = np.asarray(random_flip_crop(jax.random.key(0), IMAGES))
    seen = set()
    for image, augmented in zip(np.asarray(IMAGES), out, strict=True):
        matches = [
            (flip, down, right)
            for flip in (1, -1)
            for down in range(9)
            for right in range(9)
            if np.array_equal(
                np.pad(image[:, ::flip], ((4, 4), (4, 4), (0, 0)))[down : down + 12, right : right + 10], augmented
            )
        ]
        assert len(matches) == 1
        seen.update(enumerate(matches[0]))
    assert seen == {(0, 1), (0, -1)} | {(axis, shift) for axis in (1, 2) for shift in range(9)}


def test_the_key_decides():
    first, again, other = (random_flip_crop(jax.random.key(seed), IMAGES) for seed in (0, 0, 1))
    assert jnp.array_equal(first, again)
    assert not jnp.array_equal(first, other)


def test_an_affine_image_is_what_scipy_makes_of_it():
    """Every one is the bilinear image under some rotation, zoom and shift within the bounds."""
    y, x = np.mgrid[:9, :8] - np.array([4, 3.5]).reshape(2, 1, 1)
    image = np.exp(-((y - 1) ** 2 + (x + 0.5) ** 2) / 3).astype(np.float32)
    key, number = jax.random.key(3), 6
    out = np.asarray(random_affine(key, jnp.asarray(np.stack([image] * number)[..., None])))[..., 0]
    draw = np.asarray(jax.random.uniform(key, (4, number, 1, 1), jnp.float32, -1, 1))[..., 0, 0]
    for one, (turn, zoom, down, right) in zip(out, draw.T, strict=True):
        cos, sin = np.cos(0.2 * turn), np.sin(0.2 * turn)
        matrix = (1 + 0.12 * zoom) * np.array([[cos, -sin], [sin, cos]])
        middle = np.array([4, 3.5])
        offset = middle + 0.08 * np.array([9 * down, 8 * right]) - matrix @ middle
        expected = ndimage.affine_transform(np.pad(image, 2), matrix, offset + 2 - matrix @ [2, 2], order=1)[2:-2, 2:-2]
        np.testing.assert_allclose(one, expected, atol=1e-5)
    assert np.abs(out - image).max() > 0.05
    middle = (np.abs(out - image).mean(), np.abs(image).mean())
    assert middle[0] < 0.5 * middle[1]


def test_a_batch_that_is_spread_over_devices_stays_spread():
    program = """
import jax, numpy as np
from jax.sharding import AxisType, NamedSharding, PartitionSpec
from charax.data import random_flip_crop, random_affine

key, images = jax.random.key(0), jax.random.normal(jax.random.key(1), (8, 12, 10, 2))
for change in (random_flip_crop, random_affine):
    alone = change(key, images)
    for axis_type in (AxisType.Auto, AxisType.Explicit):
        sharding = NamedSharding(jax.make_mesh((2,), ("batch",), axis_types=(axis_type,)), PartitionSpec("batch"))
        spread = change(key, jax.device_put(images, sharding))
        assert spread.sharding.is_equivalent_to(sharding, 4), (change, spread.sharding)
        np.testing.assert_allclose(alone, spread, atol=1e-6)
"""
    flags = {
        "XLA_FLAGS": f"{os.environ.get('XLA_FLAGS', '')} --xla_force_host_platform_device_count=2",
        "JAX_PLATFORMS": "cpu",
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0.1",
    }
    subprocess.run([sys.executable, "-c", program], env=os.environ | flags, check=True)
