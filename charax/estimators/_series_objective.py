"""What the estimator of series trains."""

from dataclasses import dataclass

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, PRNGKeyArray

from charax.estimators._objectives import AbstractObjective
from charax.estimators._rows import Batch
from charax.estimators._series_rows import unpack
from charax.models import AbstractSeriesModel, SeriesDesign, drop_values


@dataclass(frozen=True)
class SeriesObjective(AbstractObjective):
    """Classification of packed series; a fraction of the observations is dropped at random in training."""

    design: SeriesDesign
    channels: int
    drop_augmentation: float

    def build(self, key: PRNGKeyArray) -> AbstractSeriesModel:
        return self.design.build(self.channels, self.outputs, key=key)

    def loss(
        self, model: eqx.Module, batch: Batch, key: PRNGKeyArray
    ) -> tuple[Float[Array, ""], dict[str, Float[Array, ""]]]:
        """The weighted mean loss of series with dropped observations."""
        if self.drop_augmentation:
            times, values, _ = unpack(batch.inputs, self.channels)
            values = drop_values(values, self.drop_augmentation, key)
            packed = [times, values.reshape(len(values), -1), batch.inputs[:, -1:]]
            batch = batch._replace(inputs=jnp.concatenate(packed, axis=1))
        return super().loss(model, batch, key)

    def losses(self, model: AbstractSeriesModel, rows: Batch, key: PRNGKeyArray) -> Float[Array, "rows"]:
        out = model(*unpack(rows.inputs, self.channels), solver=self.training_solver)
        return optax.softmax_cross_entropy(out.values, rows.targets)

    def predict(
        self, model: AbstractSeriesModel, inputs: Float[Array, "rows features"]
    ) -> Float[Array, "rows outputs"]:
        return jax.nn.softmax(model(*unpack(inputs, self.channels), solver=self.prediction_solver).values)
