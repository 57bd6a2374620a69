"""Models of whole series as data."""

from dataclasses import dataclass
from typing import Literal

import equinox as eqx
import jax
from jaxtyping import PRNGKeyArray

from charax.fields import (
    AbstractField,
    AbstractJacobian,
    AccumulatingJacobian,
    CharacteristicField,
    Interpolation,
    JoinedVelocity,
    JointJacobian,
    LieBracketJacobian,
    NetworkVelocity,
    ObservedVelocity,
    PlainField,
)
from charax.models._lift import InputLayer
from charax.models._names import SeriesMethod, SeriesReadout
from charax.models._neural_ode import NeuralODE
from charax.models._series_gru import GRUSeriesModel
from charax.models._series_model import AbstractSeriesModel, summary_size
from charax.models._series_ode import ObservedSeriesModel, PathReading, SummarySeriesModel
from charax.nn import Linear, count_parameters, mlp, split_key


@dataclass(frozen=True)
class SeriesDesign:
    """Sizes and names from which a model of whole series is built.

    ```python
    import jax
    import jax.numpy as jnp
    from charax.models import SeriesDesign

    model = SeriesDesign("cde", width=8, state_dim=4).build(2, 3, key=jax.random.key(0))
    times = jnp.array([[0.0, 0.2, 1.0], [0.0, 0.5, 0.0]])
    values = jnp.array([[[1.0, 2.0], [jnp.nan, 1.0], [0.0, 0.0]], [[1.0, 2.0], [0.5, jnp.nan], [0.0, 0.0]]])
    out = model(times, values, jnp.array([3, 2]))
    assert out.values.shape == (2, 3) and out.nfe == 4  # two midpoint steps
    ```
    """

    method: SeriesMethod = "cde"
    """"cde": along the observed path. "c-node": learned directions that read a summary of the series. "hybrid": the
    observed directions and the learned ones. "node": from the first observations. "gru": a recurrent network."""
    width: int = 32
    """The width of the hidden layers; the size of the state of a "gru"."""
    state_dim: int = 16
    """The size of the state."""
    characteristic_dim: int = 4
    """The number of learned directions of "hybrid" and "c-node"."""
    interpolation: Interpolation = "hermite"
    """The interpolation of "cde" and "hybrid", as in `ObservedPath.interpolate`."""
    count_scale: float | None = None
    """The factor of channels that count the observations, for "cde" and "hybrid"; None for no such channels."""
    windows: int | None = None
    """The number of windows of the log-ODE method, for "cde" and "hybrid"; None for the path itself."""
    depth: Literal[1, 2] = 2
    """The depth of the log-ODE method."""
    reads_path: bool = False
    """Whether the Jacobian of "cde" and "hybrid" reads the observed values too, and not only the state."""
    readout: SeriesReadout = "last"
    """"last": the outputs are made from the last state. "mean": from its mean over time too; for "cde", "hybrid" and
    "gru"."""
    summary_start: bool = False
    """Whether the initial state of "cde", "hybrid" and "gru" is made from a summary of the series, too: the mean, the
    deviation and the mean change of each channel, and how much of it was observed."""

    def build(self, channels: int, outputs: int, *, key: PRNGKeyArray) -> AbstractSeriesModel:
        """Build a model.

        Args:
            channels: The number of observed channels.
            outputs: The number of outputs.
            key: Random key of the initial weights.

        Returns:
            The model.
        """
        if self.method == "gru":
            return GRUSeriesModel(
                channels, outputs, hidden=self.width, readout=self.readout, summary_start=self.summary_start, key=key
            )
        lift_key, field_key, head_key = split_key(key, 3)
        averages = self.readout == "mean" and self.method in ("cde", "hybrid")
        head = Linear((1 + averages) * self.state_dim, outputs, key=head_key)
        lift = lambda inputs: InputLayer(Linear(inputs, self.state_dim, key=lift_key))
        if self.method in ("c-node", "node"):
            field = self._unobserved_field(summary_size(channels), field_key)
            return SummarySeriesModel(NeuralODE(field, lift(2 * channels)), head)
        reading = PathReading(self.interpolation, self.count_scale, self.windows, self.depth)
        k = reading.channels(channels)
        field = self._observed_field(k, summary_size(channels), field_key)
        start = lift(k + summary_size(channels) * self.summary_start)
        return ObservedSeriesModel(NeuralODE(field, start), head, reading, averages, self.summary_start)

    def count(self, channels: int, outputs: int) -> int:
        """Count the parameters without allocating them.

        Args:
            channels: The number of observed channels.
            outputs: The number of outputs.

        Returns:
            The number of parameters.
        """
        return count_parameters(eqx.filter_eval_shape(self.build, channels, outputs, key=jax.random.key(0)))

    def _observed_field(self, k: int, summary: int, key: PRNGKeyArray) -> AbstractField:
        velocity_key, jacobian_key = split_key(key)
        learned = self.characteristic_dim if self.method == "hybrid" else 0
        jacobian = self._jacobian(k + learned, jacobian_key, reads_x=self.reads_path)
        areas = 0
        if self.windows is not None and self.depth == 2:
            areas, jacobian = k * (k - 1) // 2, LieBracketJacobian(jacobian, observed=k)
        if self.readout == "mean":
            jacobian = AccumulatingJacobian(jacobian)
        if not learned:
            return CharacteristicField(ObservedVelocity(k + areas), jacobian)
        # The learned directions read what is accumulated, too.
        state = self.state_dim * (2 if self.readout == "mean" else 1)
        network = mlp([state + summary, self.width, learned], key=velocity_key)
        velocities = [
            ObservedVelocity(k + areas, covariates=summary),
            NetworkVelocity(network, learned, reads=("u", "context")),
        ]
        return CharacteristicField(JoinedVelocity(velocities, per_time=True), jacobian)

    def _unobserved_field(self, summary: int, key: PRNGKeyArray) -> AbstractField:
        if self.method == "node":
            return PlainField(mlp([self.state_dim, self.width, self.width, self.state_dim], key=key), reads=("u",))
        velocity_key, jacobian_key = split_key(key)
        k = self.characteristic_dim
        network = mlp([self.state_dim + summary, self.width, k], key=velocity_key)
        return CharacteristicField(NetworkVelocity(network, k, reads=("u", "context")), self._jacobian(k, jacobian_key))

    def _jacobian(self, k: int, key: PRNGKeyArray, *, reads_x: bool = False) -> AbstractJacobian:
        body_key, last_key = split_key(key)
        body = mlp([self.state_dim + k * reads_x, self.width, self.width], final="tanh", key=body_key)
        return JointJacobian(
            body, hidden=self.width, channels=self.state_dim, characteristic_dim=k, reads_x=reads_x, key=last_key
        )
