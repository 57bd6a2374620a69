"""The initial state from the data: NODE, ANODE, IL-NODE and second-order models differ in nothing else."""

from abc import abstractmethod

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from charax.nn import Network


class AbstractLift(eqx.Module):
    """The initial state u(s0) as a function of the data.

    ```python
    import jax.numpy as jnp
    from charax.models import AbstractLift

    class Squares(AbstractLift):
        def __call__(self, data):
            return jnp.concatenate([data, data**2], axis=-1)

    assert Squares()(jnp.ones((2, 3))).shape == (2, 6)
    ```
    """

    @abstractmethod
    def __call__(self, data: Float[Array, "batch *data"]) -> Float[Array, "batch *state"]:
        """Compute the initial state.

        Args:
            data: A batch of inputs.

        Returns:
            The state u(s0).
        """


class Identity(AbstractLift):
    """The data is the state: a Neural ODE.

    ```python
    import jax.numpy as jnp
    from charax.models import Identity

    assert Identity()(jnp.ones((2, 3))).shape == (2, 3)
    ```
    """

    def __call__(self, data: Float[Array, "batch *data"]) -> Float[Array, "batch *data"]:
        return data


class ZeroAugment(AbstractLift):
    """The data and channels of zeros: an augmented Neural ODE (ANODE).

    ```python
    import jax.numpy as jnp
    from charax.models import ZeroAugment

    assert ZeroAugment(20)(jnp.ones((2, 28, 28, 1))).shape == (2, 28, 28, 21)
    ```
    """

    channels: int = eqx.field(static=True)
    """The number of channels of zeros."""

    def __check_init__(self):
        if self.channels < 1:
            raise ValueError(f"channels must be at least 1, got {self.channels}; to add none, use Identity")

    def __call__(self, data: Float[Array, "batch *data"]) -> Float[Array, "batch *state"]:
        return jnp.concatenate([data, jnp.zeros((*data.shape[:-1], self.channels), data.dtype)], axis=-1)


class InputLayer(AbstractLift):
    """A learned layer of the data: an input-layer Neural ODE (IL-NODE).

    ```python
    import jax
    from charax.models import InputLayer
    from charax.nn import Conv

    lift = InputLayer(Conv(1, 21, bias=False, key=jax.random.key(0)))
    ```
    """

    layer: Network
    """Maps the data to the state."""

    def __call__(self, data: Float[Array, "batch *data"]) -> Float[Array, "batch *state"]:
        return self.layer(data)


class PositionVelocity(AbstractLift):
    """A position from another lift and a velocity of its size: the state of a second-order model.

    The velocity starts at zero, or is a learned layer of the data. Use it with `SecondOrderField`.

    ```python
    import jax.numpy as jnp
    from charax.models import Identity, PositionVelocity

    assert PositionVelocity(Identity())(jnp.ones((2, 3))).shape == (2, 6)
    ```
    """

    position: AbstractLift
    """The lift of the position."""
    velocity: Network | None = None
    """Maps the data to the initial velocity; None for zero."""

    def __call__(self, data: Float[Array, "batch *data"]) -> Float[Array, "batch *state"]:
        position = self.position(data)
        velocity = jnp.zeros_like(position) if self.velocity is None else self.velocity(data)
        if velocity.shape != position.shape:
            raise ValueError(f"the velocity must have the position's shape {position.shape}, got {velocity.shape}")
        return jnp.concatenate([position, velocity], axis=-1)
