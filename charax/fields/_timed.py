"""Walks of different lengths in one solve."""

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from charax.fields._field import AbstractField
from charax.fields._reads import Condition, Read, Scalar


class Timed(AbstractField):
    """du/ds = T·f(t, u) with t = s·T for s in [0, 1]: every sample goes to its own time T.

    The context's first column is T, the others belong to the field inside. That one reads (t, others) as its context
    and never s.

    ```python
    import jax.numpy as jnp
    from charax.fields import PlainField, Timed
    from charax.solve import Solver

    field = Timed(PlainField(lambda seen: 2 * seen[:, :1], reads=("context",)))  # du/dt = 2t
    times = jnp.array([[1.0], [3.0]])
    solution = Solver("midpoint", steps=1).solve(field, jnp.zeros((2, 1)), context=times)
    assert jnp.allclose(solution.u, times**2)
    ```
    """

    field: AbstractField
    shows_time: bool = eqx.field(static=True, default=True)
    """Without it the field's context is (others) alone: what happens does not depend on when."""

    def __check_init__(self):
        if "s" in self.field.reads:
            raise ValueError(
                's goes from 0 to 1 whatever the time is: read the time, that is "context", instead of "s"'
            )

    @property
    def characteristic_dim(self) -> int:
        return self.field.characteristic_dim

    @property
    def reads(self) -> frozenset[Read]:
        own: set[Read] = {"s", "context"}
        return self.field.reads | own

    def __call__(
        self, s: Scalar, x: Float[Array, "batch k"] | None, u: Float[Array, "batch *state"], z: Condition
    ) -> tuple[Float[Array, "batch k"] | None, Float[Array, "batch *derivative"]]:
        assert z.context is not None
        end = z.context[:, :1]
        others = z.context[:, 1:]
        shown = jnp.concatenate([s * end, others], axis=1) if self.shows_time else others
        dx, du = self.field(s, x, u, Condition(z.u0, shown))
        return None if dx is None else end * dx, end.reshape(-1, *(1,) * (du.ndim - 1)) * du
