"""The interface of every vector field."""

from abc import abstractmethod
from typing import TypeVar

import equinox as eqx
from jaxtyping import Array, Float

from charax.fields._reads import Condition, Read, Time


class AbstractField(eqx.Module):
    """A vector field: the derivatives of the state u, and of the position x on a characteristic if there is one.

    A field is called with whole batches and returns `(dx/ds, du/ds)`; a plain field has no characteristic and returns
    `(None, du/ds)`.

    ```python
    import jax.numpy as jnp
    from charax.fields import AbstractField, Condition, PlainField

    field: AbstractField = PlainField(lambda u: -u, reads=("u",))
    dx, du = field(0.0, None, jnp.ones((2, 1)), Condition())
    assert dx is None and du.shape == (2, 1)
    ```
    """

    @property
    @abstractmethod
    def characteristic_dim(self) -> int:
        """The number k of characteristic dimensions; 0 for a plain field."""

    @property
    @abstractmethod
    def reads(self) -> frozenset[Read]:
        """The inputs of all parts of the field. x is integrated only if it is among them."""

    @abstractmethod
    def __call__(
        self,
        s: Time,
        x: Float[Array, "batch k"] | None,
        u: Float[Array, "batch *state"],
        z: Condition,
    ) -> tuple[Float[Array, "batch k"] | None, Float[Array, "batch *derivative"]]:
        """Evaluate the field.

        Args:
            s: The independent variable: one number, or one per sample.
            x: The position on the characteristic; may be `None` unless the field reads it.
            u: The state.
            z: What stays constant during a solve.

        Returns:
            dx/ds, or `None` for a plain field, and du/ds.
        """


def describe_field(field: AbstractField) -> str:
    """Name the kind of a field, and its characteristic dimension if it has one.

    ```python
    from charax.fields import PlainField, describe_field

    assert describe_field(PlainField(lambda u: -u, reads=("u",))) == "PlainField"
    ```

    Args:
        field: The field.

    Returns:
        A few words, such as `CharacteristicField k=2`.
    """
    k = field.characteristic_dim
    return f"{type(field).__name__} k={k}" if k else type(field).__name__


FieldT = TypeVar("FieldT", bound=AbstractField)


def check_flow_field(field: FieldT) -> FieldT:
    """Check that a field can be that of a continuous normalizing flow.

    The log-density formula integrates the trace of ∂f/∂u, which is the log-determinant of u(0) ↦ u(1) only if f is a
    function of s, u and an external context.

    ```python
    from charax.fields import PlainField, check_flow_field

    field = check_flow_field(PlainField(lambda u: -u, reads=("u",)))
    ```

    Args:
        field: The field.

    Returns:
        The same field.

    Raises:
        ValueError: If the field reads u0 or x.
    """
    hidden = field.reads & {"u0", "x"}
    if hidden:
        raise ValueError(
            f"a flow's field may not read {' or '.join(sorted(hidden))}: then u(0) ↦ u(1) is not the flow of an ODE "
            "in u and the trace formula gives a wrong density. Build its velocity with reads from s, u and context, "
            "and its Jacobian with reads_x=False"
        )
    return field
