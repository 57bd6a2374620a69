import os
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np

from charax.data import augment_batch

IMAGES = jnp.arange(1.0, 1 + 64 * 12 * 10 * 2).reshape(64, 12, 10, 2)


def test_every_image_is_a_flip_and_a_shift_of_itself_by_at_most_four_pixels():
    out = np.asarray(augment_batch(jax.random.key(0), IMAGES))
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
    first, again, other = (augment_batch(jax.random.key(seed), IMAGES) for seed in (0, 0, 1))
    assert jnp.array_equal(first, again)
    assert not jnp.array_equal(first, other)


def test_a_batch_that_is_spread_over_devices_stays_spread():
    program = """
import jax, numpy as np
from jax.sharding import AxisType, NamedSharding, PartitionSpec
from charax.data import augment_batch

key, images = jax.random.key(0), jax.random.normal(jax.random.key(1), (8, 12, 10, 2))
alone = augment_batch(key, images)
for axis_type in (AxisType.Auto, AxisType.Explicit):
    sharding = NamedSharding(jax.make_mesh((2,), ("batch",), axis_types=(axis_type,)), PartitionSpec("batch"))
    spread = augment_batch(key, jax.device_put(images, sharding))
    assert spread.sharding.is_equivalent_to(sharding, 4), spread.sharding
    np.testing.assert_array_equal(alone, spread)
"""
    flags = {"XLA_FLAGS": "--xla_force_host_platform_device_count=2", "JAX_PLATFORMS": "cpu"}
    subprocess.run([sys.executable, "-c", program], env=os.environ | flags, check=True)
