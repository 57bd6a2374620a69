"""The report of a model of series: what it says as observations come in, confusion matrix, trajectories."""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import plotly.graph_objects as go
from jaxtyping import Array, Float
from plotly.subplots import make_subplots

from charax.data import SeriesSplit
from charax.models import ObservedSeriesModel, SummarySeriesModel
from charax.plotting import (
    C_NODE,
    CLASSES,
    EXACT,
    Details,
    Followed,
    Section,
    class_colors,
    confusion_figure,
    confusion_matrix,
    curve_sections,
)
from charax.solve import Solver
from charax.tasks.series._plots import MOST_ANSWERS, path_of
from charax.tasks.series._task import SeriesTask
from charax.train import Splits

_SERIES = 12
_CHANNELS = 4
_CURVES = 60
_PER_CELL = 24
_POINTS = 33


def report_series(task: SeriesTask, model: eqx.Module, splits: Splits) -> list[Section]:
    """Everything that moves about a model of series."""
    test: SeriesSplit = splits.test
    outputs = task.outputs(model, test)
    sections = [_observations_section(task, model, test)]
    if task.spec.classes:
        sections.append(_confusion_section(task, test, outputs))
    else:
        sections.append(_prediction_section(task, test, outputs))
    if isinstance(model, ObservedSeriesModel | SummarySeriesModel):
        sections += _curve_sections(task, model, test)
    return sections


def _observations_section(task: SeriesTask, model: eqx.Module, test: SeriesSplit) -> Section:
    """Some test series with what the model says after each observation; the slider chooses one."""
    chosen = range(min(_SERIES, len(test.lengths)))
    figure = make_subplots(2, 1, shared_xaxes=True, vertical_spacing=0.08)
    frames = []
    for row in chosen:
        above, below = _observation_traces(task, test, row), _output_traces(task, model, test, row)
        if row == 0:
            figure.add_traces(above, rows=1, cols=1)
            figure.add_traces(below, rows=2, cols=1)
        frames.append(go.Frame(name=f"{row + 1}", data=[*above, *below]))
    figure.frames = frames if len(frames) > 1 else []
    figure.update_yaxes(title_text="value", row=1, col=1)
    probability = "probability so far" if task.spec.classes else f"{task.spec.target}, predicted so far"
    figure.update_yaxes(title_text=probability, row=2, col=1)
    if task.spec.classes:
        figure.update_yaxes(range=[0, 1], row=2, col=1)
    figure.update_xaxes(title_text="time since the first observation", row=2, col=1)
    figure.update_layout(height=620)
    channels = task.spec.scaling.channels
    few = f" The first {_CHANNELS} of {len(channels)} channels are shown." if len(channels) > _CHANNELS else ""
    text = (
        "Above, the observations of a test series and the path through them; below, what the model says after each "
        f"observation, without those that come later.{few}"
    )
    return Section("Series", text, figure, frame_label="test series")


def _observation_traces(task: SeriesTask, test: SeriesSplit, row: int) -> list[go.Scatter]:
    scaling, length = task.spec.scaling, int(test.lengths[row])
    times = test.times[row, :length] * scaling.duration
    raw = scaling.standardizer.inverse(test.values[row, :length])
    clock, curve = path_of(test, row, task.design.interpolation)
    smooth = scaling.standardizer.inverse(curve)
    traces = []
    for j, name in enumerate(scaling.channels[:_CHANNELS]):
        line = {"color": CLASSES[j]}
        traces.append(go.Scatter(x=clock * scaling.duration, y=smooth[:, j], mode="lines", line=line, showlegend=False))
        points = {"mode": "markers", "marker": {"color": CLASSES[j], "size": 6}, "legendgroup": "channels"}
        traces.append(go.Scatter(x=times, y=raw[:, j], name=name, **points))
    return traces


def _output_traces(task: SeriesTask, model: eqx.Module, test: SeriesSplit, row: int) -> list[go.Scatter]:
    spec = task.spec
    counts, outputs = task.outputs_over_time(model, test, row, most=MOST_ANSWERS)
    times = test.times[row, counts - 1] * spec.scaling.duration
    if not spec.classes:
        truth = _numbers(task, test.targets[row : row + 1])[0]
        return [
            go.Scatter(x=times, y=outputs[:, 0], mode="lines+markers", line={"color": C_NODE}, name="predicted so far"),
            go.Scatter(x=times[[0, -1]], y=[truth, truth], mode="lines", line={"color": EXACT}, name="observed"),
        ]
    colors = class_colors(len(spec.classes))
    true = int(test.targets[row])
    return [
        go.Scatter(
            x=times,
            y=outputs[:, label],
            mode="lines",
            line={"color": colors[label], "width": 4 if label == true else 1.5},
            name=f"{name} (true)" if label == true else name,
            legendgroup="classes",
        )
        for label, name in enumerate(spec.classes)
    ]


