"""The report of a forecaster: observations, forecasts and their prediction intervals, one series at a time."""

import equinox as eqx
import numpy as np
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from charax.data import Observations
from charax.plotting import C_NODE, EXACT, NODE, Section
from charax.tasks.forecast._plots import times_along
from charax.tasks.forecast._task import ForecastTask
from charax.train import Splits

_SERIES = 24
_OBSERVATIONS = 500


def report_forecasts(task: ForecastTask, model: eqx.Module, splits: Splits) -> list[Section]:
    """The first series; the slider chooses one."""
    series = np.unique(splits.train.series)[:_SERIES]
    names = task.spec.columns.values
    figure = make_subplots(len(names), 1, shared_xaxes=True, vertical_spacing=0.06)
    frames = []
    for number, index in enumerate(series):
        traces = _traces(task, model, splits, int(index))
        if number == 0:
            for row in range(len(names)):
                figure.add_traces(traces[row], rows=row + 1, cols=1)
        frames.append(go.Frame(name=f"{index + 1}", data=[trace for row in traces for trace in row]))
    figure.frames = frames if len(series) > 1 else []
    for row, name in enumerate(names, start=1):
        figure.update_yaxes(title_text=name, row=row, col=1)
    figure.update_xaxes(title_text=f"{task.spec.columns.time} since the start", row=len(names), col=1)
    figure.update_layout(height=120 + 280 * len(names))
    text = (
        "The forecast continues from the first value of each series; the shaded interval should contain 95% of the "
        "observations. The test observations are the last of each series."
    )
    return [Section("Forecasts", text, figure, frame_label="series")]


def _traces(task: ForecastTask, model: eqx.Module, splits: Splits, index: int) -> list[list[go.Scatter]]:
    """For every value, the interval, the forecast and the observations of the three splits."""
    train, validation, test = (part.take(np.flatnonzero(part.series == index)) for part in splits)
    end = max(float(part.t.max()) for part in (train, validation, test) if len(part.t))
    times = times_along(train, end)
    mean, lower, upper = task.forecast(model, times)
    parts = (
        ("training", train, "circle", EXACT),
        ("validation", validation, "square", EXACT),
        ("test", test, "x", NODE),
    )
    rows: list[list[go.Scatter]] = []
    for j in range(mean.shape[1]):
        shown = {"showlegend": j == 0}
        around = {
            "x": np.concatenate([times.t, times.t[::-1]]),
            "y": np.concatenate([upper[:, j], lower[::-1, j]]),
            "fill": "toself",
            "fillcolor": "rgba(0, 114, 178, 0.18)",
            "line": {"width": 0},
            "hoverinfo": "skip",
        }
        interval = go.Scatter(around, mode="lines", name="95% prediction interval", **shown)
        line = go.Scatter(x=times.t, y=mean[:, j], line={"color": C_NODE}, mode="lines", name="forecast", **shown)
        rows.append([interval, line, *(_observed(*part, j) for part in parts)])
    return rows


def _observed(label: str, part: Observations, symbol: str, color: str, j: int) -> go.Scatter:
    few = part.take(np.arange(min(len(part.t), _OBSERVATIONS)))
    marker = {"color": color, "size": 6, "symbol": symbol, "opacity": 0.8}
    return go.Scatter(x=few.t, y=few.value[:, j], mode="markers", marker=marker, name=label, showlegend=j == 0)
