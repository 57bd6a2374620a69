"""The report of a forecaster with an inferred state: windows, their forecasts and what was observed afterwards."""

import equinox as eqx
import numpy as np
import plotly.graph_objects as go

from charax.data import ForecastWindows
from charax.plotting import EXACT, NODE, Section
from charax.tasks.forecast._report import forecast_traces, sliding_figure
from charax.tasks.forecast._window_plots import choose_windows, forecast_on_grid
from charax.tasks.forecast._window_task import WindowForecastTask
from charax.train import Splits

_WINDOWS = 24


def report_windows(task: WindowForecastTask, model: eqx.Module, splits: Splits) -> list[Section]:
    """Some test windows; the slider chooses one."""
    units, chosen = task.spec.units, choose_windows(splits.test, _WINDOWS)
    frames = {
        f"{number}": _traces(task, model, splits.test.take(np.array([row])))
        for number, row in enumerate(chosen, start=1)
    }
    figure = sliding_figure(frames, units.values, f"{units.time} since the last observation")
    text = (
        "The state is inferred from the past observations and continued from there; the shaded interval should contain "
        "95% of the later observations of the test split."
    )
    return [Section("Forecasts", text, figure, frame_label="window")]


def _traces(task: WindowForecastTask, model: eqx.Module, one: ForecastWindows) -> list[list[go.Scatter]]:
    """For every value, the interval, the forecast, and the observations before and after."""
    units = task.spec.units
    scale, length = units.value_standardizer, int(one.past_lengths[0])
    clock, mean, lower, upper = forecast_on_grid(task, model, one)
    before = (one.past_times[0, :length] - one.past_times[0, length - 1]) * units.time_unit
    rows = []
    for j in range(len(units.values)):
        observed = [
            ("past", before, one.past_values[0, :length, j], "circle", EXACT),
            ("test", one.times[0] * units.time_unit, one.values[0, :, j], "x", NODE),
        ]
        points = [
            go.Scatter(
                x=times,
                y=scale.mean[j] + scale.std[j] * values,
                mode="markers",
                marker={"color": color, "size": 6, "symbol": symbol},
                name=label,
                showlegend=j == 0,
            )
            for label, times, values, symbol, color in observed
        ]
        rows.append([*forecast_traces(clock, mean[:, j], lower[:, j], upper[:, j], shown=j == 0), *points])
    return rows