def _confusion_section(task: SeriesTask, test: SeriesSplit, outputs: Float[np.ndarray, "n classes"]) -> Section:
    classes = task.spec.classes
    answered = np.asarray(np.isfinite(outputs).all(axis=1))
    targets, predicted = np.asarray(test.targets)[answered], outputs[answered].argmax(axis=1)
    wrong = int((predicted != targets).sum())
    failed = "" if answered.all() else f" {int((~answered).sum())} solves failed and are not counted."
    text = f"{wrong:,} of {len(answered):,} test series are classified wrongly.{failed}"
    figure = confusion_figure(confusion_matrix(targets, predicted, len(classes)), classes)
    return Section("Confusion matrix", text, figure, _series_behind(task, test, outputs))


def _series_behind(task: SeriesTask, test: SeriesSplit, outputs: Float[np.ndarray, "n classes"]) -> Details:
    """The test series behind each cell of the confusion matrix, the least certain first."""
    spec = task.spec
    channels = spec.scaling.channels[:_CHANNELS]
    columns = [
        "test series",
        "true",
        "predicted",
        "probability",
        "observations",
        *(f"mean {name}" for name in channels),
    ]
    rows: dict[str, list[list[str]]] = {}
    for i in np.argsort(np.nan_to_num(outputs.max(axis=1))):
        if not np.isfinite(outputs[i]).all():
            continue
        true, predicted = int(test.targets[i]), int(outputs[i].argmax())
        cell = rows.setdefault(f"{true}/{predicted}", [])
        if len(cell) == _PER_CELL:
            continue
        length = int(test.lengths[i])
        means = np.nanmean(spec.scaling.standardizer.inverse(test.values[i, :length]), axis=0)[: len(channels)]
        named = [spec.classes[true], spec.classes[predicted], f"{outputs[i, predicted]:.3f}"]
        cell.append([f"{i + 1}", *named, f"{length}", *(f"{value:.4g}" for value in means)])
    errors = [key for key in rows if key.split("/")[0] != key.split("/")[1]]
    first = max(errors, key=lambda key: len(rows[key]), default=None)
    return Details(columns, rows, "Click on a cell to see its test series.", first)


def _prediction_section(task: SeriesTask, test: SeriesSplit, outputs: Float[np.ndarray, "n 1"]) -> Section:
    truth = _numbers(task, test.targets)
    figure = go.Figure()
    marker = {"color": C_NODE, "size": 7, "opacity": 0.7}
    figure.add_scatter(x=truth, y=outputs[:, 0], mode="markers", marker=marker, name="test series")
    ends = [float(truth.min()), float(truth.max())]
    figure.add_scatter(x=ends, y=ends, mode="lines", line={"color": EXACT}, name="exact")
    figure.update_xaxes(title_text=f"observed {task.spec.target}")
    figure.update_yaxes(title_text=f"predicted {task.spec.target}")
    return Section("Predictions", "One point per test series.", figure)


def _curve_sections(
    task: SeriesTask, model: ObservedSeriesModel | SummarySeriesModel, test: SeriesSplit
) -> list[Section]:
    s, few = np.linspace(0, 1, _POINTS, dtype=np.float32), test.take(np.arange(min(_CURVES, len(test.lengths))))
    u, x = _follow_series(model, few.times, few.values, few.lengths, task.solver, jnp.asarray(s))
    if task.spec.classes:
        labels, names = np.asarray(few.targets), task.spec.classes
    else:
        labels = np.searchsorted(np.quantile(few.targets, [1 / 3, 2 / 3]), few.targets).astype(int)
        names = tuple(f"{part} third of {task.spec.target}" for part in ("lower", "middle", "upper"))
    followed = Followed(s, np.asarray(u), None if x is None else np.asarray(x))
    return curve_sections(followed, labels, names, each="test series", ending="The readout reads the last one.")


@eqx.filter_jit
def _follow_series(
    model: ObservedSeriesModel | SummarySeriesModel, times, values, lengths, solver: Solver, at: Array
) -> tuple[Array, Array | None]:
    solution = model.solve(jnp.asarray(times), jnp.asarray(values), jnp.asarray(lengths), solver=solver, at=at)
    assert solution.trajectory is not None
    # The path of the others is observed, and shown with the observations.
    return solution.trajectory, solution.characteristic if isinstance(model, SummarySeriesModel) else None


def _numbers(task: SeriesTask, targets: np.ndarray) -> Float[np.ndarray, "n"]:
    """Standardized targets in their own units."""
    scale = task.spec.target_standardizer
    assert scale is not None
    return scale.inverse(np.asarray(targets, np.float32)[:, None])[:, 0]
