"""A given function as the Jacobian."""

from collections.abc import Callable

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from charax.fields._jacobian._base import AbstractJacobian, Balance
from charax.fields._velocity import check_characteristic_dim


class FunctionJacobian(AbstractJacobian):
    """A Jacobian that is known, not learned: any function of (x, u).

    ```python
    import jax.numpy as jnp
    from charax.fields import FunctionJacobian

    constant = FunctionJacobian(lambda x, u: jnp.broadcast_to(jnp.array([[1.0], [-2.0]]), (len(u), 2, 1)), 2)
    assert constant(None, jnp.zeros((3, 1))).shape == (3, 2, 1)
    ```
    """

    function: Callable[..., Float[Array, "batch k *state"]]
    dim: int = eqx.field(static=True)
    reads_x: bool = eqx.field(static=True)

    def __init__(
        self,
        function: Callable[..., Float[Array, "batch k *state"]],
        characteristic_dim: int,
        *,
        reads_x: bool = False,
    ):
        """Wrap a function.

        Args:
            function: `function(x, u)` returns the k columns. Without `reads_x` it must not use x, which may be `None`.
            characteristic_dim: The number k of characteristic dimensions.
            reads_x: Whether the function uses x.

        Raises:
            ValueError: If `characteristic_dim` is less than 1.
        """
        self.function = function
        self.dim = check_characteristic_dim(characteristic_dim)
        self.reads_x = reads_x

    @property
    def characteristic_dim(self) -> int:
        return self.dim

    @property
    def balance(self) -> Balance:
        return "free" if self.reads_x else "u-only"

    def __call__(
        self, x: Float[Array, "batch k"] | None, u: Float[Array, "batch *state"]
    ) -> Float[Array, "batch k *derivative"]:
        return self.function(x, u)

    def product(
        self, x: Float[Array, "batch k"] | None, u: Float[Array, "batch *state"], a: Float[Array, "batch k"]
    ) -> Float[Array, "batch *derivative"]:
        return jnp.einsum("bk...,bk->b...", self.function(x, u), a)
