"""Integration times of their own for the samples of one solve."""

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from charax.fields._field import AbstractField
from charax.fields._reads import Condition, Read, Time


class Timed(AbstractField):
    """du/ds = T·f(t, u) with t = s·T for s in [0, 1]: every sample is integrated to its own time T.

    The first column of the context is T, the others belong to the wrapped field, which reads (t, others) as its context
    and never s.

    ```python
    import jax.numpy as jnp
    from charax.fields import PlainField, Timed
    from charax.solve import Solver

    field = Timed(PlainField(lambda context: 2 * context[:, :1], reads=("context",)))  # du/dt = 2t
    times = jnp.array([[1.0], [3.0]])
    solution = Solver("midpoint", steps=1).solve(field, jnp.zeros((2, 1)), context=times)
    assert jnp.allclose(solution.u, times**2)
    ```
    """

    field: AbstractField
    """The wrapped field."""
    shows_time: bool = eqx.field(static=True, default=True)
    """Whether t is part of the wrapped field's context; otherwise the field does not depend on time."""

    def __check_init__(self):
        if "s" in self.field.reads:
            raise ValueError(
                's goes from 0 to 1 for every sample: read the time, which is part of "context", instead of "s"'
            )

    @property
    def characteristic_dim(self) -> int:
        return self.field.characteristic_dim

    @property
    def reads(self) -> frozenset[Read]:
        own: set[Read] = {"s", "context"}
        return self.field.reads | own

    def __call__(
        self, s: Time, x: Float[Array, "batch k"] | None, u: Float[Array, "batch *state"], z: Condition
    ) -> tuple[Float[Array, "batch k"] | None, Float[Array, "batch *derivative"]]:
        assert z.context is not None
        end = z.context[:, :1]
        others = z.context[:, 1:]
        context = jnp.concatenate([jnp.reshape(s, (-1, 1)) * end, others], axis=1) if self.shows_time else others
        dx, du = self.field(s, x, u, Condition(z.u0, context))
        return None if dx is None else end * dx, end.reshape(-1, *(1,) * (du.ndim - 1)) * du
