"""The report of a forecaster with an inferred state: windows, their forecasts and what was observed afterwards."""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import plotly.graph_objects as go
from jaxtyping import Array

from charax.data import ForecastWindows
from charax.models import WindowEnsemble, WindowForecaster
from charax.plotting import EXACT, NODE, Followed, Section, curve_sections
from charax.solve import Solver
from charax.tasks.forecast._report import forecast_traces, sliding_figure
from charax.tasks.forecast._window_plots import choose_windows, forecast_on_grid, last_forecast, on_grid
from charax.tasks.forecast._window_task import WindowForecastTask
from charax.train import Splits

_WINDOWS = 24


def report_windows(task: WindowForecastTask, model: eqx.Module, splits: Splits) -> list[Section]:
    """Some test windows; the slider chooses one."""
    units = task.spec.units
    windows = [splits.test.take(np.array([row])) for row in choose_windows(splits.test, _WINDOWS)]
    names = [task.spec.window_name(int(one.series[0]), float(one.origin_time[0])) for one in windows]
    frames = {name: _traces(task, model, one) for name, one in zip(names, windows, strict=True)}
    figure = sliding_figure(frames, units.values, task.spec.lead_label)
    text = (
        "The state is inferred from the past observations and continued from there; the shaded interval should contain "
        f"95% of the later observations of the test split. Windows are named by their {units.series} and the "
        f"{units.time} of their last observation."
    )
    forecasts = Section("Forecasts", text, figure, frame_label="window")
    return [forecasts, *_curve_sections(task, model, windows, names)]


def _curve_sections(
    task: WindowForecastTask, model: eqx.Module, windows: list[ForecastWindows], names: list[str]
) -> list[Section]:
    """Characteristics and states from the last observation to the last forecast."""
    assert isinstance(model, WindowEnsemble)
    grids = [on_grid(one, float(one.times[0, last_forecast(one)[0]])) for one in windows]
    joined = ForecastWindows(*(np.concatenate(parts) for parts in zip(*grids, strict=True)))
    u, x = _follow(model.member(0), joined, task.solver)
    labels = np.arange(len(windows))
    s = np.linspace(0, 1, joined.times.shape[1])
    ending = "They begin at the last observation, s = 0, with the state that is inferred from the past"
    ending += " by the first member." if model.size > 1 else "."
    followed = Followed(s, np.asarray(u), None if x is None else np.asarray(x))
    return curve_sections(followed, labels, names, each="window", ending=ending)


@eqx.filter_jit
def _follow(model: WindowForecaster, windows: ForecastWindows, solver: Solver) -> tuple[Array, Array | None]:
    past = windows.past_times, windows.past_values, windows.past_lengths
    return model.trajectories(*map(jnp.asarray, (*past, windows.times, windows.known)), solver=solver)


def _traces(task: WindowForecastTask, model: eqx.Module, one: ForecastWindows) -> list[list[go.Scatter]]:
    """For every value, the interval, the forecast, and the observations before and after."""
    units = task.spec.units
    length = int(one.past_lengths[0])
    past, later = (units.restore(part) for part in (one.past_values[0, :length, : len(units.values)], one.values[0]))
    clock, mean, lower, upper = forecast_on_grid(task, model, one)
    before = (one.past_times[0, :length] - one.past_times[0, length - 1]) * units.time_unit
    rows = []
    for j in range(len(units.values)):
        observed = [
            ("past", before, past[:, j], "circle", EXACT),
            ("test", one.times[0] * units.time_unit, later[:, j], "x", NODE),
        ]
        points = [
            go.Scatter(
                x=times,
                y=values,
                mode="markers",
                marker={"color": color, "size": 6, "symbol": symbol},
                name=label,
                showlegend=j == 0,
            )
            for label, times, values, symbol, color in observed
        ]
        rows.append([*forecast_traces(clock, mean[:, j], lower[:, j], upper[:, j], shown=j == 0), *points])
    return rows
