"""From dequantised pixels to the state of a flow, with the log-determinant."""

import math
from abc import abstractmethod

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import ndtr, ndtri
from jaxtyping import Array, Float

from charax.models.flows._pixels import Pixels

_SMALLEST = 1e-12
"""The smallest probability that is mapped to a number: that of -7."""


class AbstractPixelScaling(eqx.Module):
    """An invertible map of images with pixels in [0, 1].

    ```python
    from charax.models.flows import AbstractPixelScaling, Pixels, StandardizedLogits

    scaling: AbstractPixelScaling = StandardizedLogits((2, 2, 1), Pixels())
    ```
    """

    @abstractmethod
    def forward(
        self, x: Float[Array, "batch height width channels"]
    ) -> tuple[Float[Array, "batch height width channels"], Float[Array, "batch"]]:
        """Map images to unbounded numbers.

        Args:
            x: A batch of images with pixels in [0, 1].

        Returns:
            The scaled images, and the log-determinant of the map for every image.
        """

    @abstractmethod
    def inverse(self, y: Float[Array, "batch height width channels"]) -> Float[Array, "batch height width channels"]:
        """Invert `forward`.

        Args:
            y: Scaled images.

        Returns:
            Images with pixels in [0, 1].
        """


class StandardizedLogits(AbstractPixelScaling):
    """The logit of every pixel, with mean 0 and standard deviation 1.

    ```python
    import jax.numpy as jnp
    from charax.models.flows import Pixels, StandardizedLogits

    scaling = StandardizedLogits((1, 2, 1), Pixels(), mean=(1.0, 0.0), std=(2.0, 1.0))
    y, _ = scaling.forward(jnp.full((1, 1, 2, 1), 0.5))
    assert jnp.allclose(y.ravel(), jnp.array([-0.5, 0.0]), atol=1e-6)
    ```
    """

    pixels: Pixels
    shape: tuple[int, ...] = eqx.field(static=True)
    mean: tuple[float, ...] = eqx.field(static=True)
    std: tuple[float, ...] = eqx.field(static=True)

    def __init__(
        self, shape: tuple[int, ...], pixels: Pixels, *, mean: tuple[float, ...] = (), std: tuple[float, ...] = ()
    ):
        """Check and store the moments.

        Args:
            shape: The shape of one image: height, width, channels.
            pixels: The logit.
            mean: The mean logit of every pixel, row by row; 0 if left out.
            std: The standard deviation of the logit of every pixel; 1 if left out.

        Raises:
            ValueError: If there is not one mean and one positive standard deviation per pixel.
        """
        size = math.prod(shape)
        for name, values in (("mean", mean), ("std", std)):
            if values and len(values) != size:
                raise ValueError(f"{name} must have {size} numbers, one per pixel and channel, got {len(values)}")
        if not all(value > 0 for value in std):
            raise ValueError("every std must be above 0")
        self.pixels, self.shape = pixels, tuple(shape)
        self.mean, self.std = mean or (0.0,) * size, std or (1.0,) * size

    def forward(
        self, x: Float[Array, "batch height width channels"]
    ) -> tuple[Float[Array, "batch height width channels"], Float[Array, "batch"]]:
        logits, log_det = self.pixels.logit(x)
        mean, std = self._moments(x)
        return (logits - mean) / std, log_det - sum(map(math.log, self.std))

    def inverse(self, y: Float[Array, "batch height width channels"]) -> Float[Array, "batch height width channels"]:
        mean, std = self._moments(y)
        return self.pixels.expit(mean + std * y)

    def _moments(self, like: Array) -> tuple[Array, ...]:
        return tuple(jnp.asarray(each, like.dtype).reshape(self.shape) for each in (self.mean, self.std))


