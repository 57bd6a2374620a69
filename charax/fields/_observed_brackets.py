"""The Jacobian of the log-ODE method."""

from typing import Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from charax.fields._jacobian._base import AbstractJacobian


class LieBracketJacobian(AbstractJacobian):
    """The columns of a Jacobian and the Lie brackets [Jᵢ, Jⱼ] = (∂Jⱼ/∂u)·Jᵢ − (∂Jᵢ/∂u)·Jⱼ for i < j.

    Its velocity is a log-signature of depth 2. For a Jacobian that reads x, the derivatives are total ones:
    along column i, x moves in direction i.

    ```python
    import jax.numpy as jnp
    from charax.fields import FunctionJacobian, LieBracketJacobian

    rotate, stretch = jnp.array([[0.0, -1.0], [1.0, 0.0]]), jnp.array([[1.0, 0.0], [0.0, -1.0]])
    linear = FunctionJacobian(lambda x, u: jnp.stack([u @ rotate.T, u @ stretch.T], axis=1), 2)
    u = jnp.array([[1.0, 2.0]])
    bracket = LieBracketJacobian(linear)(None, u)[:, 2]
    assert jnp.allclose(bracket, u @ (stretch @ rotate - rotate @ stretch).T)
    ```
    """

    jacobian: AbstractJacobian
    observed: int = eqx.field(static=True)
    reads_x: bool = eqx.field(static=True)

    def __init__(self, jacobian: AbstractJacobian, observed: int | None = None):
        """Add the brackets to a Jacobian.

        Args:
            jacobian: The Jacobian with one column per channel of the path, then those of learned velocities, if any.
            observed: The number of channels of the path; all columns if omitted.

        Raises:
            ValueError: If there are not as many columns.
        """
        k = jacobian.characteristic_dim
        self.jacobian = jacobian
        self.observed = k if observed is None else observed
        self.reads_x = jacobian.reads_x
        if not 1 <= self.observed <= k:
            raise ValueError(f"observed must be between 1 and the Jacobian's {k} columns, got {observed}")

    @property
    def characteristic_dim(self) -> int:
        return self.jacobian.characteristic_dim + self.observed * (self.observed - 1) // 2

    @property
    def balance(self) -> Literal["u-only", "free"]:
        return "free" if self.reads_x else "u-only"

    def __call__(
        self, x: Float[Array, "batch k"] | None, u: Float[Array, "batch *state"]
    ) -> Float[Array, "batch k *derivative"]:
        units = jnp.eye(self.characteristic_dim, dtype=u.dtype)
        columns = jax.vmap(lambda unit: self.product(x, u, jnp.broadcast_to(unit, (u.shape[0], unit.shape[0]))))(units)
        return jnp.moveaxis(columns, 0, 1)

    def product(
        self, x: Float[Array, "batch k"] | None, u: Float[Array, "batch *state"], a: Float[Array, "batch k"]
    ) -> Float[Array, "batch *derivative"]:
        k, total = self.observed, self.jacobian.characteristic_dim
        areas = a.shape[1] - total
        own = lambda array: jnp.concatenate([array[:, :k], array[:, k + areas :]], axis=1)
        position = None if x is None else own(x)
        i, j = np.triu_indices(k, 1)
        swept = a[:, k : k + areas]
        # Σ Aᵢⱼ (∂Jⱼ/∂u)·Jᵢ over all i and j with an antisymmetric A: one derivative of J·(row i of A) along each Jᵢ.
        matrix = jnp.zeros((a.shape[0], k, total), a.dtype).at[:, i, j].set(swept).at[:, j, i].set(-swept)

        def derivative(row: Array, unit: Array, column: Array) -> Array:
            if position is None:
                return jax.jvp(lambda u: self.jacobian.product(None, u, row), (u,), (column,))[1]
            along = jnp.broadcast_to(unit, position.shape)
            return jax.jvp(lambda x, u: self.jacobian.product(x, u, row), (position, u), (along, column))[1]

        columns = self.jacobian(position, u)[:, :k]
        units = jnp.eye(k, total, dtype=a.dtype)
        brackets = jax.vmap(derivative, in_axes=(1, 0, 1))(matrix, units, columns).sum(axis=0)
        return self.jacobian.product(position, u, own(a)) + brackets
