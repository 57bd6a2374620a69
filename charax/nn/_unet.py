"""Convolutional networks with a large receptive field: images at several resolutions."""

from collections.abc import Sequence
from itertools import pairwise

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from charax.nn._activations import find_activation
from charax.nn._features import FourierFeatures
from charax.nn._keys import split_key
from charax.nn._layers import Apply, Chain, Conv, Linear, mlp

_TIME_SCALE, _TIME_FREQUENCIES = 6.0, 8


def squeeze(u: Float[Array, "batch height width channels"]) -> Float[Array, "batch rows columns more"]:
    """Turn squares of 2 x 2 pixels into four times the channels.

    ```python
    import jax.numpy as jnp
    from charax.nn import squeeze, unsqueeze

    u = jnp.arange(32.0).reshape(1, 4, 4, 2)
    assert squeeze(u).shape == (1, 2, 2, 8) and (unsqueeze(squeeze(u)) == u).all()
    ```

    Args:
        u: A batch of images with an even height and width.

    Returns:
        Images of half the height and width.
    """
    batch, height, width, channels = u.shape
    squares = u.reshape(batch, height // 2, 2, width // 2, 2, channels)
    return squares.transpose(0, 1, 3, 5, 2, 4).reshape(batch, height // 2, width // 2, 4 * channels)


def unsqueeze(u: Float[Array, "batch rows columns more"]) -> Float[Array, "batch height width channels"]:
    """Invert `squeeze`.

    ```python
    import jax.numpy as jnp
    from charax.nn import unsqueeze

    assert unsqueeze(jnp.ones((1, 2, 2, 8))).shape == (1, 4, 4, 2)
    ```

    Args:
        u: A batch of images whose number of channels is a multiple of four.

    Returns:
        Images of twice the height and width.
    """
    batch, rows, columns, more = u.shape
    squares = u.reshape(batch, rows, columns, more // 4, 2, 2).transpose(0, 1, 4, 2, 5, 3)
    return squares.reshape(batch, 2 * rows, 2 * columns, more // 4)


def count_halvings(shape: Sequence[int], at_most: int) -> int:
    """How many times an image can be halved evenly, down to a side of at least 2.

    ```python
    from charax.nn import count_halvings

    assert count_halvings((28, 28), 3) == 2 and count_halvings((8, 8), 1) == 1 and count_halvings((7, 8), 3) == 0
    ```

    Args:
        shape: Height and width.
        at_most: The maximum.

    Returns:
        The number of halvings.
    """
    height, width = shape[:2]
    if at_most == 0 or height % 2 or width % 2 or min(height, width) < 4:
        return 0
    return 1 + count_halvings((height // 2, width // 2), at_most - 1)


class _Block(eqx.Module):
    """h + conv(act(conv(act(h)) + shift)), the shift from what is constant over the image."""

    first: Conv
    second: Conv
    shift: Linear | None
    activation: Apply

    def __init__(self, width: int, conditions: int, activation: Apply, key: PRNGKeyArray):
        first, second, third = split_key(key, 3)
        self.first, self.second = Conv(width, width, key=first), Conv(width, width, key=second)
        self.shift = Linear(conditions, width, bias=False, key=third) if conditions else None
        self.activation = activation

    def __call__(self, h: Array, condition: Array | None) -> Array:
        inner = self.first(self.activation(h))
        if self.shift is not None and condition is not None:
            inner = inner + self.shift(condition)[:, None, None]
        return h + self.second(self.activation(inner))


class UNet(eqx.Module):
    """Residual blocks of 3x3 convolutions at full, half, quarter … resolution and back, with the input beside the
    result.

    The first and the last channels of the input may be constant over every image: a time in front, classes behind.
    They become a shift in every block, the time with sines and cosines, instead of channels.

    ```python
    import jax
    import jax.numpy as jnp
    from charax.nn import UNet

    network = UNet(4, width=8, halvings=1, timed=True, key=jax.random.key(0))  # a time, and four channels
    assert network(jnp.ones((2, 14, 14, 1 + 4))).shape == (2, 14, 14, network.outputs) == (2, 14, 14, 8 + 4)
    ```
    """

    embedding: Chain | None
    first: Conv
    down: tuple[_Block, ...]
    reductions: tuple[Linear, ...]
    bottom: tuple[_Block, ...]
    expansions: tuple[Linear, ...]
    up: tuple[_Block, ...]
    activation: Apply
    channels: int = eqx.field(static=True)
    timed: bool = eqx.field(static=True)
    context: int = eqx.field(static=True)

    def __init__(
        self,
        channels: int,
        *,
        width: int,
        halvings: int = 1,
        timed: bool = False,
        context: int = 0,
        activation: str = "silu",
        key: PRNGKeyArray,
    ):
        """Build the network.

        Args:
            channels: The number of channels that are images.
            width: The number of hidden channels at full resolution; half as many more at every lower one.
            halvings: How often the side is halved.
            timed: Whether there is a channel in front of them that is the time.
            context: The number of channels behind them that are constant over every image.
            activation: The name of the activation function.
            key: The random key.
        """
        keys = iter(split_key(key, 4 + 4 * halvings))
        widths = [width + level * (width // 2) for level in range(halvings + 1)]
        conditions = width if timed or context else 0
        self.activation = act = Apply(find_activation(activation))
        self.channels, self.timed, self.context = channels, timed, context
        self.embedding = _embed(timed, context, width, act, next(keys)) if conditions else None
        self.first = Conv(channels, width, key=next(keys))
        block = lambda size: _Block(size, conditions, act, next(keys))
        self.down = tuple(block(size) for size in widths[:-1])
        self.reductions = tuple(Linear(4 * fine, coarse, key=next(keys)) for fine, coarse in pairwise(widths))
        self.bottom = (block(widths[-1]), block(widths[-1]))
        self.expansions = tuple(Linear(coarse, 4 * fine, key=next(keys)) for fine, coarse in pairwise(widths))
        self.up = tuple(block(size) for size in widths[:-1])

    @property
    def outputs(self) -> int:
        """The number of channels of the result: the hidden ones, and those of the input."""
        return self.first.kernel.shape[-1] + self.channels

    def __call__(self, h: Float[Array, "batch height width inputs"]) -> Float[Array, "batch height width outputs"]:
        """Apply the network.

        Args:
            h: Images, with a side that can be halved as often as the network does.

        Returns:
            Features of the same size.
        """
        start = int(self.timed)
        constant = jnp.concatenate([h[:, 0, 0, :start], h[:, 0, 0, start + self.channels :]], axis=-1)
        u = h[..., start : start + self.channels]
        condition = None if self.embedding is None else self.embedding(constant)
        h, skipped = self.first(u), []
        for block, reduction in zip(self.down, self.reductions, strict=True):
            h = block(h, condition)
            skipped.append(h)
            h = reduction(squeeze(h))
        for block in self.bottom:
            h = block(h, condition)
        for block, expansion in reversed(list(zip(self.up, self.expansions, strict=True))):
            h = block(skipped.pop() + unsqueeze(expansion(h)), condition)
        return jnp.concatenate([self.activation(h), u], axis=-1)


def _embed(timed: bool, context: int, width: int, activation: Apply, key: PRNGKeyArray) -> Chain:
    first, second = split_key(key)
    groups = [(1, _TIME_SCALE, _TIME_FREQUENCIES)] if timed else []
    features = FourierFeatures([*groups, *([(context, 0.0, 0)] if context else [])], key=first)
    return Chain(
        features, *mlp([features.outputs, width, width], activation=activation.function, key=second).layers, activation
    )


class PooledConvs(eqx.Module):
    """A few numbers per image: convolutions at full and half resolution, their mean over the image, and a perceptron.

    ```python
    import jax
    import jax.numpy as jnp
    from charax.nn import PooledConvs

    network = PooledConvs(4, 3, width=8, timed=True, key=jax.random.key(0))
    assert network(jnp.ones((2, 14, 14, 1 + 4))).shape == (2, 3)
    ```
    """

    body: UNet
    head: Chain

    def __init__(
        self,
        channels: int,
        outputs: int,
        *,
        width: int,
        halvings: int = 0,
        timed: bool = False,
        context: int = 0,
        activation: str = "silu",
        key: PRNGKeyArray,
    ):
        """Build the network.

        Args:
            channels: The number of channels that are images.
            outputs: How many numbers per image.
            width: The number of hidden channels.
            halvings: As in `UNet`.
            timed: As in `UNet`.
            context: As in `UNet`.
            activation: As in `UNet`.
            key: The random key.
        """
        first, second = split_key(key)
        self.body = UNet(
            channels,
            width=width,
            halvings=halvings,
            timed=timed,
            context=context,
            activation=activation,
            key=first,
        )
        constants = int(timed) + context
        self.head = mlp([self.body.outputs + constants, 2 * width, outputs], activation=activation, key=second)

    def __call__(self, h: Float[Array, "batch height width inputs"]) -> Float[Array, "batch outputs"]:
        """Apply the network.

        Args:
            h: Images.

        Returns:
            The numbers of every image.
        """
        start, channels = int(self.body.timed), self.body.channels
        constant = jnp.concatenate([h[:, 0, 0, :start], h[:, 0, 0, start + channels :]], axis=-1)
        return self.head(jnp.concatenate([self.body(h).mean(axis=(1, 2)), constant], axis=-1))
