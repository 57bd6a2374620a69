"""A gated recurrent network that sees the gaps between observations: the baseline that is no ODE."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float, Int, PRNGKeyArray

from charax.fields._observed_interpolation import fill_forward
from charax.models._names import SeriesReadout
from charax.models._series_model import (
    SUCCESS,
    AbstractSeriesModel,
    SeriesOutput,
    observed_mask,
    summary_features,
    summary_size,
)
from charax.nn import Linear, split_key, summarize
from charax.solve import Solver


class GRUSeriesModel(AbstractSeriesModel):
    """A GRU over the rows of a series: the last value of each channel, whether it is new, and the time since the row
    before.

    ```python
    import jax
    from charax.models import GRUSeriesModel

    model = GRUSeriesModel(3, 2, hidden=4, key=jax.random.key(0))
    assert model.hidden == 4
    ```
    """

    inputs: Linear
    """From a row to the three gates."""
    recurrent: Linear
    """From the state to the three gates."""
    head: Linear
    """From the last state, and perhaps the mean of all, to the outputs."""
    start: Linear | None
    """From a summary of the series to the initial state; without it, that is 0."""
    readout: SeriesReadout = eqx.field(static=True)

    def __init__(
        self,
        channels: int,
        outputs: int,
        *,
        hidden: int,
        readout: SeriesReadout = "last",
        summary_start: bool = False,
        key: PRNGKeyArray,
    ):
        """Initialize the weights.

        Args:
            channels: The number of observed channels.
            outputs: The number of outputs.
            hidden: The size of the state.
            readout: "last": the outputs are made from the last state. "mean": from the mean of all of them too.
            summary_start: Whether the initial state is made from a summary of the series.
            key: Random key of the initial weights.
        """
        input_key, recurrent_key, head_key = split_key(key, 3)
        self.inputs = Linear(2 * channels + 1, 3 * hidden, key=input_key)
        self.recurrent = Linear(hidden, 3 * hidden, key=recurrent_key)
        self.head = Linear(hidden * (2 if readout == "mean" else 1), outputs, key=head_key)
        start_key = jax.random.fold_in(input_key, 1)
        self.start = Linear(summary_size(channels), hidden, key=start_key) if summary_start else None
        self.readout = readout

    def __repr__(self) -> str:
        return summarize(self, f"hidden {self.hidden}")

    @property
    def hidden(self) -> int:
        """The size of the state."""
        return self.recurrent.weight.shape[0]

    def __call__(
        self,
        times: Float[Array, "batch length"],
        values: Float[Array, "batch length channels"],
        lengths: Int[Array, "batch"],
        *,
        solver: Solver | None = None,
    ) -> SeriesOutput:
        """Read the rows one after the other.

        Args:
            times: The times of the observations, in units in which series last about 1.
            values: Standardized observations; NaN where one is missing.
            lengths: The number of observations of each series.
            solver: Has no meaning here.

        Returns:
            The outputs. `nfe` is the number of rows.
        """
        observed = observed_mask(values, lengths)
        known = fill_forward(jnp.where(observed, values, 0), observed)
        gaps = jnp.concatenate([jnp.zeros_like(times[:, :1]), jnp.diff(times, axis=1)], axis=1)
        rows = jnp.concatenate([known, observed.astype(values.dtype), gaps[:, :, None]], axis=2)
        gates = jnp.swapaxes(self.inputs(rows), 0, 1)
        used = (jnp.arange(values.shape[1]) < lengths[:, None]).T[:, :, None]
        zero = state = jnp.zeros((values.shape[0], self.hidden), values.dtype)
        if self.start is not None:
            state = jnp.tanh(self.start(summary_features(times, values, lengths)))

        def step(carry: tuple[Array, Array], row: tuple[Array, Array]) -> tuple[tuple[Array, Array], None]:
            (state, total), (gate, is_used) = carry, row
            update, reset, candidate = jnp.split(gate, 3, axis=1)
            update_h, reset_h, candidate_h = jnp.split(self.recurrent(state), 3, axis=1)
            keep = jax.nn.sigmoid(update + update_h)
            new = jnp.tanh(candidate + jax.nn.sigmoid(reset + reset_h) * candidate_h)
            state = jnp.where(is_used, keep * state + (1 - keep) * new, state)
            return (state, total + jnp.where(is_used, state, 0)), None

        (state, total), _ = lax.scan(step, (state, zero), (gates, used))
        if self.readout == "mean":
            state = jnp.concatenate([state, total / lengths[:, None]], axis=1)
        return SeriesOutput(self.head(state), jnp.asarray(values.shape[1]), jnp.asarray(SUCCESS))
