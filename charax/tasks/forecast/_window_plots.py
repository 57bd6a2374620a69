"""Figures of a forecaster with an inferred state: past observations, forecasts, and what was observed."""

from pathlib import Path
from typing import NamedTuple

import equinox as eqx
import numpy as np
from jaxtyping import Float

from charax.data import ForecastWindows
from charax.plotting import interpolate_observations, plot_forecast, save_figure
from charax.tasks.forecast._window_task import WindowForecastTask

_SERIES, _POINTS = 4, 60


def plot_windows(task: WindowForecastTask, model: eqx.Module, windows: ForecastWindows, path: Path) -> Path:
    """Plot forecasts from some windows, with their prediction intervals and what was observed afterwards.

    Args:
        task: The task.
        model: The trained model.
        windows: Windows to choose from: of different series, and those with most to forecast.
        path: The file.

    Returns:
        The file.
    """
    units = task.spec.units
    chosen = choose_windows(windows, _SERIES)
    names = units.values
    with save_figure(path, width=2.0 + 3.4 * len(chosen), height=0.4 + 2.6 * len(names)) as figure:
        axes = figure.subplots(len(names), len(chosen), squeeze=False, sharex="col", sharey="row")
        for column, row in enumerate(chosen):
            one = windows.take(np.array([row]))
            clock, mean, lower, upper = forecast_on_grid(task, model, one)
            later = units.restore(one.values[0])
            past = _past_of(task, one)
            for j, name in enumerate(names):
                axis = axes[j, column]
                observed = [
                    ("past", past.times, past.values[:, j]),
                    ("test", one.times[0] * units.time_unit, later[:, j]),
                ]
                if np.isfinite(past.values[:, j]).any():
                    axis.plot(past.grid, past.path[:, j], color="0.6", linewidth=1.0, label="interpolation")
                plot_forecast(clock, mean[:, j], lower[:, j], upper[:, j], axis, observed=observed)
                axis.axvline(0, color="black", linewidth=0.6, alpha=0.5)
                axes[j, 0].set_ylabel(name)
            axes[-1, column].set_xlabel(task.spec.lead_label)
            axes[0, column].set_title(f"{units.series} {task.spec.series_name(int(one.series[0])):.30}")
        axes[0, -1].legend(loc="upper left", bbox_to_anchor=(1, 1), fontsize="small")
    return path


class _Past(NamedTuple):
    """The past observations of a window, and the path through them that the model reads, in the units of the data."""

    times: Float[np.ndarray, "length"]
    values: Float[np.ndarray, "length values"]
    grid: Float[np.ndarray, "points"]
    path: Float[np.ndarray, "points values"]


def _past_of(task: WindowForecastTask, one: ForecastWindows) -> _Past:
    units, length = task.spec.units, int(one.past_lengths[0])
    times, values = one.past_times[0, :length], one.past_values[0, :length]
    grid, path = interpolate_observations(times, values, task.design.interpolation)
    since_last = lambda part: (part - times[-1]) * units.time_unit
    restore = lambda part: units.restore(part[:, : len(units.values)])
    return _Past(since_last(times), restore(values), since_last(grid), restore(path))


def last_forecast(windows: ForecastWindows) -> np.ndarray:
    """The position of the last value to forecast."""
    observed = np.asarray(np.isfinite(windows.values).any(axis=2))
    return observed.shape[1] - 1 - np.argmax(observed[:, ::-1], axis=1)


def choose_windows(windows: ForecastWindows, count: int) -> list[int]:
    """Of each series the window with most past and future; of a single series several."""
    value = windows.past_lengths / windows.past_times.shape[1] + (last_forecast(windows) + 1) / windows.times.shape[1]
    order = np.argsort(-value, kind="stable")
    _, first = np.unique(windows.series[order], return_index=True)
    chosen = order[np.sort(first)][:count].tolist()
    if len(chosen) == 1:
        full = np.sort(order[value[order] >= value.max() - 1e-6])
        chosen = full[np.linspace(0, len(full) - 1, min(count, len(full))).round().astype(int)].tolist()
    return chosen


def forecast_on_grid(
    task: WindowForecastTask, model: eqx.Module, one: ForecastWindows
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """The times of a grid, and the mean and the prediction interval of one window at them."""
    end = float(one.times[0, last_forecast(one)[0]])
    mean, lower, upper = task.forecast(model, on_grid(one, end))
    return np.linspace(0, end, _POINTS) * task.spec.units.time_unit, mean[0], lower[0], upper[0]


def on_grid(one: ForecastWindows, end: float) -> ForecastWindows:
    """The same window with a uniform grid of times; known columns are interpolated."""
    grid = np.linspace(0, end, _POINTS, dtype=np.float32)
    steps = np.concatenate([[0.0], one.times[0]])
    last = int(one.past_lengths[0]) - 1
    values = one.values.shape[2]
    known = np.concatenate([one.past_values[:, last, values:], one.known[0]])
    keep = np.concatenate([[True], np.diff(steps) > 0])
    columns = [np.interp(grid, steps[keep], known[keep, j]) for j in range(known.shape[1])]
    table = np.stack(columns, axis=1) if columns else np.zeros((_POINTS, 0))
    return one._replace(
        times=grid[None],
        known=table[None].astype(np.float32),
        values=np.full((1, _POINTS, values), np.nan, np.float32),
    )
