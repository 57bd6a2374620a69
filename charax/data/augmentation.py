"""Random flips and shifts of training images."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

_SHIFT = 4


@jax.jit
def augment_batch(
    key: PRNGKeyArray, images: Float[Array, "batch height width channels"]
) -> Float[Array, "batch height width channels"]:
    """Mirror every other image, by chance, and shift each by up to 4 pixels up or down, left or right.

    What comes in at the border is 0: the mean colour of standardised images.

    ```python
    import jax
    from charax.data import augment_batch

    images = jax.numpy.ones((5, 32, 32, 3))
    assert augment_batch(jax.random.key(0), images).shape == images.shape
    ```
    """
    flip_key, down_key, right_key = jax.random.split(key, 3)
    batch, height, width, channels = images.shape
    flip = jax.random.bernoulli(flip_key, shape=(batch, 1, 1, 1))
    images = jnp.where(flip, images[:, :, ::-1], images)
    padded = jnp.pad(images, ((0, 0), (_SHIFT, _SHIFT), (_SHIFT, _SHIFT), (0, 0)))
    # Adding to zeros that are made from the images puts the starts on the devices that hold the images.
    zeros = jnp.zeros_like(images[:, 0, 0, 0], jnp.int32)
    down, right = (
        zeros + jax.random.randint(shift_key, (batch,), 0, 2 * _SHIFT + 1) for shift_key in (down_key, right_key)
    )

    def crop(image, down, right):
        return jax.lax.dynamic_slice(image, (down, right, 0), (height, width, channels))

    return jax.vmap(crop)(padded, down, right)
