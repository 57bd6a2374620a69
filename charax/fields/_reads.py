"""The possible inputs of a field's networks, and how they are joined."""

from collections.abc import Iterable
from typing import Literal, NamedTuple, get_args

import jax.numpy as jnp
from jaxtyping import Array, Float

from charax.nn import Network, apply_joined

Read = Literal["s", "x", "u", "u0", "context"]
"""What a velocity or a plain field may read: s, x, u, the initial state u0 or an external context."""
Scalar = float | int | Float[Array, ""]
"""One number."""
Time = Scalar | Float[Array, "batch"]
"""One time for the whole batch, as in a solve, or one per sample, as in flow matching."""


class Condition(NamedTuple):
    """What stays constant during a solve: the z of a(s, x, u; z).

    ```python
    import jax.numpy as jnp
    from charax.fields import Condition

    assert Condition(context=jnp.ones((2, 1))).u0 is None
    ```
    """

    u0: Float[Array, "batch *state"] | None = None
    """The initial state."""
    context: Float[Array, "batch *_"] | None = None
    """An external context."""


def as_reads(reads: Iterable[str]) -> tuple[Read, ...]:
    """Check the names of inputs and sort them into the order in which a network takes them."""
    asked = (reads,) if isinstance(reads, str) else tuple(reads)
    unknown = [read for read in asked if read not in get_args(Read)]
    if unknown:
        raise ValueError(f"reads may name {', '.join(get_args(Read))}; got {', '.join(map(repr, unknown))}")
    if not asked:
        raise ValueError(f"reads is empty: give at least one of {', '.join(get_args(Read))}")
    return tuple(read for read in get_args(Read) if read in asked)


def apply_to_inputs(
    network: Network,
    reads: tuple[Read, ...],
    s: Time,
    x: Float[Array, "batch k"] | None,
    u: Float[Array, "batch *state"],
    z: Condition,
) -> Float[Array, "batch *_"]:
    """Apply a network to the inputs in `reads`, joined along the last axis."""
    rows = u.shape[0] if reads == ("s",) or jnp.ndim(s) else 1
    available = {
        "s": jnp.broadcast_to(jnp.reshape(jnp.asarray(s, u.dtype), (-1, 1)), (rows, 1)),
        "x": x,
        "u": u,
        "u0": z.u0,
        "context": z.context,
    }
    missing = [read for read in reads if available[read] is None]
    if missing:
        raise ValueError(
            f"this field reads {', '.join(missing)}, which was not given: "
            "pass it to the solve, or build the field without it in `reads`"
        )
    return apply_joined(network, *(piece for read in reads if (piece := available[read]) is not None))
