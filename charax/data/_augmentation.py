"""Random changes of training images that do not change what they show."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

_SHIFT = 4
_TURN, _ZOOM, _MOVE = 0.2, 0.12, 0.08


@jax.jit
def random_flip_crop(
    key: PRNGKeyArray, images: Float[Array, "batch height width channels"]
) -> Float[Array, "batch height width channels"]:
    """Mirror every other image, by chance, and shift each by up to 4 pixels up or down, left or right.

    What comes in at the border is 0: the mean colour of standardised images.

    ```python
    import jax
    from charax.data import random_flip_crop

    images = jax.numpy.ones((5, 32, 32, 3))
    assert random_flip_crop(jax.random.key(0), images).shape == images.shape
    ```
    """
    flip_key, down_key, right_key = jax.random.split(key, 3)
    batch, height, width, channels = images.shape
    flip = jax.random.bernoulli(flip_key, shape=(batch, 1, 1, 1))
    images = jnp.where(flip, images[:, :, ::-1], images)
    padded = jnp.pad(images, ((0, 0), (_SHIFT, _SHIFT), (_SHIFT, _SHIFT), (0, 0)))
    zeros = jnp.zeros_like(images[:, 0, 0, 0], jnp.int32)  # on the devices that hold the images
    down, right = (
        zeros + jax.random.randint(shift_key, (batch,), 0, 2 * _SHIFT + 1) for shift_key in (down_key, right_key)
    )

    def crop(image, down, right):
        return jax.lax.dynamic_slice(image, (down, right, 0), (height, width, channels))

    return jax.vmap(crop)(padded, down, right)


@jax.jit
def random_affine(
    key: PRNGKeyArray, images: Float[Array, "batch height width channels"]
) -> Float[Array, "batch height width channels"]:
    """Turn each image by up to 11 degrees, zoom it by up to 12%, and move it by up to 8% of its sides.

    In between pixels the image is bilinear. What comes in at the border is 0. For small images: the work grows with
    the square of the pixels.

    ```python
    import jax
    from charax.data import random_affine

    images = jax.numpy.ones((5, 8, 8, 1))
    assert random_affine(jax.random.key(0), images).shape == images.shape
    ```
    """
    batch, height, width, _ = images.shape
    zeros = jnp.zeros_like(images[:, :1, :1, 0])  # on the devices that hold the images
    draw = [zeros + one for one in jax.random.uniform(key, (4, batch, 1, 1), images.dtype, -1, 1)]
    turn, zoom, down, right = _TURN * draw[0], 1 + _ZOOM * draw[1], _MOVE * height * draw[2], _MOVE * width * draw[3]
    y, x = jnp.arange(height) - (height - 1) / 2, jnp.arange(width) - (width - 1) / 2
    # Where each pixel of the result comes from; a pixel that is less than 1 away has a part in it.
    source_y = zoom * (jnp.cos(turn) * y[:, None] - jnp.sin(turn) * x) + down
    source_x = zoom * (jnp.sin(turn) * y[:, None] + jnp.cos(turn) * x) + right
    part_y = jax.nn.relu(1 - jnp.abs(source_y[..., None] - y))
    part_x = jax.nn.relu(1 - jnp.abs(source_x[..., None] - x))
    return jnp.einsum("bhwi,bhwj,bijc->bhwc", part_y, part_x, images)
