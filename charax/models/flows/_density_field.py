"""A flow's field together with the integrals that its density needs."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from charax.fields import AbstractField, Condition, Read, Scalar
from charax.models.flows._traces import AbstractTrace, Probes


class DensityField(AbstractField):
    """A field whose place x is not a place but what is integrated along the walk: dx/ds = tr A, where A = ∂f/∂u.

    With `energies` it is (tr A, |f|²/n, |A|²/n) for a state of n numbers.

    Nothing reads them, so the solver follows them without letting their errors choose the steps; with `steers`
    they are declared as read, and then their errors count like those of u.
    """

    field: AbstractField
    trace: AbstractTrace
    probes: Probes
    energies: bool = eqx.field(static=True, default=False)
    steers: bool = eqx.field(static=True, default=False)

    @property
    def characteristic_dim(self) -> int:
        return 3 if self.energies else 1

    @property
    def reads(self) -> frozenset[Read]:
        own: frozenset[Read] = frozenset({"x"} if self.steers else ())
        return self.field.reads | own

    def __call__(
        self, s: Scalar, x: Float[Array, "batch k"] | None, u: Float[Array, "batch *state"], z: Condition
    ) -> tuple[Float[Array, "batch k"], Float[Array, "batch *state"]]:
        probes = jax.tree.map(jax.lax.stop_gradient, self.probes)
        found = self.trace(lambda v: self.field(s, None, v, z)[1], u, probes)
        if not self.energies:
            return found.trace[:, None], found.value
        size = u[0].size
        kinetic = jnp.sum(found.value**2, axis=tuple(range(1, u.ndim))) / size
        return jnp.stack([found.trace, kinetic, found.squares / size], axis=-1), found.value
