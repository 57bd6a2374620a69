"""Layers that map a whole batch `[batch, *space, channels]` to one with other channels."""

import math
from collections.abc import Callable, Sequence

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, Float, PRNGKeyArray

from charax.nn._activations import Activation, find_activation
from charax.nn._convolution import convolve
from charax.nn._keys import split_key

Network = Callable[[Float[Array, "batch *_"]], Float[Array, "batch *_"]]
"""Anything that maps a batch to a batch."""


def _draw(key: PRNGKeyArray, shape: tuple[int, ...], sample: Callable[[np.random.Generator], np.ndarray]) -> Array:
    # Drawn by NumPy, seeded by the key: XLA would compile its own generator for every shape, half a second each.
    dtype = jnp.result_type(float)
    draw = lambda words: sample(np.random.default_rng(np.asarray(words).tolist())).astype(dtype)
    words = jax.random.key_data(key)
    if isinstance(words, Tracer):
        return jax.pure_callback(draw, jax.ShapeDtypeStruct(shape, dtype), words, vmap_method="sequential")
    return jax.device_put(draw(np.asarray(words)))  # which compiles nothing, as `jnp.asarray` would for every shape


def _uniform(key: PRNGKeyArray, shape: tuple[int, ...], fan_in: int) -> Array:
    bound = 1 / math.sqrt(max(fan_in, 1))
    return _draw(key, shape, lambda generator: generator.uniform(-bound, bound, shape))


def normal(key: PRNGKeyArray, shape: tuple[int, ...]) -> Float[Array, "*shape"]:
    """Normal numbers for initial weights."""
    return _draw(key, shape, lambda generator: generator.normal(size=shape))


class Linear(eqx.Module):
    """An affine map of the last axis: a dense layer for vectors, a 1x1 convolution for images.

    ```python
    import jax
    from charax.nn import Linear

    layer = Linear(3, 5, key=jax.random.key(0))
    assert layer(jax.numpy.ones((2, 8, 8, 3))).shape == (2, 8, 8, 5)
    ```
    """

    weight: Float[Array, "inputs outputs"]
    bias: Float[Array, "outputs"] | None

    def __init__(self, inputs: int, outputs: int, *, bias: bool = True, key: PRNGKeyArray):
        """Initialize weights and bias uniformly within ±1/√inputs.

        Args:
            inputs: The number of input channels.
            outputs: The number of output channels.
            bias: Whether to add a bias.
            key: The random key.
        """
        weight_key, bias_key = split_key(key)
        self.weight = _uniform(weight_key, (inputs, outputs), inputs)
        self.bias = _uniform(bias_key, (outputs,), inputs) if bias else None

    def __call__(self, h: Float[Array, "batch *space inputs"]) -> Float[Array, "batch *space outputs"]:
        """Apply the layer.

        Args:
            h: Features.

        Returns:
            The features times the weight, plus the bias.
        """
        out = h @ self.weight
        return out if self.bias is None else out + self.bias


class Conv(eqx.Module):
    """A same-padded, stride-one convolution of NHWC images.

    ```python
    import jax
    from charax.nn import Conv

    layer = Conv(1, 4, size=3, bias=False, key=jax.random.key(0))
    assert layer(jax.numpy.ones((2, 28, 28, 1))).shape == (2, 28, 28, 4)
    ```
    """

    kernel: Float[Array, "size size inputs outputs"]
    bias: Float[Array, "outputs"] | None

    def __init__(self, inputs: int, outputs: int, *, size: int = 3, bias: bool = True, key: PRNGKeyArray):
        """Initialize kernel and bias uniformly within ±1/√(inputs·size²).

        Args:
            inputs: The number of input channels.
            outputs: The number of output channels.
            size: The side of the kernel, an odd number of pixels.
            bias: Whether to add a bias.
            key: The random key.
        """
        kernel_key, bias_key = split_key(key)
        fan_in = inputs * size * size
        self.kernel = _uniform(kernel_key, (size, size, inputs, outputs), fan_in)
        self.bias = _uniform(bias_key, (outputs,), fan_in) if bias else None

    def __call__(self, h: Float[Array, "batch height width inputs"]) -> Float[Array, "batch height width outputs"]:
        """Apply the layer.

        Args:
            h: Images.

        Returns:
            Images of the same size.
        """
        out = convolve(h, self.kernel)
        return out if self.bias is None else out + self.bias


