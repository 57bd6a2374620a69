"""Forecasts that need no network: the last value, the value one season ago, and a linear autoregression."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from charax.data import ForecastWindowData, ForecastWindows
from charax.train import conformal_quantile

Values = Float[np.ndarray, "n horizon values"]

ORDERS = (1, 2, 3, 5, 9, 12, 18)
"""Numbers of past observations of an autoregression, of which validation chooses."""
RIDGES = (1e-3, 1e-1, 1.0, 10.0, 100.0)
"""Weights of its ridge penalty, of which validation chooses."""


class Baseline(NamedTuple):
    """The forecasts of one method for the three splits, in scaled units."""

    train: Values
    validation: Values
    test: Values

    def score(self, data: ForecastWindowData, level: float = 0.95) -> dict[str, float]:
        """The error on the test split, and the coverage of intervals that are calibrated on the validation split."""
        # The width grows with the number of observations ahead as the errors of the training split do.
        width = np.sqrt(np.nanmean((self.train - data.train.values) ** 2, axis=0)) + 1e-6
        scores = np.abs(self.validation - data.validation.values) / width
        factors = np.asarray([conformal_quantile(scores[:, :, j], level) for j in range(scores.shape[2])])
        error = np.abs(self.test - data.test.values)
        known = ~np.isnan(error)
        return {
            "rmse": float(np.sqrt(np.mean(error[known] ** 2))),
            "covered": float((error <= factors * width)[known].mean()),
        }


def persistence(data: ForecastWindowData) -> Baseline:
    """The last value of each channel."""
    return Baseline(*(_last_values(split) for split in (data.train, data.validation, data.test)))


def seasonal_persistence(data: ForecastWindowData, period: float) -> Baseline:
    """The value a period ago, between two observations on the line between them; the last value where the window does
    not reach as far."""
    scaled = period / data.units.time_unit
    return Baseline(*(_season_ago(split, scaled) for split in (data.train, data.validation, data.test)))


def autoregression(data: ForecastWindowData) -> Baseline:
    """A ridge regression for each number of observations ahead: from the last values, the gaps between them, the time
    ahead, and the known columns then. Validation chooses the order and the penalty."""
    best: tuple[float, Baseline] | None = None
    for order in ORDERS:
        if order > data.units.history:
            break
        for ridge in RIDGES:
            found = Baseline(*_regress(data, order, ridge))
            error = float(np.nanmean((found.validation - data.validation.values) ** 2))
            if best is None or error < best[0]:
                best = error, found
    assert best is not None
    return best[1]


def _filled(windows: ForecastWindows) -> Float[np.ndarray, "n history channels"]:
    """Past values, with the last one where one is missing, and 0 before there is one."""
    filled = np.zeros_like(windows.past_values)
    last = np.zeros_like(windows.past_values[:, 0])
    for row in range(filled.shape[1]):
        now = windows.past_values[:, row]
        last = np.where(np.isnan(now), last, now)
        filled[:, row] = last
    return filled


def _last_values(windows: ForecastWindows) -> Values:
    last = _filled(windows)[:, -1, : windows.values.shape[2]]
    return np.repeat(last[:, None], windows.times.shape[1], axis=1)


def _season_ago(windows: ForecastWindows, period: float) -> Values:
    found = _last_values(windows)
    for i, length in enumerate(windows.past_lengths):
        clock = windows.past_times[i, :length] - windows.past_times[i, length - 1]
        seasons = np.ceil(windows.times[i] / period)
        ago = windows.times[i] - seasons * period
        for j in range(found.shape[2]):
            values = windows.past_values[i, :length, j]
            seen = ~np.isnan(values)
            if seen.any():
                reached = ago >= clock[seen][0]
                found[i, reached, j] = np.interp(ago[reached], clock[seen], values[seen])
    return found


def _features(windows: ForecastWindows, order: int, ahead: int) -> Float[np.ndarray, "n features"]:
    back = np.maximum(windows.past_lengths[:, None] - 1 - np.arange(order), 0)
    values = np.take_along_axis(_filled(windows)[:, :, : windows.values.shape[2]], back[:, :, None], axis=1)
    clock = np.take_along_axis(windows.past_times, back, axis=1)
    gaps = clock[:, :1] - clock[:, 1:]
    parts = (values.reshape(len(values), -1), gaps, windows.times[:, ahead : ahead + 1], windows.known[:, ahead])
    return np.concatenate(parts, axis=1).astype(np.float64)


def _regress(data: ForecastWindowData, order: int, ridge: float) -> list[Values]:
    splits = (data.train, data.validation, data.test)
    found = [_last_values(split).astype(np.float64) for split in splits]
    for ahead in range(data.train.values.shape[1]):
        features = [_features(split, order, ahead) for split in splits]
        for j in range(data.train.values.shape[2]):
            known = ~np.isnan(data.train.values[:, ahead, j])
            if known.sum() < 2:  # nothing so far ahead in training: the last value stays
                continue
            inputs, targets = features[0][known], data.train.values[known, ahead, j].astype(np.float64)
            center, mean = inputs.mean(axis=0), targets.mean()
            moved = inputs - center
            weights = np.linalg.solve(moved.T @ moved + ridge * np.eye(moved.shape[1]), moved.T @ (targets - mean))
            for forecasts, each in zip(found, features, strict=True):
                forecasts[:, ahead, j] = mean + (each - center) @ weights
    return found
