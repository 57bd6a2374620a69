"""The velocity of a characteristic: dx/ds = a(s, x, u; z), where we walk."""

from abc import abstractmethod
from collections.abc import Callable, Iterable

import equinox as eqx
from jaxtyping import Array, Float

from charax.fields._reads import Condition, Read, Scalar, as_reads, look
from charax.nn import Network


def check_characteristic_dim(characteristic_dim: int) -> int:
    """The number of characteristic dimensions, or a sentence about why it cannot be that."""
    if characteristic_dim < 1:
        raise ValueError(
            f"characteristic_dim must be at least 1, got {characteristic_dim}; "
            "for no characteristic at all, that is a plain Neural ODE, use PlainField"
        )
    return characteristic_dim


class AbstractVelocity(eqx.Module):
    """dx/ds, k numbers per sample."""

    characteristic_dim: eqx.AbstractVar[int]
    reads: eqx.AbstractVar[tuple[Read, ...]]

    @abstractmethod
    def __call__(
        self,
        s: Scalar,
        x: Float[Array, "batch k"] | None,
        u: Float[Array, "batch *state"],
        z: Condition,
    ) -> Float[Array, "batch k"]:
        """The velocity at (s, x, u), given the condition z of this walk."""


class NetworkVelocity(AbstractVelocity):
    """A learned velocity that looks at whichever of s, x, u, u0 and an outside context it is told to.

    ```python
    import jax
    from charax.fields import NetworkVelocity
    from charax.nn import mlp

    velocity = NetworkVelocity(mlp([1 + 2, 16, 8], key=jax.random.key(0)), 8, reads=("s", "u0"))
    ```
    """

    network: Network
    characteristic_dim: int = eqx.field(static=True, converter=check_characteristic_dim)
    reads: tuple[Read, ...] = eqx.field(static=True)

    def __init__(self, network: Network, characteristic_dim: int, *, reads: Iterable[str] = ("s", "u")):
        """`network` maps what is named in `reads`, joined along the last axis, to k numbers."""
        self.network = network
        self.characteristic_dim = characteristic_dim
        self.reads = as_reads(reads)

    def __call__(
        self,
        s: Scalar,
        x: Float[Array, "batch k"] | None,
        u: Float[Array, "batch *state"],
        z: Condition,
    ) -> Float[Array, "batch k"]:
        return look(self.network, self.reads, s, x, u, z)


class FunctionVelocity(AbstractVelocity):
    """A velocity that is known, not learned: any function of (s, x, u, z).

    ```python
    import jax.numpy as jnp
    from charax.fields import FunctionVelocity

    walk = FunctionVelocity(lambda s, x, u, z: jnp.ones_like(x), 2, reads=("x",))
    ```
    """

    function: Callable[..., Float[Array, "batch k"]]
    characteristic_dim: int = eqx.field(static=True, converter=check_characteristic_dim)
    reads: tuple[Read, ...] = eqx.field(static=True)

    def __init__(
        self, function: Callable[..., Float[Array, "batch k"]], characteristic_dim: int, *, reads: Iterable[str]
    ):
        """`function(s, x, u, z)` may use only what is named in `reads`; the rest may be None."""
        self.function = function
        self.characteristic_dim = characteristic_dim
        self.reads = as_reads(reads)

    def __call__(
        self,
        s: Scalar,
        x: Float[Array, "batch k"] | None,
        u: Float[Array, "batch *state"],
        z: Condition,
    ) -> Float[Array, "batch k"]:
        return self.function(s, x, u, z)
