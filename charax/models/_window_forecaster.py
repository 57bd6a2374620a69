"""Forecasts from a state that is inferred from a window of past observations."""

from dataclasses import dataclass

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float, Int, PRNGKeyArray

from charax.fields import Interpolation, Timed, describe_field
from charax.fields._observed_interpolation import fill_forward
from charax.models._forecaster import ForecasterDesign
from charax.models._names import ForecastMethod, ForecastStart
from charax.models._series_design import SeriesDesign
from charax.models._series_model import AbstractSeriesModel, SeriesOutput, observed_mask
from charax.nn import Linear, count_parameters, summarize
from charax.solve import Solver

_LEAST_STD = 1e-3
"""The smallest standard deviation, in units of that of the data: a likelihood without a bound would be infinite."""
_SAMPLES = 32
"""States that are drawn for a forecast, if the state is a distribution."""


class WindowForecast(eqx.Module):
    """The mean and the standard deviation of later observations, in scaled units.

    ```python
    import jax
    import jax.numpy as jnp
    from charax.models import WindowDesign

    model = WindowDesign(width=4, state_dim=3).build(1, 0, key=jax.random.key(0))
    past = jnp.array([[0.0, 0.5, 1.0]]), jnp.array([[[1.0], [jnp.nan], [2.0]]]), jnp.array([3])
    forecast = model(*past, jnp.array([[0.1, 0.9]]), jnp.zeros((1, 2, 0)))
    assert forecast.mean.shape == forecast.std.shape == (1, 2, 1)
    ```
    """

    mean: Float[Array, "batch times values"]
    """The expected value of every observation."""
    std: Float[Array, "batch times values"]
    """Its standard deviation, calibrated if the model is."""
    divergence: Float[Array, "batch"]
    """The divergence of the inferred distribution from the prior; 0 if the state is inferred as a point."""
    nfe: Int[Array, ""] | None
    """The evaluations of both fields."""
    outcome: Int[Array, ""]
    """An `Outcome`."""


@dataclass(frozen=True)
class WindowDesign:
    """Sizes and names from which a forecaster with an inferred state is built.

    ```python
    from charax.models import WindowDesign

    assert WindowDesign(width=8).count(2, 1) > WindowDesign(width=4).count(2, 1)
    ```
    """

    method: ForecastMethod = "c-node"
    """The field that continues the state: "c-node" or "node-fair"."""
    width: int = 32
    """The width of the hidden layers."""
    state_dim: int = 16
    """The size of the inferred state."""
    characteristic_dim: int = 8
    """The number k of characteristic dimensions of a "c-node"."""
    damping: float | None = None
    """The limit of the integration time, in units of time, as in `ForecasterDesign`."""
    latent: bool = False
    """Whether the state is inferred as a distribution, as in latent ODEs."""
    count_scale: float = 0.1
    """The factor of the channels that count the past observations."""
    interpolation: Interpolation = "linear"
    """The interpolation of past observations. "hermite" continues the slope between the last two, which is without
    bound where noisy observations follow each other closely."""
    start: ForecastStart = "linear"
    """"linear": the state corrects the linear forecast. "last": it corrects the last value, which takes more data and
    is easier to learn where they are many; the linear forecast joins only in `scale_correction`."""

    def __post_init__(self):
        if self.method == "node":
            raise ValueError(
                'the method "node" reads the time since the start of a series, which is not known to a window: choose '
                '"c-node" or "node-fair"'
            )

    def build(self, values: int, known: int, *, key: PRNGKeyArray) -> "WindowForecaster":
        """Build a forecaster.

        Args:
            values: The number of values to forecast.
            known: The number of columns that are known at all times.
            key: Random key of the initial weights.

        Returns:
            The forecaster.
        """
        encoder_key, skip_key, field_key, head_key = jax.random.split(key, 4)
        encoder = SeriesDesign(
            "cde",
            width=self.width,
            state_dim=self.state_dim,
            interpolation=self.interpolation,
            count_scale=self.count_scale,
            reads_path=True,
        ).build(values + known, (1 + self.latent) * self.state_dim, key=encoder_key)
        decoder = ForecasterDesign(self.method, self.width, self.characteristic_dim)
        field = Timed(decoder.field(self.state_dim, known, field_key), shows_time=False)
        head = Linear(self.state_dim, 2 * values, key=head_key)
        # At first a forecast is close to the anchor.
        head = eqx.tree_at(lambda it: it.weight, head, 0.1 * head.weight)
        skip = Linear(values + known, self.state_dim, bias=False, key=skip_key)
        anchor_weight = jnp.zeros(()) if self.start == "last" else None
        calibration = jnp.zeros(values), jnp.zeros(values)
        return WindowForecaster(encoder, skip, field, head, *calibration, anchor_weight, self.damping, self.latent)

    def count(self, values: int, known: int) -> int:
        """Count the parameters without allocating them.

        Args:
            values: The number of values to forecast.
            known: The number of columns that are known at all times.

        Returns:
            The number of parameters.
        """
        return count_parameters(eqx.filter_eval_shape(self.build, values, known, key=jax.random.key(0)))


