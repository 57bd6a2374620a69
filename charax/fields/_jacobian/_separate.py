"""One network per characteristic dimension."""

from collections.abc import Callable, Sequence

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from charax.fields._jacobian._base import AbstractJacobian, Balance, join_inputs
from charax.fields._velocity import check_characteristic_dim
from charax.nn import Network, split_key


class SeparateJacobian(AbstractJacobian):
    """k separate networks, one for each ∂u/∂xᵢ: the paper's main form.

    ```python
    import jax
    from charax.fields import SeparateJacobian
    from charax.nn import mlp

    keys = jax.random.split(jax.random.key(0), 3)
    jacobian = SeparateJacobian([mlp([2, 16, 2], key=key) for key in keys])
    assert jacobian.characteristic_dim == 3
    ```
    """

    networks: tuple[Network, ...]
    reads_x: bool = eqx.field(static=True)

    def __init__(self, networks: Sequence[Network], *, reads_x: bool = False):
        """Build the Jacobian of its columns.

        Args:
            networks: One per characteristic dimension. Each maps u (with x joined to it if `reads_x`) to one derivative
                of the state.
            reads_x: Whether the networks take x as well; then the balance equations do not hold.

        Raises:
            ValueError: If there are no networks.
        """
        check_characteristic_dim(len(networks))
        self.networks = tuple(networks)
        self.reads_x = reads_x

    @property
    def characteristic_dim(self) -> int:
        return len(self.networks)

    @property
    def balance(self) -> Balance:
        return "free" if self.reads_x else "u-only"

    def __call__(
        self, x: Float[Array, "batch k"] | None, u: Float[Array, "batch *state"]
    ) -> Float[Array, "batch k *derivative"]:
        return jnp.stack(self._columns(x, u), axis=1)

    def product(
        self, x: Float[Array, "batch k"] | None, u: Float[Array, "batch *state"], a: Float[Array, "batch k"]
    ) -> Float[Array, "batch *derivative"]:
        columns = self._columns(x, u)
        per_sample = lambda scale, column: scale.reshape(-1, *(1,) * (column.ndim - 1)) * column
        return sum((per_sample(a[:, i], column) for i, column in enumerate(columns)), jnp.zeros_like(columns[0]))

    def _columns(self, x: Array | None, u: Array) -> list[Array]:
        inputs = join_inputs(x, u, self.reads_x)
        return [network(inputs) for network in self.networks]


def build_separate(
    network: Callable[[PRNGKeyArray], Network], characteristic_dim: int, key: PRNGKeyArray
) -> SeparateJacobian:
    """One network per characteristic dimension, each from a key of its own."""
    return SeparateJacobian([network(key) for key in split_key(key, characteristic_dim)])
