"""A learned equation uₜ + a·∇u = c as a field along its characteristics."""

from collections.abc import Sequence
from typing import get_args

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from charax.fields import AbstractField, Condition, Read, Scalar
from charax.models._names import Dependence
from charax.models._regressor import zero_mlp
from charax.models._scaling import Scaling
from charax.nn import Network


def check_dependence(reads: Sequence[str]) -> tuple[Dependence, ...]:
    """Check what a coefficient depends on, and put it into the order x, t, u."""
    if not reads or set(reads) - set(get_args(Dependence)):
        raise ValueError(f"a coefficient reads one or more of x, t and u, got {', '.join(reads) or 'nothing'}")
    return tuple(name for name in get_args(Dependence) if name in reads)


class Coefficient(eqx.Module):
    """A linear map plus a network, of those of x, t and u that it depends on.

    Most media are nearly linear; the linear map has that right at once, also where there is little data.
    """

    line: Network
    network: Network
    reads: tuple[Dependence, ...] = eqx.field(static=True)

    @classmethod
    def build(
        cls, reads: Sequence[str], scaling: Scaling, outputs: int, *, width: int, key: PRNGKeyArray
    ) -> "Coefficient":
        """Build a coefficient with one hidden layer; it is zero before training, so that no characteristics cross."""
        reads = check_dependence(reads)
        sizes = {"x": scaling.dim, "t": 1, "u": scaling.values}
        inputs = sum(sizes[name] for name in reads)
        line, network = (zero_mlp([inputs, *hidden, outputs], key=key) for hidden in ([], [width]))
        return cls(line, network, reads)

    def __call__(
        self, x: Float[Array, "batch d"], t: Float[Array, "batch 1"], u: Float[Array, "batch n"]
    ) -> Float[Array, "batch outputs"]:
        available = {"x": x, "t": t, "u": u}
        inputs = jnp.concatenate([available[name] for name in self.reads], axis=1)
        return self.line(inputs) + self.network(inputs)


class EquationField(AbstractField):
    """dx/dt = a(x, t, u) and du/dt = c(x, t, u); the time is the context."""

    velocity: Coefficient
    source: Coefficient
    dim: int = eqx.field(static=True)

    @property
    def characteristic_dim(self) -> int:
        return self.dim

    @property
    def reads(self) -> frozenset[Read]:
        return frozenset({"x", "u", "context"})

    def __call__(
        self, s: Scalar, x: Float[Array, "batch k"] | None, u: Float[Array, "batch *state"], z: Condition
    ) -> tuple[Float[Array, "batch k"], Float[Array, "batch *state"]]:
        assert x is not None
        assert z.context is not None
        return self.velocity(x, z.context, u), self.source(x, z.context, u)
