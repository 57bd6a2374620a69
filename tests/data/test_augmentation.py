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