class NormalQuantiles(AbstractPixelScaling):
    """Every pixel through its own distribution function, and then through the quantile function of the normal one.

    The distribution of a pixel is a histogram whose bins are the same for all pixels. What is left to the flow is how
    pixels depend on each other (a copula): with the identity as flow, the density is that of independent pixels.

    ```python
    import jax.numpy as jnp
    from charax.models.flows import NormalQuantiles

    # Black, below one half, for three images of four; any brighter level is as likely as another.
    scaling = NormalQuantiles((1, 1, 1), edges=(0.0, 0.5, 1.0), probabilities=((0.75, 0.25),))
    y, log_det = scaling.forward(jnp.array([0.25, 0.75]).reshape(2, 1, 1, 1))
    assert jnp.allclose(scaling.inverse(y).ravel(), jnp.array([0.25, 0.75]), atol=1e-6)
    ```
    """

    shape: tuple[int, ...] = eqx.field(static=True)
    edges: tuple[float, ...] = eqx.field(static=True)
    probabilities: tuple[tuple[float, ...], ...] = eqx.field(static=True)

    def __init__(
        self, shape: tuple[int, ...], *, edges: tuple[float, ...], probabilities: tuple[tuple[float, ...], ...]
    ):
        """Check and store the histograms.

        Args:
            shape: The shape of one image: height, width, channels.
            edges: The edges of the bins, from 0 to 1.
            probabilities: The probability of every bin, for every pixel, row by row.

        Raises:
            ValueError: If the edges do not increase from 0 to 1, or the probabilities are not those of each bin of
                each pixel.
        """
        if edges[:1] != (0.0,) or edges[-1:] != (1.0,) or any(np.diff(edges) <= 0):
            raise ValueError(f"edges must increase from 0 to 1, got {edges}")
        size, bins = math.prod(shape), len(edges) - 1
        if len(probabilities) != size or any(len(row) != bins for row in probabilities):
            raise ValueError(f"probabilities must have {size} rows of {bins} numbers, one row per pixel and channel")
        if not all(value > 0 for row in probabilities for value in row):
            raise ValueError("every probability must be above 0: count what never occurred as rare")
        self.shape, self.edges, self.probabilities = tuple(shape), edges, probabilities

    def forward(
        self, x: Float[Array, "batch height width channels"]
    ) -> tuple[Float[Array, "batch height width channels"], Float[Array, "batch"]]:
        left, widths, bins, below, above = self._tables(x.dtype)
        index = jnp.clip(jnp.searchsorted(left, x, side="right") - 1, 0, len(left) - 1)
        probability, low, high = (self._look_up(table, index) for table in (bins, below, above))
        part = jnp.clip((x - left[index]) / widths[index], 0, 1)
        # The smaller one of the two tails, for its precision.
        lower, upper = low + part * probability, high + (1 - part) * probability
        y = ndtri(jnp.maximum(jnp.minimum(lower, upper), _SMALLEST))
        y = jnp.where(lower < upper, y, -y)
        log_density = -0.5 * (jnp.square(y) + math.log(2 * math.pi))
        return y, (jnp.log(probability) - jnp.log(widths[index]) - log_density).sum(axis=(1, 2, 3))

    def inverse(self, y: Float[Array, "batch height width channels"]) -> Float[Array, "batch height width channels"]:
        left, widths, bins, below, above = self._tables(y.dtype)
        lower, upper, is_low = ndtr(y)[..., None], ndtr(-y)[..., None], (y < 0)[..., None]
        bins, below, above = (table.reshape(*self.shape, -1) for table in (bins, below, above))
        started = jnp.where(is_low, lower >= below, upper <= above + bins)
        index = jnp.maximum(started.sum(axis=-1) - 1, 0)
        probability, low, high = (self._look_up(table, index) for table in (bins, below, above))
        part = jnp.where(is_low[..., 0], lower[..., 0] - low, probability + high - upper[..., 0]) / probability
        return left[index] + widths[index] * jnp.clip(part, 0, 1)

    def _tables(self, dtype: jnp.dtype) -> tuple[Array, ...]:
        """The left edges and the widths of the bins; their probabilities, and how likely what is below and above."""
        edges, bins = np.asarray(self.edges), np.asarray(self.probabilities)
        bins = bins / bins.sum(axis=1, keepdims=True)
        below, above = np.cumsum(bins, axis=1) - bins, np.cumsum(bins[:, ::-1], axis=1)[:, ::-1] - bins
        return tuple(jnp.asarray(each, dtype) for each in (edges[:-1], np.diff(edges), bins, below, above))

    def _look_up(self, table: Array, index: Array) -> Array:
        """The entries of every pixel's own row."""
        rows = jnp.arange(math.prod(self.shape)).reshape(self.shape) * (len(self.edges) - 1)
        return table.ravel()[rows + index]