class WindowForecaster(eqx.Module):
    """A neural CDE along past observations infers a state, which a neural ODE continues to the times of forecasts.

    ```python
    import jax
    from charax.models import WindowDesign, WindowForecaster

    model = WindowDesign(width=4, state_dim=3, latent=True).build(2, 1, key=jax.random.key(0))
    assert isinstance(model, WindowForecaster) and model.calibration.shape == (2,)
    ```
    """

    encoder: AbstractSeriesModel
    """From past observations to the state, or to its mean and the logarithm of its variance."""
    skip: Linear
    """From the last values of all channels to what is added to the state, or to its mean."""
    field: Timed
    """The field that continues the state; its context are the known columns."""
    head: Linear
    """From a state to the correction, and the inverse of softplus of the standard deviations."""
    log_calibration: Float[Array, "values"]
    """The logarithm of a factor of the standard deviations that is not learned but measured on validation data: such
    that intervals contain what they should."""
    log_error_ratio: Float[Array, "values"]
    """The logarithm of the size of errors on validation data, in units of these standard deviations."""
    anchor_weight: Float[Array, ""] | None
    """What is corrected is this weight of the anchor, and the rest of the last values; None for the anchor. It is not
    learned but chosen on validation data."""
    damping: float | None = eqx.field(static=True)
    """The limit of the integration time."""
    latent: bool = eqx.field(static=True)
    """Whether the state is inferred as a distribution."""

    def __repr__(self) -> str:
        return summarize(self, describe_field(self.field.field))

    def scale_correction(self, factor: float) -> "WindowForecaster":
        """Shrink the difference of the forecast from the anchor.

        Args:
            factor: The factor of this difference; 0 leaves the anchor alone.

        Returns:
            The forecaster that is closer to the anchor.
        """
        values = len(self.log_calibration)
        scale = jnp.where(jnp.arange(2 * values) < values, factor, 1.0).astype(self.head.weight.dtype)
        head = jax.tree.map(lambda leaf: leaf * scale, self.head)
        scaled = eqx.tree_at(lambda it: it.head, self, head)
        if self.anchor_weight is None:
            return scaled
        return eqx.tree_at(lambda it: it.anchor_weight, scaled, 1 - factor * (1 - self.anchor_weight))

    @property
    def calibration(self) -> Float[Array, "values"]:
        """The factor of the standard deviations."""
        return jnp.exp(lax.stop_gradient(self.log_calibration))

    def __call__(
        self,
        past_times: Float[Array, "batch history"],
        past_values: Float[Array, "batch history channels"],
        past_lengths: Int[Array, "batch"],
        times: Float[Array, "batch times"],
        known: Float[Array, "batch times known"],
        anchor: Float[Array, "batch times values"] | None = None,
        *,
        solver: Solver | None = None,
        key: PRNGKeyArray | None = None,
    ) -> WindowForecast:
        """Infer the state, and continue it.

        Args:
            past_times: The times of the past observations, in units in which windows last about 1.
            past_values: Standardized values, then known columns; NaN where one is missing.
            past_lengths: The number of past observations.
            times: The times of forecasts since the last past observation, in increasing order.
            known: The known columns at these times.
            anchor: What the state corrects, such as an `Autoregression`'s forecast, or what joins its forecast, see
                `anchor_weight`; the last values by default.
            solver: How to integrate; its fixed steps are those between two forecasts. Two midpoint steps by default.
            key: Draw one state from the inferred distribution, as in training; without it, forecasts are averaged over
                a fixed sample of states. Only for a distribution.

        Returns:
            The forecasts.
        """
        solver = solver or Solver("midpoint", steps=2)
        encoded, last = self._infer(past_times, past_values, past_lengths, solver)
        anchor = self._corrected(last[:, None, : len(self.log_calibration)], anchor)
        start = self.skip(last)
        if not self.latent:
            mean, std, nfe, outcome = self._continue(encoded.values + start, times, known, solver)
            mean = anchor + mean
            divergence = jnp.zeros(times.shape[0], mean.dtype)
        else:
            center, log_variance = jnp.split(encoded.values, 2, axis=1)
            center = center + start
            divergence = 0.5 * jnp.sum(jnp.exp(log_variance) + center**2 - 1 - log_variance, axis=1)
            count = _SAMPLES if key is None else 1
            noise = jax.random.normal(jax.random.key(0) if key is None else key, (count, *center.shape), center.dtype)
            states = center + jnp.exp(log_variance / 2) * noise
            many = lambda array: jnp.concatenate([array] * count)
            means, stds, nfe, outcome = self._continue(
                states.reshape(-1, center.shape[1]), many(times), many(known), solver
            )
            means, stds = (array.reshape(count, *times.shape, -1) for array in (means, stds))
            mean = anchor + means.mean(axis=0)
            std = stds[0] if count == 1 else jnp.sqrt(jnp.square(stds).mean(axis=0) + means.var(axis=0))
        total = None if nfe is None or encoded.nfe is None else encoded.nfe + nfe
        outcome = jnp.maximum(encoded.outcome, outcome)
        return WindowForecast(mean, std * self.calibration, divergence, total, outcome)

    def trajectories(
        self,
        past_times: Float[Array, "batch history"],
        past_values: Float[Array, "batch history channels"],
        past_lengths: Int[Array, "batch"],
        times: Float[Array, "batch times"],
        known: Float[Array, "batch times known"],
        *,
        solver: Solver | None = None,
    ) -> tuple[Float[Array, "times batch state"], Float[Array, "times batch k"] | None]:
        """Follow the state, or its mean, and the characteristic to the times of forecasts.

        Args:
            past_times: As in a call.
            past_values: As in a call.
            past_lengths: As in a call.
            times: As in a call.
            known: As in a call.
            solver: As in a call.

        Returns:
            The states, and the characteristics, which begin at each time where they ended at the one before; None for a
            plain field.
        """
        solver = solver or Solver("midpoint", steps=2)
        encoded, last = self._infer(past_times, past_values, past_lengths, solver)
        center = jnp.split(encoded.values, 2, axis=1)[0] if self.latent else encoded.values

        def step(state: Array, condition: Array) -> tuple[Array, tuple[Array, Array | None]]:
            learned = self.field.characteristic_dim > 0
            solution = solver.solve(self.field, state, context=condition, with_characteristic=learned)
            return solution.u, (solution.u, solution.x)

        _, (states, x) = lax.scan(step, center + self.skip(last), self._conditions(times, known))
        return states, None if x is None else jnp.cumsum(x, axis=0)

    def _corrected(self, last: Array, anchor: Array | None) -> Array:
        """What the state corrects."""
        if anchor is None or self.anchor_weight is None:
            return last if anchor is None else anchor
        return last + lax.stop_gradient(self.anchor_weight) * (anchor - last)

    def _infer(
        self, past_times: Array, past_values: Array, past_lengths: Array, solver: Solver
    ) -> tuple[SeriesOutput, Array]:
        """What the encoder says about the past, and the last values of all channels."""
        encoded = self.encoder(
            past_times, past_values, past_lengths, solver=Solver("midpoint", steps=1, adjoint=solver.adjoint)
        )
        observed = observed_mask(past_values, past_lengths)
        return encoded, fill_forward(jnp.where(observed, past_values, 0), observed)[:, -1]

    def _conditions(self, times: Array, known: Array) -> Array:
        """The time between two forecasts and the known columns at the second, forecast by forecast."""
        if self.damping is not None:
            times = -self.damping * jnp.expm1(-times / self.damping)
        gaps = jnp.diff(times, axis=1, prepend=0)
        return jnp.swapaxes(jnp.concatenate([gaps[:, :, None], known], axis=2), 0, 1)

    def _continue(
        self, state: Float[Array, "batch state"], times: Array, known: Array, solver: Solver
    ) -> tuple[Array, Array, Array | None, Array]:
        def step(state: Array, condition: Array) -> tuple[Array, tuple]:
            solution = solver.solve(self.field, state, context=condition)
            return solution.u, (solution.u, solution.stats.nfe, solution.outcome)

        _, (states, nfe, outcome) = lax.scan(step, state, self._conditions(times, known))
        mean, width = jnp.split(self.head(jnp.swapaxes(states, 0, 1)), 2, axis=2)
        return mean, _LEAST_STD + jax.nn.softplus(width), None if nfe is None else nfe.sum(), outcome.max()


