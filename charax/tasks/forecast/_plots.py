"""Figures of a forecaster: forecasts with their prediction intervals."""

from pathlib import Path

import equinox as eqx
import numpy as np

from charax.data import Observations
from charax.plotting import plot_forecast, save_figure
from charax.tasks.forecast._task import SHOWN_SERIES, ForecastTask
from charax.train import Splits

_POINTS = 121
_OBSERVATIONS = 400


def plot_forecasts(task: ForecastTask, model: eqx.Module, splits: Splits, path: Path) -> Path:
    """Plot the forecasts of the first series, their prediction intervals, and the observations.

    Args:
        task: The task.
        model: The trained model.
        splits: The data of the run.
        path: The file.

    Returns:
        The file.
    """
    names = task.spec.columns.values
    series = np.unique(splits.train.series)[:SHOWN_SERIES]
    with save_figure(path, width=2.0 + 3.4 * len(series), height=2.8 * len(names)) as figure:
        axes = figure.subplots(len(names), len(series), squeeze=False, sharex="col")
        for column, index in enumerate(series):
            train, validation, test = (part.take(np.flatnonzero(part.series == index)) for part in splits)
            end = max(float(part.t.max()) for part in (train, validation, test) if len(part.t))
            times = times_along(train, end)
            mean, lower, upper = task.forecast(model, times)
            if index < len(task.spec.names):
                axes[0, column].set_title(f"{task.spec.columns.series} {task.spec.names[index]:.30}")
            for row, name in enumerate(names):
                axis = axes[row, column]
                few = [
                    (label, part.t[:_OBSERVATIONS], part.value[:_OBSERVATIONS, row])
                    for label, part in (("test", test), ("validation", validation), ("training", train))
                ]
                plot_forecast(times.t, mean[:, row], lower[:, row], upper[:, row], axis, observed=few)
                axis.set_ylabel(name)
                if row == len(names) - 1:
                    axis.set_xlabel(f"{task.spec.columns.time} since the start")
        axes[0, -1].legend(loc="upper left", bbox_to_anchor=(1, 1), fontsize="small")
    return path


def times_along(observations: Observations, end: float) -> Observations:
    """A uniform grid of times along one series."""
    first = observations.take(np.zeros(_POINTS, int))
    return first._replace(t=np.linspace(0, end, _POINTS, dtype=np.float32))
