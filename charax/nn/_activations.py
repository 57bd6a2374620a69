"""The activations of the paper's models by name."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

Activation = Callable[[Float[Array, "*shape"]], Float[Array, "*shape"]]


def _softshrink(h: Float[Array, "*shape"]) -> Float[Array, "*shape"]:
    return jnp.sign(h) * jax.nn.relu(jnp.abs(h) - 0.5)


def _rrelu(h: Float[Array, "*shape"]) -> Float[Array, "*shape"]:
    # RReLU draws its negative slope from U[1/8, 1/3] at every call; a field that changes between two
    # evaluations is no field, so the slope is held at its mean.
    return jax.nn.leaky_relu(h, negative_slope=11 / 48)


def _identity(h: Float[Array, "*shape"]) -> Float[Array, "*shape"]:
    return h


@dataclass(frozen=True)
class Sharpened:
    """An activation of `sharpness` times what it is given: a step of the same height over a shorter way.

    Weights before it begin, and move with every step of training, as if they were that much larger.

    ```python
    import jax.numpy as jnp
    from charax.nn import Sharpened, find_activation

    assert Sharpened(find_activation("relu"), 3.0)(jnp.array(2.0)) == 6
    ```
    """

    activation: Activation
    sharpness: float

    def __call__(self, h: Float[Array, "*shape"]) -> Float[Array, "*shape"]:
        return self.activation(self.sharpness * h)


ACTIVATIONS: Mapping[str, Activation] = MappingProxyType(
    {
        "elu": jax.nn.elu,
        "gelu": jax.nn.gelu,
        "hard-sigmoid": jax.nn.hard_sigmoid,
        "hard-tanh": jax.nn.hard_tanh,
        "identity": _identity,
        "log-sigmoid": jax.nn.log_sigmoid,
        "relu": jax.nn.relu,
        "relu6": jax.nn.relu6,
        "rrelu": _rrelu,
        "selu": jax.nn.selu,
        "sigmoid": jax.nn.sigmoid,
        "silu": jax.nn.silu,
        "softplus": jax.nn.softplus,
        "softshrink": _softshrink,
        "softsign": jax.nn.soft_sign,
        "tanh": jnp.tanh,
    }
)


def find_activation(activation: str | Activation) -> Activation:
    """Look an activation up by name; a function is returned as it is.

    ```python
    from charax.nn import find_activation

    assert find_activation("relu6")(7.0) == 6
    ```
    """
    if callable(activation):
        return activation
    if activation not in ACTIVATIONS:
        raise ValueError(f"unknown activation {activation!r}; choose from {', '.join(ACTIVATIONS)}, or give a function")
    return ACTIVATIONS[activation]
