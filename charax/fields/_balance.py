"""The residual of the balance equations."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from charax.fields._jacobian._base import AbstractJacobian


def balance_residual(
    jacobian: AbstractJacobian,
    x: Float[Array, "batch k"],
    u: Float[Array, "batch *state"],
    *,
    total: bool = False,
) -> Float[Array, ""]:
    """Measure how far a Jacobian is from satisfying the balance equations.

    The paper's balance equations are about the explicit dependence on x, with u held fixed; dropping x from J satisfies
    them. For J to be the Jacobian of a function u(x), the *total* derivatives must agree, with Jⱼ evaluated along u(x)
    too: `total=True` adds (∂Jᵢ/∂u)·Jⱼ, and then a u-only Jacobian passes only if its columns commute as vector fields.

    ```python
    import jax
    from charax.fields import PotentialJacobian, balance_residual
    from charax.nn import mlp

    jacobian = PotentialJacobian(mlp([5, 16, 2], key=jax.random.key(0)), characteristic_dim=3)
    assert balance_residual(jacobian, jax.numpy.ones((4, 3)), jax.numpy.ones((4, 2))) < 1e-5
    ```

    Args:
        jacobian: The Jacobian.
        x: Positions at which it is differentiated.
        u: The states there.
        total: Whether to take total derivatives, along u(x).

    Returns:
        The largest |∂Jᵢ/∂xⱼ − ∂Jⱼ/∂xᵢ| over the batch: zero where the balance equations hold.

    Raises:
        ValueError: If x does not have the Jacobian's number of dimensions.
    """
    k = jacobian.characteristic_dim
    if x.shape[1] != k:
        raise ValueError(f"x must have the Jacobian's {k} characteristic dimensions in its last axis, got {x.shape[1]}")

    def derivative(direction: Float[Array, "k"]) -> Float[Array, "batch k *state"]:
        dx = jnp.broadcast_to(direction, x.shape)
        du = jacobian.product(x, u, dx) if total else jnp.zeros_like(u)
        _, change = jax.jvp(jacobian, (x, u), (dx, du))
        return change

    second = jax.vmap(derivative)(jnp.eye(k, dtype=x.dtype))  # [k (direction), batch, k (column), *state]
    return jnp.max(jnp.abs(second - jnp.swapaxes(second, 0, 2)))