def forecast_losses(forecast: WindowForecast, values: Float[Array, "batch times values"]) -> Float[Array, "batch"]:
    """The squared errors of the means, the Gaussian negative log-likelihood of the standard deviations given the means,
    and the divergence of the inferred state, per observation that is not missing.

    The means are not weighted by the standard deviations: a likelihood would give up on what is hard to forecast.

    Args:
        forecast: The forecasts of some windows.
        values: What was observed, in scaled units; NaN where it is missing.

    Returns:
        The loss of each window.

    ```python
    import jax
    import jax.numpy as jnp
    from charax.models import WindowDesign, forecast_losses

    model = WindowDesign(width=4, state_dim=3).build(1, 0, key=jax.random.key(0))
    out = model(jnp.zeros((1, 1)), jnp.ones((1, 1, 1)), jnp.array([1]), jnp.ones((1, 1)), jnp.zeros((1, 1, 0)))
    assert forecast_losses(out, out.mean + 1)[0] > forecast_losses(out, out.mean)[0]
    ```
    """
    observed = ~jnp.isnan(values)
    count = jnp.maximum(observed.sum(axis=(1, 2)), 1)
    error = jnp.where(observed, values - forecast.mean, 0)
    likelihood = 0.5 * jnp.square(lax.stop_gradient(error) / forecast.std) + jnp.log(forecast.std)
    total = jnp.where(observed, 0.5 * jnp.square(error) + likelihood, 0).sum(axis=(1, 2))
    return (total + forecast.divergence) / count
