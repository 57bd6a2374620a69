"""One network for all characteristic dimensions."""

from collections.abc import Callable

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from charax.fields._jacobian._base import AbstractJacobian, Balance, join_inputs
from charax.fields._velocity import check_characteristic_dim
from charax.nn import Chain, Linear, Network, split_key


class JointJacobian(AbstractJacobian):
    """One network for all k derivatives: a body, then a linear layer with k outputs per channel.

    This is the form of the paper's ablation. `product` contracts with the velocity inside the linear layer, so its cost
    hardly grows with k.

    ```python
    import jax
    from charax.fields import JointJacobian
    from charax.nn import mlp

    body_key, key = jax.random.split(jax.random.key(0))
    body = mlp([2, 32], final="tanh", key=body_key)
    jacobian = JointJacobian(body, hidden=32, channels=2, characteristic_dim=64, key=key)
    assert jacobian.characteristic_dim == 64
    ```
    """

    body: Network
    weight: Float[Array, "hidden k channels"]
    bias: Float[Array, "k channels"]
    reads_x: bool = eqx.field(static=True)

    def __init__(
        self,
        body: Network,
        *,
        hidden: int,
        channels: int,
        characteristic_dim: int,
        reads_x: bool = False,
        key: PRNGKeyArray,
    ):
        """Build the linear layer on top of a body.

        Args:
            body: Maps u (with x joined to it if `reads_x`) to `hidden` features.
            hidden: The number of features of the body.
            channels: The last axis of du/ds.
            characteristic_dim: The number k of characteristic dimensions.
            reads_x: Whether the body takes x as well; then the balance equations do not hold.
            key: The random key of the linear layer.

        Raises:
            ValueError: If `characteristic_dim` is less than 1.
        """
        k = check_characteristic_dim(characteristic_dim)
        last = Linear(hidden, k * channels, key=key)
        assert last.bias is not None
        self.body = body
        self.weight = last.weight.reshape(hidden, k, channels)
        self.bias = last.bias.reshape(k, channels)
        self.reads_x = reads_x

    @property
    def characteristic_dim(self) -> int:
        return self.bias.shape[0]

    @property
    def balance(self) -> Balance:
        return "free" if self.reads_x else "u-only"

    def __call__(
        self, x: Float[Array, "batch k"] | None, u: Float[Array, "batch *state"]
    ) -> Float[Array, "batch k *derivative"]:
        features = self.body(join_inputs(x, u, self.reads_x))
        stacked = jnp.tensordot(features, self.weight, axes=1) + self.bias
        return jnp.moveaxis(stacked, -2, 1)

    def product(
        self, x: Float[Array, "batch k"] | None, u: Float[Array, "batch *state"], a: Float[Array, "batch k"]
    ) -> Float[Array, "batch *derivative"]:
        features = self.body(join_inputs(x, u, self.reads_x))
        pixels = features[0, ..., 0].size
        hidden, k, _ = self.weight.shape
        if hidden > pixels * k:
            # The layer is larger than its output (small vectors, few dimensions): build J, then contract, and not as a
            # product of many tiny matrices, which is slow to differentiate.
            columns = jnp.tensordot(features, self.weight, axes=1) + self.bias
            return jnp.sum(columns * a.reshape(a.shape[0], *(1,) * (columns.ndim - 3), k, 1), axis=-2)
        weight = jnp.einsum("bk,hkc->bhc", a, self.weight)
        out = jnp.einsum("b...h,bhc->b...c", features, weight)
        shift = a @ self.bias
        return out + shift.reshape(shift.shape[0], *(1,) * (out.ndim - 2), shift.shape[1])


def build_joint(network: Callable[[PRNGKeyArray], Chain], characteristic_dim: int, key: PRNGKeyArray) -> JointJacobian:
    """A body from the network's layers but the last, which is replaced by a layer with k times as many outputs."""
    body_key, key = split_key(key)
    *body, last = network(body_key).layers
    if not isinstance(last, Linear):
        raise ValueError(
            f'a joint Jacobian needs a network whose last layer is Linear, got {type(last).__name__}: use "separate", '
            "or build the network with a Linear layer at its end"
        )
    hidden, channels = last.weight.shape
    return JointJacobian(Chain(*body), hidden=hidden, channels=channels, characteristic_dim=characteristic_dim, key=key)
