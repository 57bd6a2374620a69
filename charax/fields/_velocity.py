"""The velocity of a characteristic: dx/ds = a(s, x, u; z)."""

from abc import abstractmethod
from collections.abc import Callable, Iterable

import equinox as eqx
from jaxtyping import Array, Float

from charax.fields._reads import Condition, Read, Time, apply_to_inputs, as_reads
from charax.nn import Network


def check_characteristic_dim(characteristic_dim: int) -> int:
    """The number of characteristic dimensions, if it is at least 1."""
    if characteristic_dim < 1:
        raise ValueError(
            f"characteristic_dim must be at least 1, got {characteristic_dim}; "
            "for a plain neural ODE, which has no characteristic, use PlainField"
        )
    return characteristic_dim


class AbstractVelocity(eqx.Module):
    """dx/ds, k numbers per sample.

    ```python
    import jax.numpy as jnp
    from charax.fields import AbstractVelocity, Condition, FunctionVelocity

    velocity: AbstractVelocity = FunctionVelocity(lambda s, x, u, z: -u, 2, reads=("u",))
    assert velocity(0.0, None, jnp.ones((3, 2)), Condition()).shape == (3, 2)
    ```
    """

    characteristic_dim: eqx.AbstractVar[int]
    """The number k of characteristic dimensions."""
    reads: eqx.AbstractVar[tuple[Read, ...]]
    """The inputs of the velocity."""

    @abstractmethod
    def __call__(
        self,
        s: Time,
        x: Float[Array, "batch k"] | None,
        u: Float[Array, "batch *state"],
        z: Condition,
    ) -> Float[Array, "batch k"]:
        """Evaluate the velocity.

        Args:
            s: The independent variable: one number, or one per sample.
            x: The position on the characteristic; may be `None` unless the velocity reads it.
            u: The state.
            z: What stays constant during a solve.

        Returns:
            dx/ds.
        """


class NetworkVelocity(AbstractVelocity):
    """A learned velocity of any of s, x, u, u0 and an external context.

    ```python
    import jax
    from charax.fields import NetworkVelocity
    from charax.nn import mlp

    velocity = NetworkVelocity(mlp([1 + 2, 16, 8], key=jax.random.key(0)), 8, reads=("s", "u0"))
    assert velocity.reads == ("s", "u0")
    ```
    """

    network: Network
    characteristic_dim: int = eqx.field(static=True, converter=check_characteristic_dim)
    reads: tuple[Read, ...] = eqx.field(static=True)

    def __init__(self, network: Network, characteristic_dim: int, *, reads: Iterable[str] = ("s", "u")):
        """Take a network as the velocity.

        Args:
            network: Maps its inputs, joined along the last axis, to k numbers.
            characteristic_dim: The number k of characteristic dimensions.
            reads: The inputs of the network: any of "s", "x", "u", "u0" and "context".

        Raises:
            ValueError: If `reads` is empty or unknown, or `characteristic_dim` is less than 1.
        """
        self.network = network
        self.characteristic_dim = characteristic_dim
        self.reads = as_reads(reads)

    def __call__(
        self,
        s: Time,
        x: Float[Array, "batch k"] | None,
        u: Float[Array, "batch *state"],
        z: Condition,
    ) -> Float[Array, "batch k"]:
        return apply_to_inputs(self.network, self.reads, s, x, u, z)


class FunctionVelocity(AbstractVelocity):
    """A velocity that is known, not learned: any function of (s, x, u, z).

    ```python
    import jax.numpy as jnp
    from charax.fields import FunctionVelocity

    velocity = FunctionVelocity(lambda s, x, u, z: jnp.ones_like(x), 2, reads=("x",))
    assert velocity.characteristic_dim == 2
    ```
    """

    function: Callable[..., Float[Array, "batch k"]]
    characteristic_dim: int = eqx.field(static=True, converter=check_characteristic_dim)
    reads: tuple[Read, ...] = eqx.field(static=True)

    def __init__(
        self, function: Callable[..., Float[Array, "batch k"]], characteristic_dim: int, *, reads: Iterable[str]
    ):
        """Wrap a function.

        Args:
            function: `function(s, x, u, z)` may use only the inputs named in `reads`; the others may be `None`.
            characteristic_dim: The number k of characteristic dimensions.
            reads: The inputs of the function: any of "s", "x", "u", "u0" and "context".

        Raises:
            ValueError: If `reads` is empty or unknown, or `characteristic_dim` is less than 1.
        """
        self.function = function
        self.characteristic_dim = characteristic_dim
        self.reads = as_reads(reads)

    def __call__(
        self,
        s: Time,
        x: Float[Array, "batch k"] | None,
        u: Float[Array, "batch *state"],
        z: Condition,
    ) -> Float[Array, "batch k"]:
        return self.function(s, x, u, z)
