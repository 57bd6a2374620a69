"""The fields of flows: plain or characteristic, for vectors and for images."""

import math
from collections.abc import Sequence

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from charax.fields import AbstractField, CharacteristicField, JointJacobian, NetworkVelocity, PlainField, Read
from charax.models._methods import parse_method
from charax.nn import (
    Apply,
    Chain,
    Conv,
    Flatten,
    FourierFeatures,
    Linear,
    PooledConvs,
    Sharpened,
    UNet,
    count_halvings,
    find_activation,
    mlp,
    split_key,
)

_TIME_FREQUENCIES = (1, 6.0, 4)
"""s is one input with 4 frequencies of its own, of standard deviation 6."""

_BOUNDED = ("hard-sigmoid", "hard-tanh", "relu6", "sigmoid", "softsign", "tanh")
"""Activations with bounded values."""


def vector_flow_field(
    method: str,
    features: int,
    *,
    hidden: Sequence[int] = (64, 64),
    velocity_hidden: Sequence[int] = (16, 16),
    characteristic_dim: int = 8,
    reads: Sequence[Read] = ("s", "u"),
    context: int = 0,
    activation: str = "tanh",
    sharpness: float = 1.0,
    frequencies: int = 0,
    frequency_scale: float = 4.0,
    key: PRNGKeyArray,
) -> AbstractField:
    """Build the field of a flow of rows of numbers.

    The plain one is a perceptron of what it reads. The characteristic one is a velocity that reads the same, times a
    joint Jacobian of u alone, which is bounded: with an activation that is not, its last hidden layer has tanh instead.
    Either grows at most linearly in u, so that solves from points far away do not diverge.

    ```python
    import jax
    from charax.models.flows import vector_flow_field
    from charax.nn import count_parameters

    toy = vector_flow_field("c-node", 2, hidden=(32, 32), reads=("u",), key=jax.random.key(0))
    assert count_parameters(toy) == 2_136
    ```

    Args:
        method: "node" for the plain field, "c-node" for the characteristic one.
        features: The number of columns.
        hidden: The widths of the hidden layers of the plain field, or of the Jacobian.
        velocity_hidden: The widths of the hidden layers of the velocity.
        characteristic_dim: The number k of characteristic dimensions.
        reads: What the plain field or the velocity reads, of "s", "u" and "context".
        context: The number of columns of the context, if it is read.
        activation: The name of the activation function.
        sharpness: The factor inside the activations. Above 1 the field may change over shorter distances, for densities
            with thin parts, and is smaller before training.
        frequencies: The number of sines and cosines of u and s in front of every network; 0 for none. They, too, are
            for densities with thin parts, and suit flow matching better than `sharpness`.
        frequency_scale: The standard deviation of the frequencies of u, in radians per unit of u.
        key: Random key of the initial weights.

    Returns:
        The field.

    Raises:
        ValueError: If the method changes the size of the state, or an argument does not suit the others.
    """
    is_characteristic = _is_characteristic(method)
    if bool(context) != ("context" in reads):
        raise ValueError('a field that reads "context" needs its number of columns, context=…, and no other takes one')
    if not (math.isfinite(sharpness) and sharpness > 0):
        raise ValueError(f"sharpness must be a number above 0, got {sharpness}")
    act = find_activation(activation) if sharpness == 1 else Sharpened(find_activation(activation), sharpness)
    first, second, third, fourth, fifth = split_key(key, 5)
    state, timed = (features, frequency_scale, frequencies), [_TIME_FREQUENCIES] if "s" in reads else []
    read = _Inputs([*timed, state, *([(context, 0.0, 0)] if context else [])], frequencies, fourth)
    if not is_characteristic:
        network = mlp([read.size, *hidden, features], activation=act, key=first)
        return PlainField(read.prepend(_scale_last(network, 1 / sharpness)), reads=reads)
    network = mlp([read.size, *velocity_hidden, characteristic_dim], activation=act, key=first)
    velocity = NetworkVelocity(read.prepend(_scale_last(network, 1 / sharpness)), characteristic_dim, reads=reads)
    own = _Inputs([state], frequencies, fifth)
    final = act if activation in _BOUNDED else find_activation("tanh")
    body = own.prepend(mlp([own.size, *hidden], activation=act, final=final, key=second))
    return CharacteristicField(
        velocity,
        JointJacobian(body, hidden=hidden[-1], channels=features, characteristic_dim=characteristic_dim, key=third),
    )


def _is_characteristic(method: str) -> bool:
    parts = parse_method(method)
    if parts.lift != "node":
        raise ValueError(f"a flow keeps the size of its data, so {method!r} cannot be one: choose node or c-node")
    return parts.characteristic


class _Inputs:
    """The inputs of a network, with or without Fourier features."""

    def __init__(self, groups: Sequence[tuple[int, float, int]], frequencies: int, key: PRNGKeyArray):
        self.features = FourierFeatures(groups, key=key) if frequencies else None
        self.size = sum(inputs for inputs, _, _ in groups) if self.features is None else self.features.outputs

    def prepend(self, network: Chain) -> Chain:
        return network if self.features is None else Chain(self.features, *network.layers)


def _scale_last(network: Chain, factor: float) -> Chain:
    *layers, last = network.layers
    return Chain(*layers, jax.tree.map(lambda array: factor * array, last))


