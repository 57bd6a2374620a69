"""The interface of models of whole series, and what they compute from observations with gaps."""

from abc import abstractmethod

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from charax.solve import Outcome, Solution, Solver


class SeriesOutput(eqx.Module):
    """The outputs of a model of series, and what they cost.

    ```python
    import jax
    import jax.numpy as jnp
    from charax.models import SeriesDesign, SeriesOutput

    model = SeriesDesign("gru", width=4).build(2, 3, key=jax.random.key(0))
    out: SeriesOutput = model(jnp.array([[0.0, 1.0]]), jnp.ones((1, 2, 2)), jnp.array([2]))
    assert out.values.shape == (1, 3) and out.nfe == 2
    ```
    """

    values: Float[Array, "batch outputs"]
    """Logits or predicted numbers; NaN where the solve failed."""
    nfe: Int[Array, "*batch"] | None
    """The evaluations of the field, or of the cell of a recurrent network; `None` for an implicit method."""
    outcome: Int[Array, "*batch"]
    """An `Outcome`."""

    @classmethod
    def of(cls, values: Float[Array, "batch outputs"], solution: Solution) -> "SeriesOutput":
        """Take the counts from a solution.

        Args:
            values: The outputs.
            solution: The solution behind them.

        Returns:
            The outputs with the counts.
        """
        return cls(values, solution.stats.nfe, solution.outcome)


class AbstractSeriesModel(eqx.Module):
    """A model that reads whole series: irregular times, missing values, different lengths.

    ```python
    import jax
    import jax.numpy as jnp
    from charax.models import AbstractSeriesModel, SeriesDesign

    model: AbstractSeriesModel = SeriesDesign("cde", width=4).build(1, 2, key=jax.random.key(0))
    times, values = jnp.array([[0.0, 0.4, 1.0]]), jnp.array([[[1.0], [jnp.nan], [2.0]]])
    assert model(times, values, jnp.array([3])).values.shape == (1, 2)
    ```
    """

    @abstractmethod
    def __call__(
        self,
        times: Float[Array, "batch length"],
        values: Float[Array, "batch length channels"],
        lengths: Int[Array, "batch"],
        *,
        solver: Solver | None = None,
    ) -> SeriesOutput:
        """Compute the outputs of a batch of series.

        Args:
            times: The times of the observations, in units in which series last about 1.
            values: Standardized observations; NaN where one is missing.
            lengths: The number of observations of each series.
            solver: How to integrate; midpoint steps by default.

        Returns:
            The outputs.
        """


def observed_mask(values: Float[Array, "batch length channels"], lengths: Int[Array, "batch"]) -> Bool[Array, "..."]:
    """Which values were observed: neither missing nor behind the end."""
    used = jnp.arange(values.shape[1]) < lengths[:, None]
    return used[:, :, None] & ~jnp.isnan(values)


def summary_features(
    times: Float[Array, "batch length"], values: Float[Array, "batch length channels"], lengths: Int[Array, "batch"]
) -> Float[Array, "batch features"]:
    """The mean, the standard deviation and the mean absolute change of each channel, how much of it was observed, and
    the duration."""
    observed = observed_mask(values, lengths)
    filled = jnp.where(observed, values, 0)
    count = jnp.maximum(observed.sum(axis=1), 1)
    mean = filled.sum(axis=1) / count
    deviation = jnp.where(observed, values - mean[:, None], 0)
    # The square root has no derivative at 0, where a channel is constant.
    std = jnp.sqrt(jnp.square(deviation).sum(axis=1) / count + 1e-6)
    both = observed[:, 1:] & observed[:, :-1]
    change = jnp.where(both, jnp.abs(jnp.diff(filled, axis=1)), 0).sum(axis=1) / jnp.maximum(both.sum(axis=1), 1)
    share = observed.sum(axis=1) / lengths[:, None]
    last = jnp.take_along_axis(times, lengths[:, None] - 1, axis=1)
    return jnp.concatenate([mean, std, change, share, last - times[:, :1]], axis=1)


def summary_size(channels: int) -> int:
    """The number of features of `summary_features`."""
    return 4 * channels + 1


def first_values(
    values: Float[Array, "batch length channels"], lengths: Int[Array, "batch"]
) -> Float[Array, "batch features"]:
    """The values of the first row, 0 where one is missing, and which of them were observed."""
    observed = observed_mask(values, lengths)[:, 0]
    return jnp.concatenate([jnp.where(observed, values[:, 0], 0), observed.astype(values.dtype)], axis=1)


def drop_values(
    values: Float[Array, "batch length channels"], largest: float, key: PRNGKeyArray
) -> Float[Array, "batch length channels"]:
    """Remove a fraction of the values of each series that is uniform between 0 and `largest`.

    Args:
        values: The values.
        largest: The largest fraction.
        key: Random key of the fractions and of what is removed.

    Returns:
        The values, with NaN where one was removed.

    ```python
    import jax
    import jax.numpy as jnp
    from charax.models import drop_values

    dropped = drop_values(jnp.ones((50, 20, 2)), 0.6, jax.random.key(0))
    assert 0.2 < jnp.isnan(dropped).mean() < 0.4
    ```
    """
    fraction_key, value_key = jax.random.split(key)
    fraction = largest * jax.random.uniform(fraction_key, (values.shape[0], 1, 1))
    return jnp.where(jax.random.uniform(value_key, values.shape) < fraction, jnp.nan, values)


SUCCESS = int(Outcome.SUCCESS)
