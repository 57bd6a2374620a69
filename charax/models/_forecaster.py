"""Forecasts of time series from their first value, by Neural ODEs over the times of observations."""

from dataclasses import dataclass
from statistics import NormalDist

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from charax.fields import (
    AbstractField,
    CharacteristicField,
    JointJacobian,
    NetworkVelocity,
    PlainField,
    Timed,
    describe_field,
)
from charax.models._names import ForecastMethod
from charax.models._scaling import Scaling
from charax.nn import mlp, split_key, summarize
from charax.nn._parameters import count
from charax.solve import Solution, Solver


class Forecast(eqx.Module):
    """The mean and the standard deviation of observations.

    ```python
    import jax
    import jax.numpy as jnp
    from charax.models import ForecasterDesign, Scaling

    model = ForecasterDesign("node-fair", width=4).build(Scaling.identity(0, 1), key=jax.random.key(0))
    forecast = model(jnp.ones((2, 1)), jnp.array([0.5, 1.0]))
    lower, upper = forecast.prediction_interval(0.9)
    assert jnp.allclose((lower + upper) / 2, forecast.mean)
    ```
    """

    mean: Float[Array, "batch n"]
    """The expected value of every observation."""
    noise: Float[Array, "n"]
    """The standard deviation of an observation."""
    solution: Solution
    """The solution behind it, with its counts."""

    def prediction_interval(self, level: float = 0.95) -> tuple[Float[Array, "batch n"], Float[Array, "batch n"]]:
        """Compute the interval that contains an observation with a given probability.

        Args:
            level: The probability.

        Returns:
            The lower and the upper ends.

        Raises:
            ValueError: If the level does not lie between 0 and 1.
        """
        if not 0 < level < 1:
            raise ValueError(f"level must lie between 0 and 1, got {level}")
        half = NormalDist().inv_cdf(0.5 + level / 2) * self.noise
        return self.mean - half, self.mean + half


@dataclass(frozen=True)
class ForecasterDesign:
    """Sizes and names from which a forecaster is built.

    ```python
    import jax
    from charax.models import ForecasterDesign, Scaling
    from charax.nn import count_parameters

    design = ForecasterDesign("c-node", augment_dim=0)
    assert count_parameters(design.build(Scaling.identity(0, 1), key=jax.random.key(0))) <= 9744
    ```
    """

    method: ForecastMethod = "c-node"
    """"c-node", "node", which is the paper's baseline and reads the time, or "node-fair", which does not."""
    width: int = 64
    """The width of the hidden layers."""
    characteristic_dim: int = 8
    """The number k of characteristic dimensions."""
    augment_dim: int = 2
    """The number of zeros that are added to the state, so that it can oscillate, which a value alone cannot."""
    damping: float | None = None
    """The limit of the integration time, in multiples of the time range of the training data. It is approached
    smoothly, so that trends level off instead of continuing forever. None: no limit."""

    def __post_init__(self):
        if self.width < 1 or self.augment_dim < 0:
            raise ValueError(
                f"width must be at least 1 and augment_dim at least 0, got {self.width} and {self.augment_dim}"
            )
        if self.damping is not None and not self.damping > 0:
            raise ValueError(f"damping must be above 0, got {self.damping}; leave it out for none")

    def build(self, scaling: Scaling, *, key: PRNGKeyArray) -> "Forecaster":
        """Build a forecaster.

        Args:
            scaling: The units of the data; its positions are the columns of the context.
            key: Random key of the initial weights.

        Returns:
            The forecaster.
        """
        timed = self.method == "node"  # a field that does not read the time extrapolates better
        field = Timed(self.field(scaling.values + self.augment_dim, scaling.dim + timed, key), shows_time=timed)
        noise = jnp.full(scaling.values, -1.0)
        return Forecaster(field, noise, self.augment_dim, None if timed else self.damping, scaling)

    def field(self, state: int, context: int, key: PRNGKeyArray) -> AbstractField:
        """Build the field.

        Args:
            state: The size of the state.
            context: The number of columns of the context.
            key: Random key of the initial weights.

        Returns:
            The field.
        """
        velocity_key, body_key, last_key = split_key(key, 3)
        reads, inputs = ("u", "context"), state + context
        if self.method != "c-node":
            return PlainField(mlp([inputs, self.width, self.width, state], key=key), reads=reads)
        k = self.characteristic_dim
        jacobian = JointJacobian(
            mlp([state, self.width, self.width], final="tanh", key=body_key),
            hidden=self.width,
            channels=state,
            characteristic_dim=k,
            key=last_key,
        )
        velocity = NetworkVelocity(mlp([inputs, self.width, self.width, k], key=velocity_key), k, reads=reads)
        return CharacteristicField(velocity, jacobian)


