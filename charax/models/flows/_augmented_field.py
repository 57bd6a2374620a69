"""A flow's field together with the integrals that its density needs."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from charax.fields import AbstractField, Condition, Read, Time
from charax.models.flows._traces import AbstractTrace, Probes


class AugmentedField(AbstractField):
    """A field whose x holds the integrals of a flow instead of a characteristic: dx/ds = tr A, where A = ∂f/∂u.

    With `with_energies` it is (tr A, |f|²/n, |A|²/n) for a state of n numbers.

    Nothing reads them, so the solver integrates them without error control; with `control_error` they are declared as
    read, and their errors are controlled like those of u.
    """

    field: AbstractField
    trace: AbstractTrace
    probes: Probes
    with_energies: bool = eqx.field(static=True, default=False)
    control_error: bool = eqx.field(static=True, default=False)

    @property
    def characteristic_dim(self) -> int:
        return 3 if self.with_energies else 1

    @property
    def reads(self) -> frozenset[Read]:
        own: frozenset[Read] = frozenset({"x"} if self.control_error else ())
        return self.field.reads | own

    def __call__(
        self, s: Time, x: Float[Array, "batch k"] | None, u: Float[Array, "batch *state"], z: Condition
    ) -> tuple[Float[Array, "batch k"], Float[Array, "batch *state"]]:
        probes = jax.tree.map(jax.lax.stop_gradient, self.probes)
        found = self.trace(lambda v: self.field(s, None, v, z)[1], u, probes)
        if not self.with_energies:
            return found.trace[:, None], found.value
        size = u[0].size
        kinetic = jnp.sum(found.value**2, axis=tuple(range(1, u.ndim))) / size
        return jnp.stack([found.trace, kinetic, found.squared_norm / size], axis=-1), found.value
