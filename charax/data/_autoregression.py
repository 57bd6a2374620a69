"""A linear forecast of irregular series, which a forecaster starts from and corrects."""

from dataclasses import dataclass, field
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float

if TYPE_CHECKING:
    from charax.data._windows import ForecastWindows

ORDERS = (1, 2, 3, 5, 9, 12, 18)
"""Numbers of past observations, of which validation chooses."""
FREQUENCIES = (2, 4, 8)
"""Numbers of cosines of the time ahead, of which validation chooses."""
RIDGES = (1e-3, 1e-1, 1.0, 10.0, 100.0)
"""Weights of the ridge penalty, of which validation chooses."""
_MAX_WINDOWS = 2_000
"""Windows of which the coefficients are fitted."""


@dataclass(frozen=True)
class Autoregression:
    """A forecast that is linear in the last observations, with coefficients that depend on the time ahead.

    The features are the last `order` values of all channels and the gaps between them, each times every cosine of the
    time ahead, and the known columns at that time. Unlike an autoregression of equal time steps it forecasts any time
    from observations at any times.

    ```python
    import numpy as np
    from charax.data import Autoregression

    last = Autoregression.persistence(1)  # the last value, at all times
    past = np.array([[0.0, 1.0]]), np.array([[[3.0], [4.0]]]), np.array([2])
    assert last.forecast(*past, np.array([[0.5, 9.0]]), np.zeros((1, 2, 0))).ravel().tolist() == [4, 4]
    ```
    """

    order: int
    """The number of past observations."""
    frequencies: int
    """The number of cosines of the time ahead."""
    span: float
    """The longest time ahead in training, in scaled units; the coefficients of later times are those of this one."""
    weights: tuple[tuple[float, ...], ...] = field(repr=False)
    """The coefficients of each value."""

    @classmethod
    def persistence(cls, values: int, known: int = 0) -> "Autoregression":
        """The forecast that nothing changes.

        Args:
            values: The number of values to forecast.
            known: The number of known columns.

        Returns:
            The autoregression that repeats the last values.
        """
        place = lambda j: tuple(float(i == 1 + j) for i in range(1 + values + known))
        return cls(1, 1, 1.0, tuple(place(j) for j in range(values)))

    def forecast(
        self, past_times: Any, past_values: Any, past_lengths: Any, times: Any, known: Any, *, xp: ModuleType = np
    ) -> Any:
        """Forecast the values of windows, in scaled units.

        Args:
            past_times: The times of the past observations, of shape (windows, history).
            past_values: Values, then known columns; NaN where one is missing. Shape (windows, history, channels).
            past_lengths: The number of past observations of each window.
            times: The times of the forecasts since the last observation, of shape (windows, horizon).
            known: The known columns at these times, of shape (windows, horizon, known).
            xp: `numpy`, or `jax.numpy`.

        Returns:
            The forecasts, of shape (windows, horizon, values).
        """
        values = len(self.weights)
        past = past_times, past_values[:, :, :values], past_lengths
        features = _features(past, times, known, self.order, self.frequencies, self.span, xp)
        return features @ xp.asarray(self.weights, features.dtype).T


def fit_autoregression(train: "ForecastWindows", validation: "ForecastWindows") -> Autoregression:
    """Fit by ridge regression. The validation windows choose the order, the cosines and the penalty, or that nothing
    but the last value is of use.

    Args:
        train: The windows to fit.
        validation: The windows that choose.

    Returns:
        The autoregression with the least squared error on the validation windows.

    ```python
    from charax.data import fit_autoregression, load_forecast_windows

    data = load_forecast_windows("pendulum", history=5, horizon=3, hold_out="series")
    assert fit_autoregression(data.train, data.validation).order <= 5
    ```
    """
    rows = np.unique(np.linspace(0, len(train.times) - 1, min(_MAX_WINDOWS, len(train.times))).astype(int))
    train, (_, horizon, values) = train.take(rows), train.values.shape
    span = float(train.times.max()) or 1.0
    best = Autoregression.persistence(values, train.known.shape[2])
    least = _error(best, validation)
    for order in (order for order in ORDERS if order <= train.past_times.shape[1]):
        for frequencies in (count for count in FREQUENCIES if count <= 2 * horizon):
            inputs = _features(_past(train), train.times, train.known, order, frequencies, span, np)
            for ridge in RIDGES:
                weights = tuple(_regress(inputs, train.values[:, :, j], ridge) for j in range(values))
                found = Autoregression(order, frequencies, span, weights)
                error = _error(found, validation)
                if error < least:
                    best, least = found, error
    return best


def _past(windows: "ForecastWindows") -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    return windows.past_times, windows.past_values[:, :, : windows.values.shape[2]], windows.past_lengths


def _error(autoregression: Autoregression, windows: "ForecastWindows") -> float:
    return float(np.nanmean(np.square(autoregression.forecast(*windows[:5]) - windows.values)))


def _regress(
    inputs: Float[np.ndarray, "n horizon features"], targets: Float[np.ndarray, "n horizon"], ridge: float
) -> tuple[float, ...]:
    observed = ~np.isnan(targets)
    rows, answers = inputs[observed].astype(np.float64), targets[observed].astype(np.float64)
    mean = answers.mean() if len(answers) else 0.0
    weights = np.linalg.solve(rows.T @ rows + ridge * np.eye(rows.shape[1]), rows.T @ (answers - mean))
    weights[0] += mean  # the first feature is 1, and what is penalized is the difference from the mean
    return tuple(weights.tolist())


def _features(
    past: tuple[Any, Any, Any], times: Any, known: Any, order: int, frequencies: int, span: float, xp: ModuleType
) -> Any:
    past_times, past_values, past_lengths = past
    back = xp.maximum(past_lengths[:, None] - 1 - xp.arange(order), 0)
    values = xp.take_along_axis(_fill_forward(past_values, xp), back[:, :, None], axis=1)
    clock = xp.take_along_axis(past_times, back, axis=1)
    parts = (
        xp.ones_like(clock[:, :1]),
        values.reshape(values.shape[0], order * values.shape[2]),
        clock[:, :1] - clock[:, 1:],
    )
    base = xp.concatenate(parts, axis=1)
    phase = xp.pi * xp.minimum(times / span, 1.0)[:, :, None] * xp.arange(frequencies)
    products = (xp.cos(phase)[:, :, :, None] * base[:, None, None, :]).reshape(
        *times.shape, frequencies * base.shape[1]
    )
    return xp.concatenate([products, known], axis=2)


def _fill_forward(values: Any, xp: ModuleType) -> Any:
    """Values, with the last one where one is missing, and 0, the mean, before there is one."""
    last, filled = xp.zeros_like(values[:, 0]), []
    for row in range(values.shape[1]):
        last = xp.where(xp.isnan(values[:, row]), last, values[:, row])
        filled.append(last)
    return xp.stack(filled, axis=1)