class Forecaster(eqx.Module):
    """u(t) = u(0) + ∫₀ᵗ Σᵢ ∂u/∂zᵢ · dzᵢ/ds ds, integrated to the time of each observation; times may be irregular.

    ```python
    import jax
    import jax.numpy as jnp
    from charax.models import ForecasterDesign, Scaling

    model = ForecasterDesign("c-node", width=8).build(Scaling.identity(0, 2), key=jax.random.key(0))
    forecast = model(jnp.zeros((3, 2)), jnp.array([0.0, 0.7, 2.5]))
    assert forecast.mean[0].tolist() == [0.0, 0.0] and forecast.noise.shape == (2,)
    ```
    """

    field: Timed
    """The field, integrated to the time of each sample."""
    log_noise: Float[Array, "n"]
    """The logarithm of the standard deviation of observations, in scaled units."""
    augment_dim: int = eqx.field(static=True)
    """The number of zeros that are added to the state."""
    damping: float | None = eqx.field(static=True)
    """The limit of the integration time, as in `ForecasterDesign`."""
    scaling: Scaling = eqx.field(static=True)
    """The units of the data."""

    def __repr__(self) -> str:
        return summarize(self, describe_field(self.field.field), count(self.scaling.values, "value"))

    def __call__(
        self,
        start: Float[Array, "batch n"],
        t: Float[Array, "batch"],
        context: Float[Array, "batch c"] | None = None,
        *,
        solver: Solver | None = None,
    ) -> Forecast:
        """Forecast one value per row.

        Args:
            start: The first value of the series.
            t: The time since then.
            context: Columns that are known about the series.
            solver: How to integrate; adaptive steps with tolerances of 1e-3 by default.

        Returns:
            The forecast.
        """
        solution = self.solve(start, t, context, solver=solver)
        scale = jnp.asarray(self.scaling.value_scale, start.dtype)
        mean = self.scaling.unscale_value(solution.u[:, : self.scaling.values])
        return Forecast(mean, scale * jnp.exp(self.log_noise), solution)

    def solve(
        self,
        start: Float[Array, "batch n"],
        t: Float[Array, "batch"],
        context: Float[Array, "batch c"] | None = None,
        *,
        solver: Solver | None = None,
        at: Float[Array, "points"] | None = None,
    ) -> Solution:
        """Integrate to the time of each row, in scaled units, and keep what happens on the way if `at` is given.

        Args:
            start: As in the call.
            t: As in the call.
            context: As in the call.
            solver: As in the call.
            at: Fractions of the way at which the state, and a learned characteristic, is returned.

        Returns:
            The solution.
        """
        values = self.scaling.scale_value(start)
        state = jnp.concatenate([values, jnp.zeros((values.shape[0], self.augment_dim), values.dtype)], axis=1)
        known = (
            jnp.zeros((values.shape[0], 0), values.dtype) if context is None else self.scaling.scale_position(context)
        )
        condition = jnp.concatenate([self.integration_time(t)[:, None], known], axis=1)
        solver = solver or Solver(rtol=1e-3, atol=1e-3, max_steps=512)
        with_characteristic = at is not None and self.field.characteristic_dim > 0
        return solver.solve(self.field, state, context=condition, at=at, with_characteristic=with_characteristic)

    def integration_time(self, t: Float[Array, "batch"]) -> Float[Array, "batch"]:
        """Compute how long to integrate for a forecast at time t, in multiples of the time range of the data.

        Args:
            t: Times since the first value.

        Returns:
            The integration times, which do not exceed `damping`.
        """
        ratio = t / self.scaling.time
        return ratio if self.damping is None else -self.damping * jnp.expm1(-ratio / self.damping)
