"""The contract of every right-hand side."""

from abc import abstractmethod
from typing import TypeVar

import equinox as eqx
from jaxtyping import Array, Float

from charax.fields._reads import Condition, Read, Scalar


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


FieldT = TypeVar("FieldT", bound=AbstractField)


def check_flow_field(field: FieldT) -> FieldT:
    """Return a field that may be a flow of densities, or raise a `ValueError` that says why it may not.

    The log-density formula integrates the trace of ∂f/∂u, which is the log-determinant of u(0) ↦ u(1)
    only if f is a function of s, u and an outside context.
    """
    hidden = field.reads & {"u0", "x"}
    if hidden:
        raise ValueError(
            f"a flow's field may not read {' or '.join(sorted(hidden))}: then u(0) ↦ u(1) is not the flow of an ODE "
            "in u and the trace formula gives a wrong density. Build its velocity with reads from s, u and context, "
            "and its Jacobian with reads_x=False"
        )
    return field
