"""The objective of flow matching."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from charax.fields import AbstractField, Condition, Scalar
from charax.models.matching._paths import AbstractPath, LinearPath
from charax.models.matching._times import AbstractTimes, UniformTimes


class FlowMatching(eqx.Module):
    """Conditional flow matching: the squared difference between a field and the velocities of given paths.

        |f(s, u(t)) − du/ds|²,  u(t) a path from `start` to `end`,  s = t·T

    Its minimum is the marginal velocity, the mean velocity of all paths through a point, whose flow maps the
    distribution of `start` to that of `end`. Nothing is solved: there is one evaluation of the whole batch, with a time
    for every sample.

    ```python
    import jax
    import jax.numpy as jnp
    from charax.fields import PlainField
    from charax.models.matching import FlowMatching

    # Paths from u to u + 3 have the velocity 3 everywhere.
    field = PlainField(lambda u: jnp.full_like(u, 3.0), reads=("u",))
    start = jnp.ones((8, 2))
    assert FlowMatching().losses(field, start, start + 3, key=jax.random.key(0)).max() < 1e-10
    ```
    """

    path: AbstractPath = LinearPath()
    """The path between two partners."""
    times: AbstractTimes = UniformTimes()
    """The distribution of the times."""

    def losses(
        self,
        field: AbstractField,
        start: Float[Array, "batch *state"],
        end: Float[Array, "batch *state"],
        *,
        key: PRNGKeyArray,
        end_time: Scalar = 1.0,
        context: Float[Array, "batch *_"] | None = None,
    ) -> Float[Array, "batch"]:
        """Compute the loss of every pair, at a random time.

        Args:
            field: The field, plain or characteristic. A field that reads u0 is given `start`.
            start: Where the paths begin, at s = 0: the data of a flow.
            end: Where they end, at s = `end_time`: the partners from the source.
            key: Random key of the times.
            end_time: The end T of the integration interval.
            context: One row per sample for a field that reads it.

        Returns:
            The mean squared difference of each sample, per dimension, for velocities with respect to t.

        Raises:
            ValueError: If the field reads x, which is known only in a solve.
        """
        if "x" in field.reads:
            raise ValueError(
                "a field that reads x cannot be matched, because x is known only in a solve: build its velocity with "
                "reads from s, u, u0 and context, and its Jacobian with reads_x=False"
            )
        t = self.times.draw(key, len(start)).astype(start.dtype)
        position, velocity = self.path(start, end, t)
        end_time = jax.lax.stop_gradient(jnp.asarray(end_time, start.dtype))
        condition = Condition(start if "u0" in field.reads else None, context)
        _, rate = field(end_time * t, None, position, condition)
        return jnp.mean(jnp.square(end_time * rate - velocity), axis=tuple(range(1, start.ndim)))
