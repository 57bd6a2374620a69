"""The integral of a mixed partial derivative."""

import itertools

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from charax.fields._jacobian._base import AbstractJacobian, Balance
from charax.fields._velocity import check_characteristic_dim
from charax.nn import Network, join


class MixedPartialJacobian(AbstractJacobian):
    """The k-th mixed derivative ∂ᵏu/∂x₁…∂x_k is a network, integrated k−1 times from 0 (paper, appendix A).

    ∂u/∂xᵢ is the integral of the network over all xⱼ, j ≠ i, by Gauss–Legendre quadrature, which takes k · nodesᵏ⁻¹
    evaluations in one batch. The balance equations hold to the accuracy of the quadrature.

    ```python
    import jax
    from charax.fields import MixedPartialJacobian
    from charax.nn import mlp

    jacobian = MixedPartialJacobian(mlp([2 + 2, 32, 2], key=jax.random.key(0)), characteristic_dim=2)
    assert jacobian.reads_x and jacobian.balance == "mixed-partial"
    ```
    """

    network: Network
    dim: int = eqx.field(static=True)
    reads_x: bool = eqx.field(static=True)
    nodes: int = eqx.field(static=True)

    def __init__(self, network: Network, *, characteristic_dim: int, nodes: int = 8):
        """Take a network as the mixed partial derivative.

        Args:
            network: Maps u and x, joined along the last axis, to a state; use a smooth activation.
            characteristic_dim: The number k of characteristic dimensions.
            nodes: Quadrature nodes per dimension.

        Raises:
            ValueError: If `characteristic_dim` or `nodes` is less than 1.
        """
        if nodes < 1:
            raise ValueError(f"nodes must be at least 1, got {nodes}")
        self.network = network
        self.dim = check_characteristic_dim(characteristic_dim)
        self.reads_x = True
        self.nodes = nodes

    @property
    def characteristic_dim(self) -> int:
        return self.dim

    @property
    def balance(self) -> Balance:
        return "mixed-partial"

    def _grid(self) -> tuple[np.ndarray, np.ndarray]:
        """Fractions `[k, points, k]` of x at which the network is evaluated, and weights `[k, points]`."""
        abscissae, weights = np.polynomial.legendre.leggauss(self.nodes)
        abscissae, weights = (abscissae + 1) / 2, weights / 2  # from [−1, 1] to [0, 1]
        inner = np.array(list(itertools.product(abscissae, repeat=self.dim - 1))).reshape(
            -1 if self.dim > 1 else 1, self.dim - 1
        )
        products = np.array([np.prod(w) for w in itertools.product(weights, repeat=self.dim - 1)])
        fractions = np.stack([np.insert(inner, i, 1.0, axis=1) for i in range(self.dim)])
        return fractions, np.broadcast_to(products, fractions.shape[:2])

    def __call__(
        self, x: Float[Array, "batch k"] | None, u: Float[Array, "batch *state"]
    ) -> Float[Array, "batch k *derivative"]:
        if x is None:
            raise ValueError("a mixed-partial Jacobian reads x, which was not given: pass x0")
        fractions, weights = (jnp.asarray(array, u.dtype) for array in self._grid())
        k, points, _ = fractions.shape
        nodes = x[:, None, None, :] * fractions  # [batch, k, points, k]
        # ∫₀^{xⱼ} for every j ≠ i: the lengths of the intervals multiply the weights.
        lengths = jnp.stack([jnp.prod(jnp.delete(x, i, axis=1), axis=1) for i in range(k)], axis=1)
        states = jnp.repeat(u, k * points, axis=0)
        mixed = self.network(join(states, nodes.reshape(-1, k)))
        mixed = mixed.reshape(u.shape[0], k, points, *mixed.shape[1:])
        return jnp.einsum("bkp...,kp,bk->bk...", mixed, weights, lengths)

    def product(
        self, x: Float[Array, "batch k"] | None, u: Float[Array, "batch *state"], a: Float[Array, "batch k"]
    ) -> Float[Array, "batch *derivative"]:
        return jnp.einsum("bk...,bk->b...", self(x, u), a)
