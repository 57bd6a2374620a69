"""The time average of the state along an observed path."""

from typing import Literal

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from charax.fields._jacobian._base import AbstractJacobian


class AccumulatingJacobian(AbstractJacobian):
    """A Jacobian of a state u, and ∫u dt next to it: d(u, m) = (J(x, u) dx, u dt), where t is the first direction.

    Divided by the duration, m is the mean of the state over the time of an observed path: what a model of whole series
    reads when its last state has forgotten the beginning.

    ```python
    import jax.numpy as jnp
    from charax.fields import AccumulatingJacobian, FunctionJacobian

    still = FunctionJacobian(lambda x, u: jnp.stack([0 * u, 0 * u], axis=1), 2)
    u, a = jnp.array([[3.0, 0.0]]), jnp.array([[2.0, 5.0]])  # u = 3 and m = 0; dt/ds = 2
    assert AccumulatingJacobian(still).product(None, u, a).tolist() == [[0.0, 6.0]]
    ```
    """

    jacobian: AbstractJacobian
    reads_x: bool = eqx.field(static=True)

    def __init__(self, jacobian: AbstractJacobian):
        """Accumulate the state next to a Jacobian.

        Args:
            jacobian: The Jacobian of the state, whose first column belongs to the time.
        """
        self.jacobian = jacobian
        self.reads_x = jacobian.reads_x

    @property
    def characteristic_dim(self) -> int:
        return self.jacobian.characteristic_dim

    @property
    def balance(self) -> Literal["u-only", "free"]:
        return "free" if self.reads_x else "u-only"

    def __call__(
        self, x: Float[Array, "batch k"] | None, u: Float[Array, "batch state"]
    ) -> Float[Array, "batch k derivative"]:
        state = u[:, : u.shape[1] // 2]
        columns = self.jacobian(x, state)
        accumulated = jnp.zeros_like(columns).at[:, 0].set(state)
        return jnp.concatenate([columns, accumulated], axis=2)

    def product(
        self, x: Float[Array, "batch k"] | None, u: Float[Array, "batch state"], a: Float[Array, "batch k"]
    ) -> Float[Array, "batch derivative"]:
        state = u[:, : u.shape[1] // 2]
        return jnp.concatenate([self.jacobian.product(x, state, a), a[:, :1] * state], axis=1)
