"""The gradient of a potential."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from charax.fields._jacobian._base import AbstractJacobian, Balance
from charax.fields._velocity import check_characteristic_dim
from charax.nn import Network, join


class PotentialJacobian(AbstractJacobian):
    """J = ∂φ/∂x of one network φ(x, u): the mixed partials agree because φ is twice differentiable.

    ```python
    import jax
    from charax.fields import PotentialJacobian
    from charax.nn import mlp

    jacobian = PotentialJacobian(mlp([2 + 3, 32, 2], key=jax.random.key(0)), characteristic_dim=3)
    assert jacobian.reads_x and jacobian.balance == "potential"
    ```
    """

    network: Network
    dim: int = eqx.field(static=True)
    reads_x: bool = eqx.field(static=True)

    def __init__(self, network: Network, *, characteristic_dim: int):
        """Take a network as the potential.

        Args:
            network: Maps u and x, joined along the last axis, to a state; use a smooth activation.
            characteristic_dim: The number k of characteristic dimensions.

        Raises:
            ValueError: If `characteristic_dim` is less than 1.
        """
        self.network = network
        self.dim = check_characteristic_dim(characteristic_dim)
        self.reads_x = True

    @property
    def characteristic_dim(self) -> int:
        return self.dim

    @property
    def balance(self) -> Balance:
        return "potential"

    def __call__(
        self, x: Float[Array, "batch k"] | None, u: Float[Array, "batch *state"]
    ) -> Float[Array, "batch k *derivative"]:
        directions = jnp.eye(self.dim, dtype=u.dtype)
        rows = jax.vmap(lambda e: self.product(x, u, jnp.broadcast_to(e, (u.shape[0], self.dim))))(directions)
        return jnp.moveaxis(rows, 0, 1)

    def product(
        self, x: Float[Array, "batch k"] | None, u: Float[Array, "batch *state"], a: Float[Array, "batch k"]
    ) -> Float[Array, "batch *derivative"]:
        if x is None:
            raise ValueError("a potential Jacobian reads x, which was not given: pass x0")
        _, directional = jax.jvp(lambda x: self.network(join(u, x)), (x,), (a,))
        return directional