class InstanceNorm(eqx.Module):
    """Normalize each channel of each image by its own mean and variance.

    With `affine=True` it is a group norm with one group per channel.

    ```python
    import jax.numpy as jnp
    from charax.nn import InstanceNorm

    out = InstanceNorm(2)(jnp.arange(32.0).reshape(1, 4, 4, 2))
    assert jnp.allclose(out.mean((1, 2)), 0, atol=1e-5)
    ```
    """

    scale: Float[Array, "channels"] | None
    shift: Float[Array, "channels"] | None
    epsilon: float = eqx.field(static=True)

    def __init__(self, channels: int, *, affine: bool = False, epsilon: float = 1e-5):
        """Initialize the scale to 1 and the shift to 0.

        Args:
            channels: The number of channels.
            affine: Whether to learn a scale and a shift per channel.
            epsilon: Added to the variance.
        """
        self.scale = jnp.ones(channels) if affine else None
        self.shift = jnp.zeros(channels) if affine else None
        self.epsilon = epsilon

    def __call__(self, h: Float[Array, "batch height width channels"]) -> Float[Array, "batch height width channels"]:
        """Normalize images.

        Args:
            h: Images.

        Returns:
            Images of the same size.
        """
        centred = h - h.mean(axis=(1, 2), keepdims=True)
        variance = jnp.square(centred).mean(axis=(1, 2), keepdims=True)
        out = centred * jax.lax.rsqrt(variance + self.epsilon)
        return out if self.scale is None or self.shift is None else out * self.scale + self.shift


