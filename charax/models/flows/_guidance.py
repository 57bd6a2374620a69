"""Classifier-free guidance: samples that are more typical of their class than the data are."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from charax.fields import AbstractField, Condition, Read, Scalar, Time


class GuidedField(AbstractField):
    """(1 + w)·f(s, u; z) − w·f(s, u; 0): the field of a class, moved away from that of all classes.

    Context 0 stands for all classes, if the field was trained with contexts that were hidden by `hide_context`.

    ```python
    import jax.numpy as jnp
    from charax.fields import Condition, PlainField
    from charax.models.flows import GuidedField

    field = GuidedField(PlainField(lambda h: h[:, 1:], reads=("u", "context")), 2.0)
    _, rate = field(0.0, None, jnp.zeros((3, 1)), Condition(context=jnp.ones((3, 1))))
    assert (rate == 3).all()
    ```
    """

    field: AbstractField
    """The field of a flow that reads a context."""
    weight: Scalar
    """The weight w; 0 for the field as it is."""

    def __check_init__(self):
        if "context" not in self.field.reads:
            raise ValueError("guidance is for a flow that reads classes: train it with --conditional")

    @property
    def characteristic_dim(self) -> int:
        return 0

    @property
    def reads(self) -> frozenset[Read]:
        return self.field.reads

    def __call__(
        self, s: Time, x: Float[Array, "batch k"] | None, u: Float[Array, "batch *state"], z: Condition
    ) -> tuple[None, Float[Array, "batch *state"]]:
        assert z.context is not None
        # One evaluation of twice the batch.
        twice = Condition(None, jnp.concatenate([z.context, jnp.zeros_like(z.context)]))
        times = jnp.tile(s, 2) if jnp.ndim(s) else s
        _, rates = self.field(times, None, jnp.concatenate([u, u]), twice)
        own, all_classes = jnp.split(rates, 2)
        return None, own + self.weight * (own - all_classes)


def hide_context(
    context: Float[Array, "batch columns"], fraction: float, *, key: PRNGKeyArray
) -> Float[Array, "batch columns"]:
    """Set the context of some samples to 0, so that a field learns the density of all classes, too.

    Args:
        context: One row per sample.
        fraction: The probability with which a row is hidden.
        key: Random key.

    Returns:
        The context, with rows of zeros.

    ```python
    import jax
    import jax.numpy as jnp
    from charax.models.flows import hide_context

    hidden = hide_context(jnp.ones((1_000, 2)), 0.1, key=jax.random.key(0))
    assert 0.85 < hidden.mean() < 0.95
    ```
    """
    return jnp.where(jax.random.bernoulli(key, fraction, (len(context), 1)), 0.0, context)
