"""A gated recurrent network that sees the gaps between observations: the baseline that is no ODE."""

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float, Int, PRNGKeyArray

from charax.fields._observed_interpolation import fill_forward
from charax.models._series_model import SUCCESS, AbstractSeriesModel, SeriesOutput, observed_mask
from charax.nn import Linear
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
    """From the last state to the outputs."""

    def __init__(self, channels: int, outputs: int, *, hidden: int, key: PRNGKeyArray):
        """Initialize the weights.

        Args:
            channels: The number of observed channels.
            outputs: The number of outputs.
            hidden: The size of the state.
            key: Random key of the initial weights.
        """
        input_key, recurrent_key, head_key = jax.random.split(key, 3)
        self.inputs = Linear(2 * channels + 1, 3 * hidden, key=input_key)
        self.recurrent = Linear(hidden, 3 * hidden, key=recurrent_key)
        self.head = Linear(hidden, outputs, key=head_key)

    @property
    def hidden(self) -> int:
        """The size of the state."""
        return self.head.weight.shape[0]

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
        state = jnp.zeros((values.shape[0], self.hidden), values.dtype)

        def step(state: Array, row: tuple[Array, Array]) -> tuple[Array, None]:
            gate, is_used = row
            update, reset, candidate = jnp.split(gate, 3, axis=1)
            update_h, reset_h, candidate_h = jnp.split(self.recurrent(state), 3, axis=1)
            keep = jax.nn.sigmoid(update + update_h)
            new = jnp.tanh(candidate + jax.nn.sigmoid(reset + reset_h) * candidate_h)
            return jnp.where(is_used, keep * state + (1 - keep) * new, state), None

        state, _ = lax.scan(step, state, (gates, used))
        return SeriesOutput(self.head(state), jnp.asarray(values.shape[1]), jnp.asarray(SUCCESS))
