"""Activations by name."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

Activation = Callable[[Float[Array, "*shape"]], Float[Array, "*shape"]]
"""A function that is applied to every number."""


def _softshrink(h: Float[Array, "*shape"]) -> Float[Array, "*shape"]:
    return jnp.sign(h) * jax.nn.relu(jnp.abs(h) - 0.5)


def _rrelu(h: Float[Array, "*shape"]) -> Float[Array, "*shape"]:
    # RReLU draws its negative slope from U[1/8, 1/3] at every call. A vector field must be deterministic, so the slope
    # is fixed at its mean.
    return jax.nn.leaky_relu(h, negative_slope=11 / 48)


def _identity(h: Float[Array, "*shape"]) -> Float[Array, "*shape"]:
    return h


@dataclass(frozen=True)
class Sharpened:
    """An activation whose input is multiplied by `sharpness`.

    The weights of the layer before it start, and change with every training step, as if they were that much larger.

    ```python
    import jax.numpy as jnp
    from charax.nn import Sharpened, find_activation

    assert Sharpened(find_activation("relu"), 3.0)(jnp.array(2.0)) == 6
    ```
    """

    activation: Activation
    """The activation."""
    sharpness: float
    """The factor."""

    def __call__(self, h: Float[Array, "*shape"]) -> Float[Array, "*shape"]:
        """Apply the activation.

        Args:
            h: Features.

        Returns:
            `activation(sharpness * h)`.
        """
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
"""The activations that have a name."""


def find_activation(activation: str | Activation) -> Activation:
    """Look an activation up by name; a function is returned as it is.

    ```python
    from charax.nn import find_activation

    assert find_activation("relu6")(7.0) == 6
    ```

    Args:
        activation: A name in `ACTIVATIONS`, or a function.

    Returns:
        The function.

    Raises:
        ValueError: If the name is unknown.
    """
    if callable(activation):
        return activation
    if activation not in ACTIVATIONS:
        raise ValueError(f"unknown activation {activation!r}; choose from {', '.join(ACTIVATIONS)}, or give a function")
    return ACTIVATIONS[activation]
