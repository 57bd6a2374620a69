"""From grey levels to unbounded real numbers, and back."""

import math

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from charax.solve._checks import is_concrete


class Pixels(eqx.Module):
    """How images of whole grey levels 0 … `levels` − 1 become continuous: uniform dequantisation, then the logit.

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
    """The number of grey levels."""
    alpha: float = eqx.field(default=1e-6, static=True)
    """Keeps the logit away from black and white: it is that of alpha + (1 - 2 alpha) x."""

    def __check_init__(self):
        if self.levels < 2:
            raise ValueError(f"an image has at least 2 grey levels, got levels={self.levels}")
        if not 0 < self.alpha < 0.5:
            raise ValueError(f"alpha must lie between 0 and 0.5, got {self.alpha}")

    def dequantise(
        self, images: Float[Array, "batch height width channels"], *, key: PRNGKeyArray
    ) -> Float[Array, "batch height width channels"]:
        """Add uniform noise within each grey level.

        Args:
            images: A batch of images of whole grey levels.
            key: Random key.

        Returns:
            Images with pixels in [0, 1).

        Raises:
            ValueError: If a pixel is not a grey level.
        """
        if is_concrete(images):
            values = np.asarray(images)  # also if a traced function closes over them
            low, high = float(values.min()), float(values.max())
            if not (low >= 0 and high <= self.levels - 1):
                raise ValueError(
                    f"pixels must be grey levels from 0 to {self.levels - 1}, got {low:g} to {high:g}: "
                    "scale the images, or set levels"
                )
        return (images + jax.random.uniform(key, images.shape, images.dtype)) / self.levels

    def logit(
        self, x: Float[Array, "batch height width channels"]
    ) -> tuple[Float[Array, "batch height width channels"], Float[Array, "batch"]]:
        """Map pixels from [0, 1] to unbounded numbers.

        Args:
            x: A batch of images.

        Returns:
            The logits, and the log-determinant of the map for every image.
        """
        s = self.alpha + (1 - 2 * self.alpha) * x
        log_s, log_rest = jnp.log(s), jnp.log1p(-s)
        log_det = math.log(1 - 2 * self.alpha) - log_s - log_rest
        return log_s - log_rest, log_det.sum(axis=(1, 2, 3))

    def expit(self, y: Float[Array, "batch height width channels"]) -> Float[Array, "batch height width channels"]:
        """Invert `logit`.

        Args:
            y: Logits.

        Returns:
            Images with pixels in [0, 1].
        """
        return (jax.nn.sigmoid(y) - self.alpha) / (1 - 2 * self.alpha)

    def quantise(self, x: Float[Array, "batch height width channels"]) -> Float[Array, "batch height width channels"]:
        """Round pixels to whole grey levels.

        Args:
            x: Images with pixels in [0, 1].

        Returns:
            Images of whole grey levels.
        """
        return jnp.clip(jnp.floor(x * self.levels), 0, self.levels - 1)

    def bits_per_dim(self, log_prob: Float[Array, "batch"], size: int) -> Float[Array, "batch"]:
        """Convert log-densities of dequantised images to bits per dimension of images of grey levels.

        Args:
            log_prob: Log-densities of images with pixels in [0, 1).
            size: The number of dimensions of an image.

        Returns:
            Bits per dimension of every image.
        """
        return (math.log(self.levels) - log_prob / size) / math.log(2)
