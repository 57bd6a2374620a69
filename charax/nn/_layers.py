"""Layers that take a whole batch: `[batch, *space, channels]` in, the same with other channels out."""

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

Network = Callable[[Float[Array, "batch *_"]], Float[Array, "batch *_"]]
"""Anything that maps a batch to a batch. What it accepts and returns is for its owner to say."""


def _uniform(key: PRNGKeyArray, shape: tuple[int, ...], fan_in: int) -> Array:
    # Drawn by NumPy, seeded by the key: XLA would compile its own generator for every shape anew, half a second each.
    bound, dtype = 1 / math.sqrt(max(fan_in, 1)), jnp.result_type(float)

    def draw(words: Array | np.ndarray) -> np.ndarray:
        generator = np.random.default_rng(np.asarray(words).tolist())
        return generator.uniform(-bound, bound, shape).astype(dtype)

    words = jax.random.key_data(key)
    if isinstance(words, Tracer):
        return jax.pure_callback(draw, jax.ShapeDtypeStruct(shape, dtype), words, vmap_method="sequential")
    return jnp.asarray(draw(np.asarray(words)))


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
        weight_key, bias_key = jax.random.split(key)
        self.weight = _uniform(weight_key, (inputs, outputs), inputs)
        self.bias = _uniform(bias_key, (outputs,), inputs) if bias else None

    def __call__(self, h: Float[Array, "batch *space inputs"]) -> Float[Array, "batch *space outputs"]:
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
        kernel_key, bias_key = jax.random.split(key)
        fan_in = inputs * size * size
        self.kernel = _uniform(kernel_key, (size, size, inputs, outputs), fan_in)
        self.bias = _uniform(bias_key, (outputs,), fan_in) if bias else None

    def __call__(self, h: Float[Array, "batch height width inputs"]) -> Float[Array, "batch height width outputs"]:
        out = convolve(h, self.kernel)
        return out if self.bias is None else out + self.bias


class InstanceNorm(eqx.Module):
    """Normalise each channel of each image by its own mean and variance.

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
        self.scale = jnp.ones(channels) if affine else None
        self.shift = jnp.zeros(channels) if affine else None
        self.epsilon = epsilon

    def __call__(self, h: Float[Array, "batch height width channels"]) -> Float[Array, "batch height width channels"]:
        centred = h - h.mean(axis=(1, 2), keepdims=True)
        variance = jnp.square(centred).mean(axis=(1, 2), keepdims=True)
        out = centred * jax.lax.rsqrt(variance + self.epsilon)
        return out if self.scale is None or self.shift is None else out * self.scale + self.shift


class AveragePool(eqx.Module):
    """Average NHWC images down to `size` x `size`, also where the sides do not divide evenly.

    Bin i of m over a side of n pixels covers pixels floor(i·n/m) to ceil((i+1)·n/m), as PyTorch's
    adaptive pooling does.

    ```python
    import jax.numpy as jnp
    from charax.nn import AveragePool

    assert AveragePool(8)(jnp.ones((2, 28, 28, 6))).shape == (2, 8, 8, 6)
    ```
    """

    size: int = eqx.field(static=True)

    def __call__(self, h: Float[Array, "batch height width channels"]) -> Float[Array, "batch size size channels"]:
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
    """Join squares of `size` x `size` pixels into channels; a border that does not fill a square is padded with 0.

    ```python
    import jax.numpy as jnp
    from charax.nn import Patches

    assert Patches(2)(jnp.ones((5, 28, 27, 1))).shape == (5, 14, 14, 4)
    ```
    """

    size: int = eqx.field(static=True)

    def __call__(self, h: Float[Array, "batch height width channels"]) -> Float[Array, "batch rows columns patch"]:
        batch, height, width, channels = h.shape
        h = jnp.pad(h, ((0, 0), (0, -height % self.size), (0, -width % self.size), (0, 0)))
        rows, columns = h.shape[1] // self.size, h.shape[2] // self.size
        squares = h.reshape(batch, rows, self.size, columns, self.size, channels).swapaxes(2, 3)
        return squares.reshape(batch, rows, columns, self.size**2 * channels)


class Flatten(eqx.Module):
    """Join everything but the batch into one axis."""

    def __call__(self, h: Float[Array, "batch *space"]) -> Float[Array, "batch features"]:
        return h.reshape(h.shape[0], -1)


class Apply(eqx.Module):
    """An activation as a layer, by name or as a function."""

    function: Activation = eqx.field(static=True, converter=find_activation)

    def __call__(self, h: Float[Array, "*shape"]) -> Float[Array, "*shape"]:
        return self.function(h)


class Chain(eqx.Module):
    """Layers one after the other."""

    layers: tuple[Network, ...]

    def __init__(self, *layers: Network):
        self.layers = layers

    def __call__(self, h: Float[Array, "batch *inputs"]) -> Float[Array, "batch *outputs"]:
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
    """A multi-layer perceptron of the last axis, with `sizes` from input to output.

    ```python
    import jax
    from charax.nn import mlp

    network = mlp([2, 16, 16, 8], key=jax.random.key(0))
    assert network(jax.numpy.ones((4, 2))).shape == (4, 8)
    ```
    """
    if len(sizes) < 2 or min(sizes) < 1:
        raise ValueError(f"sizes must be two or more positive widths, from input to output, got {list(sizes)}")
    keys = jax.random.split(key, len(sizes) - 1)
    layers: list[Network] = []
    for inputs, outputs, layer_key in zip(sizes[:-1], sizes[1:], keys, strict=True):
        layers += [Linear(inputs, outputs, key=layer_key), Apply(activation)]
    return Chain(*layers[:-1], *([] if final is None else [Apply(final)]))