class TimedConvs(eqx.Module):
    """3x3 convolutions with the time as one more channel of each; the first channel of the input is the time."""

    layers: tuple[Conv, ...]
    activation: Apply

    def __init__(self, channels: Sequence[int], *, activation: str = "softplus", key: PRNGKeyArray):
        keys = split_key(key, len(channels) - 1)
        self.layers = tuple(
            Conv(1 + inputs, outputs, key=key)
            for inputs, outputs, key in zip(channels[:-1], channels[1:], keys, strict=True)
        )
        self.activation = Apply(find_activation(activation))

    def __call__(self, h: Float[Array, "batch height width channels"]) -> Float[Array, "batch height width outputs"]:
        time = h[..., :1]
        *layers, last = self.layers
        for layer in layers:
            h = jnp.concatenate([time, self.activation(layer(h))], axis=-1)
        return last(h)


def image_flow_field(
    method: str,
    shape: tuple[int, int, int],
    *,
    hidden: Sequence[int] = (64, 64, 64),
    characteristic_dim: int = 2,
    velocity_width: int = 4,
    activation: str = "softplus",
    key: PRNGKeyArray,
) -> AbstractField:
    """Build the convolutional field of a flow of images.

    The plain one is FFJORD's: 3x3 convolutions with the time as a channel of each. The characteristic one has
    convolutions of u for all k derivatives, and a velocity of (s, u) with k numbers per image.

    ```python
    import jax
    from charax.models.flows import image_flow_field
    from charax.nn import count_parameters

    ffjord = image_flow_field("node", (28, 28, 1), key=jax.random.key(0))
    assert count_parameters(ffjord) == 76_810
    ```

    Args:
        method: "node" for the plain field, "c-node" for the characteristic one.
        shape: The shape of one image: height, width, channels.
        hidden: The numbers of hidden channels of the plain field, or of the Jacobian.
        characteristic_dim: The number k of characteristic dimensions.
        velocity_width: The number of hidden channels of the velocity.
        activation: The name of the activation function.
        key: Random key of the initial weights.

    Returns:
        The field.

    Raises:
        ValueError: If the method changes the size of the state.
    """
    is_characteristic = _is_characteristic(method)
    height, width, channels = shape
    if not is_characteristic:
        return PlainField(TimedConvs([channels, *hidden, channels], activation=activation, key=key))
    keys = split_key(key, len(hidden) + 5)
    act, p = Apply(find_activation(activation)), velocity_width
    velocity = Chain(
        Conv(1 + channels, p, key=keys[0]),
        act,
        Conv(p, p, key=keys[1]),
        act,
        Linear(p, 3, key=keys[2]),
        Flatten(),
        Linear(3 * height * width, characteristic_dim, key=keys[3]),
    )
    layers = []
    for inputs, outputs, layer_key in zip((channels, *hidden[:-1]), hidden, keys[5:], strict=True):
        layers += [Conv(inputs, outputs, key=layer_key), act]
    return CharacteristicField(
        NetworkVelocity(velocity, characteristic_dim),
        JointJacobian(
            Chain(*layers),
            hidden=hidden[-1],
            channels=channels,
            characteristic_dim=characteristic_dim,
            key=keys[4],
        ),
    )


def unet_flow_field(
    method: str,
    shape: tuple[int, int, int],
    *,
    width: int = 32,
    halvings: int = 1,
    characteristic_dim: int = 32,
    velocity_width: int = 16,
    context: int = 0,
    key: PRNGKeyArray,
) -> AbstractField:
    """Build a field of images with a large receptive field, for flow matching.

    The plain one is a U-Net of (s, u) and the context. The characteristic one has a U-Net of u for all k derivatives,
    and a velocity of (s, u) and the context with k numbers per image.

    ```python
    import jax
    from charax.models.flows import unet_flow_field
    from charax.nn import count_parameters

    field = unet_flow_field("c-node", (14, 14, 4), key=jax.random.key(0))
    assert count_parameters(field) < 340_000
    ```

    Args:
        method: "node" for the plain field, "c-node" for the characteristic one.
        shape: The shape of the state: height, width, channels.
        width: The number of hidden channels at full resolution.
        halvings: How often the side is halved, as far as it can be halved evenly.
        characteristic_dim: The number k of characteristic dimensions.
        velocity_width: The number of hidden channels of the velocity.
        context: The number of columns of the context; 0 for none.
        key: Random key of the initial weights.

    Returns:
        The field.

    Raises:
        ValueError: If the method changes the size of the state.
    """
    is_characteristic = _is_characteristic(method)
    channels, halvings = shape[2], count_halvings(shape, halvings)
    reads = ("s", "u", "context") if context else ("s", "u")
    first, second, third = split_key(key, 3)
    if not is_characteristic:
        body = UNet(channels, width=width, halvings=halvings, timed=True, context=context, key=first)
        return PlainField(Chain(body, Linear(body.outputs, channels, key=second)), reads=reads)
    velocity = PooledConvs(
        channels,
        characteristic_dim,
        width=velocity_width,
        halvings=halvings,
        timed=True,
        context=context,
        key=first,
    )
    body = UNet(channels, width=width, halvings=halvings, key=second)
    return CharacteristicField(
        NetworkVelocity(velocity, characteristic_dim, reads=reads),
        JointJacobian(body, hidden=body.outputs, channels=channels, characteristic_dim=characteristic_dim, key=third),
    )
