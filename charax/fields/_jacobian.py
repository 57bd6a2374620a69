"""The Jacobian of the value with respect to the characteristic: J = ∂u/∂x, what changes as we walk.

Four leaves differ in which way they satisfy the balance equations ∂²u/∂xᵢ∂xⱼ = ∂²u/∂xⱼ∂xᵢ; see
`balance_residual`.
"""

from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import Literal

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from charax.fields._velocity import check_characteristic_dim
from charax.nn import Linear, Network, join

Balance = Literal["u-only", "potential", "mixed-partial", "free"]


class AbstractJacobian(eqx.Module):
    """∂u/∂x as a function of (x, u), and its product with a velocity."""

    reads_x: eqx.AbstractVar[bool]
    """Whether the place matters. If nothing reads it, x is not integrated."""

    @property
    @abstractmethod
    def characteristic_dim(self) -> int:
        """The number k of directions."""

    @property
    @abstractmethod
    def balance(self) -> Balance:
        """Which way the balance equations are satisfied; `"free"` if they are not."""

    @abstractmethod
    def __call__(
        self, x: Float[Array, "batch k"] | None, u: Float[Array, "batch *state"]
    ) -> Float[Array, "batch k *derivative"]:
        """The whole Jacobian. Only pictures and tests need it; a solve calls `product`."""

    @abstractmethod
    def product(
        self, x: Float[Array, "batch k"] | None, u: Float[Array, "batch *state"], a: Float[Array, "batch k"]
    ) -> Float[Array, "batch *derivative"]:
        """J(x, u) · a."""


def _see(x: Array | None, u: Array, reads_x: bool) -> Array:
    if not reads_x:
        return u
    if x is None:
        raise ValueError("this Jacobian reads x, which was not given: pass x0 to the solve, or use reads_x=False")
    return join(u, x)


def _per_sample(a: Float[Array, "batch"], state: Float[Array, "batch *state"]) -> Array:
    return a.reshape(-1, *(1,) * (state.ndim - 1))


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
        """Each network maps u (with x joined to it if `reads_x`) to one derivative of the state."""
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
        seen = _see(x, u, self.reads_x)
        return jnp.stack([network(seen) for network in self.networks], axis=1)

    def product(
        self, x: Float[Array, "batch k"] | None, u: Float[Array, "batch *state"], a: Float[Array, "batch k"]
    ) -> Float[Array, "batch *derivative"]:
        seen = _see(x, u, self.reads_x)
        columns = [network(seen) for network in self.networks]
        return sum(
            (_per_sample(a[:, i], column) * column for i, column in enumerate(columns)), jnp.zeros_like(columns[0])
        )


class JointJacobian(AbstractJacobian):
    """One network for all k derivatives: a body, then a linear layer with k outputs per channel.

    This is the form of the paper's ablation. `product` contracts with the velocity inside the linear
    layer, so its cost hardly grows with k.

    ```python
    import jax
    from charax.fields import JointJacobian
    from charax.nn import mlp

    body_key, key = jax.random.split(jax.random.key(0))
    body = mlp([2, 32], final="tanh", key=body_key)
    jacobian = JointJacobian(body, hidden=32, channels=2, characteristic_dim=64, key=key)
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
        """`body` maps u (and x, if `reads_x`) to `hidden` features; `channels` is the last axis of du/ds."""
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
        features = self.body(_see(x, u, self.reads_x))
        stacked = jnp.tensordot(features, self.weight, axes=1) + self.bias
        return jnp.moveaxis(stacked, -2, 1)

    def product(
        self, x: Float[Array, "batch k"] | None, u: Float[Array, "batch *state"], a: Float[Array, "batch k"]
    ) -> Float[Array, "batch *derivative"]:
        features = self.body(_see(x, u, self.reads_x))
        pixels = features[0, ..., 0].size
        hidden, k, _ = self.weight.shape
        if hidden > pixels * k:
            # The layer is larger than what it makes (small vectors, few directions): build J, then contract, and not
            # as a product of many tiny matrices, which is slow to differentiate.
            columns = jnp.tensordot(features, self.weight, axes=1) + self.bias
            return jnp.sum(columns * a.reshape(a.shape[0], *(1,) * (columns.ndim - 3), k, 1), axis=-2)
        weight = jnp.einsum("bk,hkc->bhc", a, self.weight)
        out = jnp.einsum("b...h,bhc->b...c", features, weight)
        shift = a @ self.bias
        return out + shift.reshape(shift.shape[0], *(1,) * (out.ndim - 2), shift.shape[1])


class FunctionJacobian(AbstractJacobian):
    """A Jacobian that is known, not learned: any function of (x, u).

    ```python
    import jax.numpy as jnp
    from charax.fields import FunctionJacobian

    constant = FunctionJacobian(lambda x, u: jnp.broadcast_to(jnp.array([[1.0], [-2.0]]), (len(u), 2, 1)), 2)
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
        """`function(x, u)` gives the k columns; without `reads_x` it must not look at x, which may be None."""
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
