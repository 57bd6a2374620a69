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
    flip_key, shift_key = jax.random.split(key)
    batch, height, width, channels = images.shape
    flip = jax.random.bernoulli(flip_key, shape=(batch, 1, 1, 1))
    images = jnp.where(flip, images[:, :, ::-1], images)
    padded = jnp.pad(images, ((0, 0), (_SHIFT, _SHIFT), (_SHIFT, _SHIFT), (0, 0)))
    corners = jax.random.randint(shift_key, (batch, 2), 0, 2 * _SHIFT + 1)

    def crop(image, corner):
        return jax.lax.dynamic_slice(image, (*corner, 0), (height, width, channels))

    return jax.vmap(crop)(padded, corners)
