"""The contract of every right-hand side."""

from abc import abstractmethod

import equinox as eqx
from jaxtyping import Array, Float

from charax.fields.reading import Condition, Read, Scalar


class AbstractField(eqx.Module):
    """A right-hand side: how the value u, and the place x if there is one, change with s.

    A field is called with whole batches and returns `(dx/ds, du/ds)`; a plain field has no place to
    walk to, and returns `(None, du/ds)`.
    """

    @property
    @abstractmethod
    def characteristic_dim(self) -> int:
        """The number k of characteristic dimensions; 0 for a plain field."""

    @property
    @abstractmethod
    def reads(self) -> frozenset[Read]:
        """Everything that any part of the field looks at. x is integrated only if it is among them."""

    @abstractmethod
    def __call__(
        self,
        s: Scalar,
        x: Float[Array, "batch k"] | None,
        u: Float[Array, "batch *state"],
        z: Condition,
    ) -> tuple[Float[Array, "batch k"] | None, Float[Array, "batch *derivative"]]:
        """(dx/ds, du/ds) at (s, x, u), given the condition z of this walk."""
