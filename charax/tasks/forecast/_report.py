"""The report of a forecaster: observations, forecasts and their prediction intervals, one series at a time."""

from collections.abc import Sequence

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import plotly.graph_objects as go
from jaxtyping import Array, Float
from plotly.subplots import make_subplots

from charax.data import Observations
from charax.models import Forecaster
from charax.plotting import C_NODE, EXACT, NODE, Followed, Section, curve_sections
from charax.solve import Solver
from charax.tasks.forecast._plots import times_along
from charax.tasks.forecast._task import ForecastTask
from charax.train import Splits

_SERIES = 24
_OBSERVATIONS = 500
_POINTS = 33


def report_forecasts(task: ForecastTask, model: eqx.Module, splits: Splits) -> list[Section]:
    """The first series, of which the slider chooses one, and their characteristics and states."""
    series = np.unique(splits.train.series)[:_SERIES]
    names = task.spec.columns.values
    frames = {f"{index + 1}": _traces(task, model, splits, int(index)) for index in series}
    figure = sliding_figure(frames, names, f"{task.spec.columns.time} since the start")
    text = (
        "The forecast continues from the first value of each series; the shaded interval should contain 95% of the "
        "observations. The test observations are the last of each series."
    )
    return [Section("Forecasts", text, figure, frame_label="series"), *_curve_sections(task, model, splits, series)]


def sliding_figure(frames: dict[str, list[list[go.Scatter]]], names: Sequence[str], x_title: str) -> go.Figure:
    """One panel per value, of which each frame has its traces; the slider chooses a frame."""
    figure = make_subplots(len(names), 1, shared_xaxes=True, vertical_spacing=0.06)
    for row, traces in enumerate(next(iter(frames.values())), start=1):
        figure.add_traces(traces, rows=row, cols=1)
        figure.update_yaxes(title_text=names[row - 1], row=row, col=1)
    flat = lambda rows: [trace for row in rows for trace in row]
    figure.frames = [go.Frame(name=name, data=flat(rows)) for name, rows in frames.items()] if len(frames) > 1 else []
    figure.update_xaxes(title_text=x_title, row=len(names), col=1)
    figure.update_layout(height=120 + 280 * len(names))
    return figure


def _curve_sections(task: ForecastTask, model: eqx.Module, splits: Splits, series: np.ndarray) -> list[Section]:
    """Characteristics and states of the series, from their start to the end of the training data."""
    assert isinstance(model, Forecaster)
    first = np.asarray([int(np.flatnonzero(splits.train.series == index)[0]) for index in series])
    start, _, context, _, _ = splits.train.take(first)
    end = np.full(len(series), float(splits.train.t.max()), np.float32)
    s = np.linspace(0, 1, _POINTS, dtype=np.float32)
    u, x = _follow(model, jnp.asarray(start), jnp.asarray(end), jnp.asarray(context), task.solver, jnp.asarray(s))
    labels, names = np.arange(len(series)), [f"series {index + 1}" for index in series]
    followed = Followed(s, np.asarray(u), None if x is None else np.asarray(x))
    ending = "They are in scaled units, and end at the last time of the training data."
    return curve_sections(followed, labels, names, each="series", ending=ending)


@eqx.filter_jit
def _follow(
    model: Forecaster, start: Array, t: Array, context: Array, solver: Solver, at: Array
) -> tuple[Array, Array | None]:
    solution = model.solve(start, t, context, solver=solver, at=at)
    assert solution.trajectory is not None
    return solution.trajectory, solution.characteristic


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
        forecast = forecast_traces(times.t, mean[:, j], lower[:, j], upper[:, j], shown=j == 0)
        rows.append([*forecast, *(_observed(*part, j) for part in parts)])
    return rows


def forecast_traces(
    times: Float[np.ndarray, "n"],
    mean: Float[np.ndarray, "n"],
    lower: Float[np.ndarray, "n"],
    upper: Float[np.ndarray, "n"],
    *,
    shown: bool,
) -> list[go.Scatter]:
    """The prediction interval, and the forecast."""
    around = {
        "x": np.concatenate([times, times[::-1]]),
        "y": np.concatenate([upper, lower[::-1]]),
        "fill": "toself",
        "fillcolor": "rgba(0, 114, 178, 0.18)",
        "line": {"width": 0},
        "hoverinfo": "skip",
    }
    return [
        go.Scatter(around, mode="lines", name="95% prediction interval", showlegend=shown),
        go.Scatter(x=times, y=mean, line={"color": C_NODE}, mode="lines", name="forecast", showlegend=shown),
    ]


def _observed(label: str, part: Observations, symbol: str, color: str, j: int) -> go.Scatter:
    few = part.take(np.arange(min(len(part.t), _OBSERVATIONS)))
    marker = {"color": color, "size": 6, "symbol": symbol, "opacity": 0.8}
    return go.Scatter(x=few.t, y=few.value[:, j], mode="markers", marker=marker, name=label, showlegend=j == 0)
