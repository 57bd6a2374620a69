"""Random augmentation of training images."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

_MAX_SHIFT = 4
_MAX_ANGLE, _MAX_ZOOM, _MAX_MOVE = 0.2, 0.12, 0.08


@jax.jit
def random_flip_crop(
    key: PRNGKeyArray, images: Float[Array, "batch height width channels"]
) -> Float[Array, "batch height width channels"]:
    """Flip each image horizontally with probability 1/2, and shift it by up to 4 pixels in each direction.

    Args:
        key: Key of the random numbers.
        images: Images; the border is filled with 0, the mean color of standardized images.

    Returns:
        The augmented images.

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
    padded = jnp.pad(images, ((0, 0), (_MAX_SHIFT, _MAX_SHIFT), (_MAX_SHIFT, _MAX_SHIFT), (0, 0)))
    zeros = jnp.zeros_like(images[:, 0, 0, 0], jnp.int32)  # on the devices that hold the images
    down, right = (
        zeros + jax.random.randint(shift_key, (batch,), 0, 2 * _MAX_SHIFT + 1) for shift_key in (down_key, right_key)
    )

    def crop(image, down, right):
        return jax.lax.dynamic_slice(image, (down, right, 0), (height, width, channels))

    return jax.vmap(crop)(padded, down, right)


@jax.jit
def random_affine(
    key: PRNGKeyArray, images: Float[Array, "batch height width channels"]
) -> Float[Array, "batch height width channels"]:
    """Rotate each image by up to 11 degrees, zoom it by up to 12%, and shift it by up to 8% of its sides.

    The interpolation is bilinear. For small images: the cost grows with the square of the number of pixels.

    Args:
        key: Key of the random numbers.
        images: Images; the border is filled with 0.

    Returns:
        The augmented images.

    ```python
    import jax
    from charax.data import random_affine

    images = jax.numpy.ones((5, 8, 8, 1))
    assert random_affine(jax.random.key(0), images).shape == images.shape
    ```
    """
    batch, height, width, _ = images.shape
    zeros = jnp.zeros_like(images[:, :1, :1, 0])  # on the devices that hold the images
    draws = [zeros + draw for draw in jax.random.uniform(key, (4, batch, 1, 1), images.dtype, -1, 1)]
    angle, zoom = _MAX_ANGLE * draws[0], 1 + _MAX_ZOOM * draws[1]
    down, right = _MAX_MOVE * height * draws[2], _MAX_MOVE * width * draws[3]
    y, x = jnp.arange(height) - (height - 1) / 2, jnp.arange(width) - (width - 1) / 2
    # Where each pixel of the result comes from; the weight of a source pixel is 0 from a distance of 1 on.
    source_y = zoom * (jnp.cos(angle) * y[:, None] - jnp.sin(angle) * x) + down
    source_x = zoom * (jnp.sin(angle) * y[:, None] + jnp.cos(angle) * x) + right
    weight_y = jax.nn.relu(1 - jnp.abs(source_y[..., None] - y))
    weight_x = jax.nn.relu(1 - jnp.abs(source_x[..., None] - x))
    return jnp.einsum("bhwi,bhwj,bijc->bhwc", weight_y, weight_x, images)
