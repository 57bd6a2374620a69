"""From grey levels to numbers without bounds, and back."""

import math

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from charax.solve._checks import is_concrete


class Pixels(eqx.Module):
    """How images of whole grey levels 0 … `levels` − 1 become continuous: noise within a level, then the logit.

    `alpha` keeps the logit away from black and white.

    ```python
    import jax
    import jax.numpy as jnp
    from charax.models.flows import Pixels

    pixels = Pixels(levels=17)
    x = pixels.dequantise(jnp.full((2, 8, 8, 1), 16.0), key=jax.random.key(0))
    y, log_det = pixels.logit(x)
    assert jnp.allclose(pixels.expit(y), x, atol=1e-5) and log_det.shape == (2,)
    ```
    """

    levels: int = eqx.field(default=256, static=True)
    alpha: float = eqx.field(default=1e-6, static=True)

    def __check_init__(self):
        if self.levels < 2:
            raise ValueError(f"an image has at least 2 grey levels, got levels={self.levels}")
        if not 0 < self.alpha < 0.5:
            raise ValueError(f"alpha must lie between 0 and 0.5, got {self.alpha}")

    def dequantise(
        self, images: Float[Array, "batch height width channels"], *, key: PRNGKeyArray
    ) -> Float[Array, "batch height width channels"]:
        """Numbers in [0, 1): each grey level is an interval, and its pixels lie anywhere in it."""
        if is_concrete(images):
            low, high = float(np.min(images)), float(np.max(images))
            if not (low >= 0 and high <= self.levels - 1):
                raise ValueError(
                    f"pixels must be grey levels from 0 to {self.levels - 1}, got {low:g} to {high:g}: "
                    "scale the images, or set levels"
                )
        return (images + jax.random.uniform(key, images.shape, images.dtype)) / self.levels

    def logit(
        self, x: Float[Array, "batch height width channels"]
    ) -> tuple[Float[Array, "batch height width channels"], Float[Array, "batch"]]:
        """The logit of x in [0, 1], and the log-determinant of it."""
        s = self.alpha + (1 - 2 * self.alpha) * x
        log_s, log_rest = jnp.log(s), jnp.log1p(-s)
        log_det = math.log(1 - 2 * self.alpha) - log_s - log_rest
        return log_s - log_rest, log_det.sum(axis=(1, 2, 3))

    def expit(self, y: Float[Array, "batch height width channels"]) -> Float[Array, "batch height width channels"]:
        """The inverse of `logit`."""
        return (jax.nn.sigmoid(y) - self.alpha) / (1 - 2 * self.alpha)

    def quantise(self, x: Float[Array, "batch height width channels"]) -> Float[Array, "batch height width channels"]:
        """Whole grey levels."""
        return jnp.clip(jnp.floor(x * self.levels), 0, self.levels - 1)

    def bits_per_dim(self, log_prob: Float[Array, "batch"], size: int) -> Float[Array, "batch"]:
        """Bits per number of an image, of its grey levels and not of where in them its pixels lie."""
        return (math.log(self.levels) - log_prob / size) / math.log(2)


def squeeze(u: Float[Array, "batch height width channels"]) -> Float[Array, "batch rows columns more"]:
    """Squares of 2 x 2 pixels become four times the channels.

    ```python
    import jax.numpy as jnp
    from charax.models.flows import squeeze, unsqueeze

    u = jnp.arange(32.0).reshape(1, 4, 4, 2)
    assert squeeze(u).shape == (1, 2, 2, 8) and (unsqueeze(squeeze(u)) == u).all()
    ```
    """
    batch, height, width, channels = u.shape
    squares = u.reshape(batch, height // 2, 2, width // 2, 2, channels)
    return squares.transpose(0, 1, 3, 5, 2, 4).reshape(batch, height // 2, width // 2, 4 * channels)


def unsqueeze(u: Float[Array, "batch rows columns more"]) -> Float[Array, "batch height width channels"]:
    """The inverse of `squeeze`."""
    batch, rows, columns, more = u.shape
    squares = u.reshape(batch, rows, columns, more // 4, 2, 2).transpose(0, 1, 4, 2, 5, 3)
    return squares.reshape(batch, 2 * rows, 2 * columns, more // 4)
