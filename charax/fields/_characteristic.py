"""The equation of the package."""

from jaxtyping import Array, Float

from charax.fields._field import AbstractField
from charax.fields._jacobian._base import AbstractJacobian
from charax.fields._reads import Condition, Read, Time
from charax.fields._velocity import AbstractVelocity


class CharacteristicField(AbstractField):
    """The field of a C-NODE: dx/ds = a(s, x, u; z) and du/ds = J(x, u) · dx/ds.

    ```python
    import jax
    from charax.fields import CharacteristicField, NetworkVelocity, SeparateJacobian
    from charax.nn import mlp

    a_key, *keys = jax.random.split(jax.random.key(0), 3)
    field = CharacteristicField(
        velocity=NetworkVelocity(mlp([3, 16, 2], key=a_key), 2, reads=("s", "u0")),
        jacobian=SeparateJacobian([mlp([2, 16, 2], key=key) for key in keys]),
    )
    assert field.characteristic_dim == 2
    ```
    """

    velocity: AbstractVelocity
    """a, the velocity of the characteristic."""
    jacobian: AbstractJacobian
    """J, the Jacobian of the state with respect to the characteristic."""

    def __check_init__(self):
        if self.velocity.characteristic_dim != self.jacobian.characteristic_dim:
            raise ValueError(
                "velocity and jacobian must have the same characteristic_dim, but it is "
                f"{self.velocity.characteristic_dim} for the velocity and {self.jacobian.characteristic_dim} "
                "for the jacobian"
            )

    @property
    def characteristic_dim(self) -> int:
        return self.velocity.characteristic_dim

    @property
    def reads(self) -> frozenset[Read]:
        jacobian_reads: set[Read] = {"u", "x"} if self.jacobian.reads_x else {"u"}
        return frozenset(self.velocity.reads) | jacobian_reads

    def __call__(
        self,
        s: Time,
        x: Float[Array, "batch k"] | None,
        u: Float[Array, "batch *state"],
        z: Condition,
    ) -> tuple[Float[Array, "batch k"], Float[Array, "batch *derivative"]]:
        a = self.velocity(s, x, u, z)
        return a, self.jacobian.product(x, u, a)