class AveragePool(eqx.Module):
    """Adaptive average pooling of NHWC images to `size` x `size` pixels.

    Bin i of m over a side of n pixels covers pixels floor(i·n/m) to ceil((i+1)·n/m), as in PyTorch.

    ```python
    import jax.numpy as jnp
    from charax.nn import AveragePool

    assert AveragePool(8)(jnp.ones((2, 28, 28, 6))).shape == (2, 8, 8, 6)
    ```
    """

    size: int = eqx.field(static=True)
    """The side of the output."""

    def __call__(self, h: Float[Array, "batch height width channels"]) -> Float[Array, "batch size size channels"]:
        """Pool images.

        Args:
            h: Images.

        Returns:
            Images of `size` x `size` pixels.

        Raises:
            ValueError: If the images are smaller than that.
        """
        height, width = h.shape[1:3]
        if min(height, width) < self.size:
            raise ValueError(f"cannot pool {height}x{width} pixels to {self.size}x{self.size}; use a smaller size")
        rows, columns = self._bins(height, h.dtype), self._bins(width, h.dtype)
        return jnp.einsum("ph,qw,bhwc->bpqc", rows, columns, h)

    def _bins(self, pixels: int, dtype: jnp.dtype) -> Array:
        starts = [i * pixels // self.size for i in range(self.size)]
        stops = [-(-(i + 1) * pixels // self.size) for i in range(self.size)]
        pixel = jnp.arange(pixels)
        inside = [(pixel >= start) & (pixel < stop) for start, stop in zip(starts, stops, strict=True)]
        bins = jnp.stack(inside).astype(dtype)
        return bins / bins.sum(axis=1, keepdims=True)


class Patches(eqx.Module):
    """Rearrange patches of `size` x `size` pixels into channels; incomplete patches are padded with 0.

    ```python
    import jax.numpy as jnp
    from charax.nn import Patches

    assert Patches(2)(jnp.ones((5, 28, 27, 1))).shape == (5, 14, 14, 4)
    ```
    """

    size: int = eqx.field(static=True)
    """The side of a patch."""

    def __call__(self, h: Float[Array, "batch height width channels"]) -> Float[Array, "batch rows columns patch"]:
        """Rearrange images.

        Args:
            h: Images.

        Returns:
            Images with one pixel per patch.
        """
        batch, height, width, channels = h.shape
        h = jnp.pad(h, ((0, 0), (0, -height % self.size), (0, -width % self.size), (0, 0)))
        rows, columns = h.shape[1] // self.size, h.shape[2] // self.size
        squares = h.reshape(batch, rows, self.size, columns, self.size, channels).swapaxes(2, 3)
        return squares.reshape(batch, rows, columns, self.size**2 * channels)


class Flatten(eqx.Module):
    """Join all axes but the batch.

    ```python
    import jax.numpy as jnp
    from charax.nn import Flatten

    assert Flatten()(jnp.ones((2, 4, 4, 3))).shape == (2, 48)
    ```
    """

    def __call__(self, h: Float[Array, "batch *space"]) -> Float[Array, "batch features"]:
        """Flatten a batch.

        Args:
            h: A batch.

        Returns:
            One vector per sample.
        """
        return h.reshape(h.shape[0], -1)


class Apply(eqx.Module):
    """An activation as a layer.

    ```python
    import jax.numpy as jnp
    from charax.nn import Apply

    assert Apply("relu")(jnp.array([[-1.0]])) == 0
    ```
    """

    function: Activation = eqx.field(static=True, converter=find_activation)
    """A name in `ACTIVATIONS`, or a function."""

    def __call__(self, h: Float[Array, "*shape"]) -> Float[Array, "*shape"]:
        """Apply the activation.

        Args:
            h: Features.

        Returns:
            The activated features.
        """
        return self.function(h)


class Chain(eqx.Module):
    """A sequence of layers.

    ```python
    import jax
    from charax.nn import Apply, Chain, Linear

    network = Chain(Linear(2, 3, key=jax.random.key(0)), Apply("tanh"))
    assert network(jax.numpy.ones((4, 2))).shape == (4, 3)
    ```
    """

    layers: tuple[Network, ...]

    def __init__(self, *layers: Network):
        """Chain layers.

        Args:
            *layers: The layers, from input to output.
        """
        self.layers = layers

    def __call__(self, h: Float[Array, "batch *inputs"]) -> Float[Array, "batch *outputs"]:
        """Apply all layers.

        Args:
            h: The input of the first layer.

        Returns:
            The output of the last layer.
        """
        for layer in self.layers:
            h = layer(h)
        return h


def mlp(
    sizes: Sequence[int],
    *,
    activation: str | Activation = "tanh",
    final: str | Activation | None = None,
    key: PRNGKeyArray,
) -> Chain:
    """Build a multi-layer perceptron of the last axis.

    ```python
    import jax
    from charax.nn import mlp

    network = mlp([2, 16, 16, 8], key=jax.random.key(0))
    assert network(jax.numpy.ones((4, 2))).shape == (4, 8)
    ```

    Args:
        sizes: The widths of all layers, from input to output.
        activation: Between the layers: a name in `ACTIVATIONS`, or a function.
        final: After the last layer; nothing if left out.
        key: The random key of all layers.

    Returns:
        The network.

    Raises:
        ValueError: If there are fewer than two sizes, or one is less than 1.
    """
    if len(sizes) < 2 or min(sizes) < 1:
        raise ValueError(f"sizes must be two or more positive widths, from input to output, got {list(sizes)}")
    keys = split_key(key, len(sizes) - 1)
    layers: list[Network] = []
    for inputs, outputs, layer_key in zip(sizes[:-1], sizes[1:], keys, strict=True):
        layers += [Linear(inputs, outputs, key=layer_key), Apply(activation)]
    return Chain(*layers[:-1], *([] if final is None else [Apply(final)]))
