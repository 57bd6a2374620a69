"""The interface of every Jacobian."""

from abc import abstractmethod
from typing import Literal

import equinox as eqx
from jaxtyping import Array, Float

from charax.nn import join

Balance = Literal["u-only", "potential", "mixed-partial", "free"]
"""How the balance equations are satisfied: J does not depend on x, it is a derivative by construction, or neither."""


class AbstractJacobian(eqx.Module):
    """∂u/∂x as a function of (x, u), and its product with a velocity.

    ```python
    import jax.numpy as jnp
    from charax.fields import AbstractJacobian, FunctionJacobian

    jacobian: AbstractJacobian = FunctionJacobian(lambda x, u: jnp.stack([u, -u], axis=1), 2)
    u, a = jnp.ones((1, 1)), jnp.array([[3.0, 1.0]])
    assert jacobian.product(None, u, a) == 2
    assert jacobian.balance == "u-only"
    ```
    """

    reads_x: eqx.AbstractVar[bool]
    """Whether J depends on x. If neither J nor the velocity does, x is not integrated."""

    @property
    @abstractmethod
    def characteristic_dim(self) -> int:
        """The number k of characteristic dimensions."""

    @property
    @abstractmethod
    def balance(self) -> Balance:
        """How the balance equations are satisfied; `"free"` if they are not."""

    @abstractmethod
    def __call__(
        self, x: Float[Array, "batch k"] | None, u: Float[Array, "batch *state"]
    ) -> Float[Array, "batch k *derivative"]:
        """Evaluate the whole Jacobian. Only plots and tests need it; a solve calls `product`.

        Args:
            x: The position on the characteristic; may be `None` unless `reads_x`.
            u: The state.

        Returns:
            J(x, u), one derivative of the state per characteristic dimension.
        """

    @abstractmethod
    def product(
        self, x: Float[Array, "batch k"] | None, u: Float[Array, "batch *state"], a: Float[Array, "batch k"]
    ) -> Float[Array, "batch *derivative"]:
        """Multiply the Jacobian by a velocity.

        Args:
            x: The position on the characteristic; may be `None` unless `reads_x`.
            u: The state.
            a: The velocity dx/ds.

        Returns:
            J(x, u) · a, the derivative of the state along the characteristic.
        """


def join_inputs(x: Array | None, u: Array, reads_x: bool) -> Array:
    """The input of a Jacobian's network: u, with x joined to it if `reads_x`."""
    if not reads_x:
        return u
    if x is None:
        raise ValueError("this Jacobian reads x, which was not given: pass x0 to the solve, or use reads_x=False")
    return join(u, x)
