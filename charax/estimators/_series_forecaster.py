"""Forecasts of series from windows of past observations."""

from dataclasses import dataclass, replace
from pathlib import Path
from statistics import NormalDist
from typing import Any, ClassVar

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray
from sklearn.utils import Tags, check_random_state
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.validation import check_is_fitted

from charax.data import ForecastWindows, WindowUnits
from charax.data._fold_plan import FoldPlan, cut_series, cut_times
from charax.data._forecast_windows import cut_window, fit_windows
from charax.data.files._series import RawSeries
from charax.estimators._base import CONSTRAINTS, POSITIVE_INTEGER, AbstractEstimator, ArrayLike
from charax.estimators._objectives import AbstractObjective
from charax.estimators._rows import Batch, Rows
from charax.estimators._series_rows import SeriesArrays
from charax.models import WindowDesign, WindowForecaster, forecast_losses
from charax.train import conformal_quantile, root_mean_square

_LEVEL = 0.95
_HALF_WIDTH = NormalDist().inv_cdf(0.5 + _LEVEL / 2)
_FEW_SERIES = 10
"""Of fewer series than this the last times are set aside to calibrate the intervals, instead of some of the series."""


@dataclass(frozen=True)
class WindowObjective(AbstractObjective):
    """Forecasts of packed windows."""

    design: WindowDesign
    channels: int
    history: int

    def build(self, key: PRNGKeyArray) -> WindowForecaster:
        return self.design.build(self.channels, 0, key=key)

    def losses(self, model: WindowForecaster, rows: Batch, key: PRNGKeyArray) -> Float[Array, "rows"]:
        out = model(*self._unpack(rows.inputs), solver=self.training_solver)
        return forecast_losses(out, rows.targets.reshape(out.mean.shape))

    def predict(self, model: WindowForecaster, inputs: Float[Array, "rows features"]) -> tuple[Array, Array]:
        """Means and standard deviations."""
        out = model(*self._unpack(inputs), solver=self.prediction_solver)
        return out.mean, out.std

    def _unpack(self, rows: Float[Array, "rows features"]) -> tuple[Array, ...]:
        ends = np.cumsum([self.history, self.history * self.channels, 1])
        past_times, past_values, lengths, ahead = jnp.split(rows, ends, axis=1)
        times, anchor = jnp.split(ahead, [ahead.shape[1] // (1 + self.channels)], axis=1)
        values = past_values.reshape(len(rows), self.history, self.channels)
        known = jnp.zeros((*times.shape, 0), rows.dtype)
        return past_times, values, lengths[:, 0].astype(int).clip(1), times, known, anchor.reshape(*times.shape, -1)


class SeriesForecaster(AbstractEstimator):
    """A forecaster of series with irregular times, missing values and different lengths.

    A neural controlled differential equation along up to `history` past observations infers a state, and a neural ODE
    continues it to the times of the forecasts, which can be any. It corrects the linear forecast
    `units_.autoregressions`. The 95% prediction intervals are calibrated on observations that were set aside.

    Args:
        method ({"c-node", "node-fair"}, default="c-node"): The field that continues the state.
        history (int, default=20): The maximum number of past observations that a forecast is made from.
        horizon (int, default=10): The number of observations that it is trained to forecast.
        width (int, default=32): The width of the hidden layers.
        state_dim (int, default=16): The size of the inferred state.
        characteristic_dim (int, default=8): The number of characteristic dimensions of "c-node".
        transform ({"auto", "identity", "sqrt", "log"}, default="auto"): What is applied to the values before they are
            scaled; "auto" chooses on windows that were set aside, for values that are never negative.
        members (int, default=1): The number of models in the ensemble.
        solver ({"euler", "midpoint", "bosh3"}, default="midpoint"): The ODE solver.
        steps (int, default=2): The number of fixed steps between two forecasts.
        learning_rate (float, default=3e-3): The learning rate of AdamW.
        weight_decay (float, default=1e-2): The decoupled weight decay of AdamW.
        max_iter (int, default=60): The maximum number of epochs.
        batch_size (int, default=64): The maximum number of windows per mini-batch.
        early_stopping (bool, default=True): Whether to set windows aside for validation, to select the weights by their
            loss, and to stop when it no longer improves.
        validation_fraction (float, default=0.1): The proportion of the windows to set aside for validation. Only used
            if `early_stopping` is True.
        n_iter_no_change (int, default=20): The number of epochs without improvement after which training stops.
        random_state (int, RandomState instance or None, default=None): The seed of the initial weights, the splits and
            the mini-batches. Pass an int for reproducible results.
        verbose (bool, default=False): Whether to print one line per epoch.

    Attributes:
        n_features_in_ (int): The number of channels seen during `fit`.
        n_iter_ (int): The number of epochs that training took.
        loss_curve_ (list of float): The validation loss after each epoch.
        best_loss_ (float): The loss of the selected weights.
        units_ (WindowUnits): The units of the channels and of time.
        calibration_ (ndarray of shape (n_channels,)): The factor by which the intervals were widened.
        error_ratio_ (ndarray of shape (n_channels,)): The size of errors, in units of the widened standard deviations.
        ensemble_ (Ensemble): The selected weights; `ensemble_.model(i)` is member number i.

    ```python
    import numpy as np
    from charax.estimators import SeriesForecaster

    t = np.arange(24.0)
    X = [np.sin(t + phase)[:, None] for phase in range(12)]
    forecaster = SeriesForecaster(history=6, horizon=2, width=4, state_dim=4, max_iter=2, random_state=0).fit(X)
    assert forecaster.predict(X[:3]).shape == (3, 2, 1)
    lower, upper = forecaster.predict_interval(X[:3], at=[[0.5], [1.5], [7.0]])  # since the last observation
    assert (lower < upper).all()
    ```
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **{name: rule for name, rule in CONSTRAINTS.items() if name not in ("rtol", "adjoint", "warm_start")},
        "method": [StrOptions({"c-node", "node-fair"})],
        "history": [POSITIVE_INTEGER],
        "horizon": [POSITIVE_INTEGER],
        "state_dim": [POSITIVE_INTEGER],
        "characteristic_dim": [POSITIVE_INTEGER],
        "transform": [StrOptions({"auto", "identity", "sqrt", "log"})],
        "members": [POSITIVE_INTEGER],
        "solver": [StrOptions({"euler", "midpoint", "bosh3"})],
    }
    method: Any
    transform: Any
    rtol = None
    adjoint = "checkpoint"
    warm_start = False

    def __init__(
        self,
        method="c-node",
        *,
        history=20,
        horizon=10,
        width=32,
        state_dim=16,
        characteristic_dim=8,
        transform="auto",
        members=1,
        solver="midpoint",
        steps=2,
        learning_rate=3e-3,
        weight_decay=1e-2,
        max_iter=60,
        batch_size=64,
        early_stopping=True,
        validation_fraction=0.1,
        n_iter_no_change=20,
        random_state=None,
        verbose=False,
    ):
        self.method = method
        self.history = history
        self.horizon = horizon
        self.width = width
        self.state_dim = state_dim
        self.characteristic_dim = characteristic_dim
        self.transform = transform
        self.members = members
        self.solver = solver
        self.steps = steps
        self.learning_rate = learning_rate
        self.weight_decay = weight_decay
        self.max_iter = max_iter
        self.batch_size = batch_size
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.n_iter_no_change = n_iter_no_change
        self.random_state = random_state
        self.verbose = verbose

    def fit(  # pyright: ignore[reportIncompatibleMethodOverride]
        self, X: ArrayLike, y: None = None, times: ArrayLike = None
    ) -> "SeriesForecaster":
        """Fit the forecaster.

        Args:
            X (array of shape (n_series, length, n_channels), or sequence of n_series arrays of shape
                (length, n_channels)): The training series; NaN where a value is missing.
            y (None): Ignored, for the conventions of scikit-learn.
            times (array of shape (n_series, length), or sequence of arrays of shape (length,), default=None): The times
                of the observations, which increase within each series; 0, 1, 2 … if None.

        Returns:
            The fitted estimator.

        Raises:
            ValueError: If the data or a parameter is invalid.
        """
        self._validate_params()
        raw = _as_raw(SeriesArrays.read(X, times))
        self.n_features_in_ = len(raw.channels)
        seed = int(check_random_state(self.random_state).randint(np.iinfo(np.int32).max))
        # The last two parts, which elsewhere are for validation and test, calibrate the intervals.
        by_series = len(raw.names) >= _FEW_SERIES
        cuts = cut_series(raw, seed) if by_series else cut_times(raw)
        plans = FoldPlan.make_all(raw, cuts, by_series=by_series, folds=1, seed=seed)
        columns = ("series", "time", raw.channels, ())
        data = fit_windows(raw, plans, columns, self.history, self.horizon, self.transform)
        self.units_, train, aside = data.units, data.train, (data.validation, data.test)
        inputs = _pack(train)
        design = WindowDesign(
            self.method,
            self.width,
            self.state_dim,
            self.characteristic_dim,
            count_scale=float(f"{1 / self.history:.0e}"),
        )
        objective = WindowObjective(
            self._solver_config(),
            inputs.shape[1],
            self.horizon * self.n_features_in_,
            design,
            self.n_features_in_,
            self.history,
        )
        count = len(inputs)
        rows = Rows(inputs.astype(np.float64), train.values.reshape(count, -1).astype(np.float64), np.ones(count))
        self._fit_ensemble(objective, rows, members=self.members)
        self.calibration_ = np.ones(self.n_features_in_)
        scores = [np.abs(part.values - mean) / std for part in aside for mean, std in [self._scaled(part)]]
        each = [np.concatenate([part[..., j].ravel() for part in scores]) for j in range(self.n_features_in_)]
        groups = len(np.unique(np.concatenate([part.series for part in aside]))) if by_series else None
        quantiles = [conformal_quantile(one, _LEVEL, groups=groups) for one in each]
        self.calibration_ = np.asarray(quantiles) / _HALF_WIDTH
        self.error_ratio_ = np.asarray([root_mean_square(one) for one in each]) / self.calibration_
        return self

    def predict(
        self, X: ArrayLike, times: ArrayLike = None, at: ArrayLike = None
    ) -> Float[np.ndarray, "series times channels"]:
        """Forecast the expected values.

        Args:
            X (array of shape (n_series, length, n_channels), or sequence of arrays): The series so far.
            times (array of shape (n_series, length), or sequence of arrays, default=None): Their times; 0, 1, 2 … if
                None.
            at (array-like of shape (n_series, n_times), default=None): The times of the forecasts since the last
                observation of each series, above 0 and in increasing order; 1, 2, …, `horizon` if None.

        Returns:
            An array of shape (n_series, n_times, n_channels).

        Raises:
            ValueError: If the series have other channels or no observed value, or the times do not increase.
            SolveError: If the solve fails for one of the series.
        """
        mean, std, _ = self._forecast(X, times, at)
        return self._clip(self.units_.expect(mean, self.error_ratio_ * std))

    def predict_interval(
        self, X: ArrayLike, times: ArrayLike = None, at: ArrayLike = None
    ) -> tuple[Float[np.ndarray, "series times channels"], Float[np.ndarray, "series times channels"]]:
        """Forecast 95% prediction intervals.

        Args:
            X (array of shape (n_series, length, n_channels), or sequence of arrays): The series so far.
            times (array of shape (n_series, length), or sequence of arrays, default=None): Their times.
            at (array-like of shape (n_series, n_times), default=None): The times of the forecasts, as for `predict`.

        Returns:
            The lower and the upper ends, of shape (n_series, n_times, n_channels). After the longest time in training
            they widen in proportion to the time.

        Raises:
            ValueError: If the series have other channels or no observed value, or the times do not increase.
            SolveError: If the solve fails for one of the series.
        """
        mean, _, half = self._forecast(X, times, at)
        return self._clip(self.units_.restore(mean - half)), self._clip(self.units_.restore(mean + half))

    def _clip(self, values: np.ndarray) -> np.ndarray:
        """What is transformed was never negative in training, and is not in a forecast."""
        return np.maximum(values, 0) if self.units_.transforms else values

    def _forecast(self, X: ArrayLike, times: ArrayLike, at: ArrayLike) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The mean, the standard deviation and half of the width of the interval, in scaled units."""
        check_is_fitted(self)
        raw = _as_raw(SeriesArrays.read(X, times))
        if len(raw.channels) != self.n_features_in_:
            raise ValueError(
                f"X has {len(raw.channels)} channels, but SeriesForecaster was fitted with {self.n_features_in_}."
            )
        count = len(raw.names)
        ahead = np.tile(np.arange(1.0, self.horizon + 1), (count, 1)) if at is None else np.asarray(at, np.float64)
        if ahead.ndim != 2 or len(ahead) != count or not ahead.size:
            raise ValueError(f"at has the shape {ahead.shape}: give one row of times for each of the {count} series.")
        if not (np.isfinite(ahead).all() and (np.diff(ahead, axis=1, prepend=0) > 0).all()):
            raise ValueError("The times of at must be finite, above 0, and increase.")
        units: WindowUnits = self.units_
        windows = [cut_window(raw, i, units, np.array([len(raw.times[i]) - 1]), 1, 0) for i in range(count)]
        joined = ForecastWindows(*map(np.concatenate, zip(*windows, strict=True)))
        unseen = np.isnan(joined.past_values).all(axis=(1, 2))
        if unseen.any():
            raise ValueError(
                f"Series {int(np.argmax(unseen))} of X has no observed value among its last {units.history} rows, from "
                "which to forecast: leave it out, or leave out its last rows."
            )
        known = np.zeros((*ahead.shape, 0), np.float32)
        joined = joined._replace(times=(ahead / units.time_unit).astype(np.float32), known=known).anchored(units)
        mean, std = self._scaled(joined)
        return mean, std, _HALF_WIDTH * units.widen(joined.times, std)

    def _scaled(self, windows: ForecastWindows) -> tuple[np.ndarray, np.ndarray]:
        """The mean and the calibrated standard deviation of the ensemble, in scaled units."""
        inputs = _pack(windows)
        gap = float(np.diff(windows.times, axis=1, prepend=np.float32(0)).max()) * self.units_.time_unit
        more = max(1, int(np.ceil(gap / self.units_.longest_gap - 1e-3)))
        solver = replace(self.ensemble_.objective.solver_config, steps=self.steps * more)
        objective = replace(self.ensemble_.objective, features=inputs.shape[1], solver_config=solver)
        means, stds = replace(self.ensemble_, objective=objective).predict(inputs)
        std = np.sqrt(np.square(stds).mean(axis=0) + means.var(axis=0))
        return means.mean(axis=0), self.calibration_ * std

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        tags.input_tags.three_d_array = True
        tags.input_tags.allow_nan = True
        tags.target_tags.required = False
        return tags


def _as_raw(series: SeriesArrays) -> RawSeries:
    """The series without their padding; times count from the first observation."""
    lengths = series.lengths.tolist()
    return RawSeries(
        Path("X"),
        names=[str(i) for i in range(len(lengths))],
        times=[series.times[i, :n] for i, n in enumerate(lengths)],
        values=[series.values[i, :n] for i, n in enumerate(lengths)],
        channels=tuple(f"channel{j}" for j in range(series.values.shape[2])),
        labels=None,
        where=lambda i, row: f"X, series {i}, position {row}",
    )


def _pack(windows: ForecastWindows) -> Float[np.ndarray, "n features"]:
    count = len(windows.times)
    parts = (
        windows.past_times,
        windows.past_values.reshape(count, -1),
        windows.past_lengths[:, None].astype(np.float32),
        windows.times,
        windows.anchor.reshape(count, -1),
    )
    return np.concatenate(parts, axis=1)
