"""Second-order fields: the state is a position and its velocity."""

import jax.numpy as jnp
from jaxtyping import Array, Float

from charax.fields._field import AbstractField
from charax.fields._reads import Condition, Read, Time


class SecondOrderField(AbstractField):
    """du/ds = v, dv/ds = acceleration(u, v), where the acceleration is any other field.

    The state is (u, v) joined along its last axis; the acceleration reads both halves and gives one.

    ```python
    import jax
    from charax.fields import PlainField, SecondOrderField
    from charax.nn import mlp

    acceleration = PlainField(mlp([1 + 2 * 3, 32, 3], key=jax.random.key(0)))
    field = SecondOrderField(acceleration)  # a state of 3 positions and 3 velocities
    assert field.reads == {"s", "u"}
    ```
    """

    acceleration: AbstractField
    """The field of dv/ds, from a state (u, v)."""

    @property
    def characteristic_dim(self) -> int:
        return self.acceleration.characteristic_dim

    @property
    def reads(self) -> frozenset[Read]:
        return self.acceleration.reads

    def __call__(
        self,
        s: Time,
        x: Float[Array, "batch k"] | None,
        u: Float[Array, "batch *state"],
        z: Condition,
    ) -> tuple[Float[Array, "batch k"] | None, Float[Array, "batch *state"]]:
        if u.shape[-1] % 2:
            raise ValueError(
                f"a second-order state holds positions and as many velocities, but its last axis is {u.shape[-1]}; "
                "lift the data with PositionVelocity"
            )
        velocity = u[..., u.shape[-1] // 2 :]
        dx, acceleration = self.acceleration(s, x, u, z)
        if acceleration.shape != velocity.shape:
            raise ValueError(
                f"the acceleration of a state of shape {u.shape} must have shape {velocity.shape}, "
                f"got {acceleration.shape}: its network must return half the channels it reads"
            )
        return dx, jnp.concatenate([velocity, acceleration], axis=-1)