class WhitenedPixels(AbstractPixelScaling):
    """A linear map after which neighbouring pixels, and their colours, are hardly correlated.

    The colours are rotated, and every coefficient of the discrete cosine transform of a rotated colour is divided by
    its standard deviation; the inverse transform makes an image of them again. Natural images have large coefficients
    at low frequencies and tiny ones at high frequencies, which a flow would otherwise have to learn at times very close
    to the data. With the identity as flow, the density is normal with the covariance of such images.

    ```python
    import jax.numpy as jnp
    from charax.models.flows import WhitenedPixels

    # Two pixels whose mean varies ten times as much as their difference.
    scaling = WhitenedPixels((1, 2, 1), mean=(0.5, 0.5), std=(0.1, 0.01), rotation=(1.0,))
    y, log_det = scaling.forward(jnp.array([0.6, 0.6]).reshape(1, 1, 2, 1))
    assert jnp.allclose(y.ravel(), 1.0, atol=1e-5) and jnp.allclose(log_det, -jnp.log(0.1 * 0.01))
    ```
    """

    shape: tuple[int, ...] = eqx.field(static=True)
    mean: tuple[float, ...] = eqx.field(static=True)
    std: tuple[float, ...] = eqx.field(static=True)
    rotation: tuple[float, ...] = eqx.field(static=True)

    def __init__(
        self, shape: tuple[int, ...], *, mean: tuple[float, ...], std: tuple[float, ...], rotation: tuple[float, ...]
    ):
        """Check and store the moments.

        Args:
            shape: The shape of one image: height, width, channels.
            mean: The mean of every pixel, row by row.
            std: The standard deviation of every coefficient of the cosine transform of the rotated channels.
            rotation: An orthogonal matrix, row by row, that rotates the channels.

        Raises:
            ValueError: If there is not one mean and one positive standard deviation per pixel, or the rotation is not
                an orthogonal matrix of the channels.
        """
        size, channels = math.prod(shape), shape[-1]
        for name, values in (("mean", mean), ("std", std)):
            if len(values) != size:
                raise ValueError(f"{name} must have {size} numbers, one per pixel and channel, got {len(values)}")
        if not all(value > 0 for value in std):
            raise ValueError("every std must be above 0")
        if len(rotation) != channels**2:
            raise ValueError(f"rotation must have {channels**2} numbers, got {len(rotation)}")
        matrix = np.reshape(rotation, (channels, channels))
        if not np.allclose(matrix @ matrix.T, np.eye(channels), atol=1e-4):
            raise ValueError("rotation must be an orthogonal matrix")
        self.shape, self.mean, self.std, self.rotation = tuple(shape), mean, std, rotation

    def forward(
        self, x: Float[Array, "batch height width channels"]
    ) -> tuple[Float[Array, "batch height width channels"], Float[Array, "batch"]]:
        mean, std, rotation = self._arrays(x)
        scaled = self._multiply_coefficients((x - mean) @ rotation, 1 / std)
        return scaled, jnp.full(len(x), -sum(map(math.log, self.std)), x.dtype)

    def inverse(self, y: Float[Array, "batch height width channels"]) -> Float[Array, "batch height width channels"]:
        mean, std, rotation = self._arrays(y)
        rotated = self._multiply_coefficients(y, std)
        return jnp.clip(rotated @ rotation.T + mean, 0, 1)

    def _multiply_coefficients(self, y: Array, factors: Array) -> Array:
        """Multiply the coefficients of the cosine transform of every channel."""
        rows, columns = (jnp.asarray(_cosines(side), y.dtype) for side in self.shape[:2])
        coefficients = factors * jnp.einsum("ij,bjkc,lk->bilc", rows, y, columns)
        return jnp.einsum("ij,bikc,kl->bjlc", rows, coefficients, columns)

    def _arrays(self, like: Array) -> tuple[Array, Array, Array]:
        mean, std = (jnp.asarray(each, like.dtype).reshape(self.shape) for each in (self.mean, self.std))
        return mean, std, jnp.asarray(self.rotation, like.dtype).reshape(self.shape[-1], -1)


def _cosines(n: int) -> np.ndarray:
    """The orthogonal matrix of the discrete cosine transform of n numbers, a row per frequency."""
    matrix = np.cos(np.pi / n * np.outer(np.arange(n), np.arange(n) + 0.5)) * math.sqrt(2 / n)
    matrix[0] /= math.sqrt(2)
    return matrix
