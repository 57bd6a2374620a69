"""Figures of a flow between two data sets: the source, where it is taken, and the data."""

from pathlib import Path

import numpy as np
import plotly.graph_objects as go
from jaxtyping import Float

from charax.models.flows import ContinuousFlow
from charax.plotting import C_NODE, EXACT, Section, save_figure
from charax.tasks.density._following import trajectories_of
from charax.tasks.density._plots import plot_samples
from charax.tasks.density._transport import TransportTask
from charax.train import Splits

_POINTS, _LINES, _FRAMES = 2_000, 60, 17


def plot_transport(task: TransportTask, flow: ContinuousFlow, splits: Splits, folder: Path) -> list[Path]:
    """The source, the data and what lies between them, in the plane; samples in more dimensions."""
    source, data = (part[:_POINTS] for part in (splits.test.source, splits.test.inputs))
    mapped = task.transport(flow, source)
    if task.spec.shape != (2,):
        return [plot_samples(task.spec.standardizer.inverse(mapped), None, folder / "samples.png")]
    paths = _paths(task, flow, mapped[:_LINES])
    path = folder / "transport.png"
    with save_figure(path, width=12.0, height=3.6) as figure:
        figure.set_layout_engine("compressed")  # squares of equal scale leave space for titles
        axes = figure.subplots(1, 4, sharex=True, sharey=True)
        for axis, points, colour, title in (
            (axes[0], source, EXACT, f"{len(source):,} points of the source"),
            (axes[2], mapped, C_NODE, "where the flow takes them"),
            (axes[3], data, EXACT, f"{len(data):,} test points"),
        ):
            axis.plot(points[:, 0], points[:, 1], ".", color=colour, markersize=2, alpha=0.6, markeredgewidth=0)
            axis.set_title(title)
        axes[1].plot(paths[:, :, 0], paths[:, :, 1], color=C_NODE, linewidth=0.7, alpha=0.7)
        axes[1].plot(*paths[-1].T, ".", color=EXACT, markersize=4)
        axes[1].set_title(f"{paths.shape[1]} trajectories; dots: the source")
        for axis in axes:
            axis.set_aspect("equal")
            axis.set_xlabel("$u_1$, standardized")
            axis.grid(False)
        axes[0].set_ylabel("$u_2$, standardized")
    return [path]


def report_transport(task: TransportTask, flow: ContinuousFlow, splits: Splits) -> list[Section]:
    """The points on their way from the source to the data, in their first two columns."""
    data = splits.test.inputs[:_POINTS]
    mapped = task.transport(flow, splits.test.source[:_POINTS])
    steps = _paths(task, flow, mapped)[::-1]
    frames = [
        go.Frame(name=f"{fraction:.3g}", data=[go.Scatter(x=points[:, 0], y=_second(points))], traces=[1])
        for fraction, points in zip(np.linspace(0, 1, _FRAMES), steps, strict=True)
    ]
    dots = lambda points, color, name: go.Scatter(
        x=points[:, 0], y=_second(points), mode="markers", marker={"color": color, "size": 3, "opacity": 0.6}, name=name
    )
    figure = go.Figure(
        [dots(data, EXACT, "test points"), dots(steps[0], C_NODE, "points of the source")], frames=frames
    )
    figure.update_xaxes(title_text="u<sub>1</sub>, standardized")
    figure.update_yaxes(title_text="u<sub>2</sub>, standardized", scaleanchor="x")
    text = f"Test samples of {task.spec.source}, and where the flow takes them as the slider moves from 0 to 1."
    return [Section("From the source to the data", text, figure)]


def _paths(
    task: TransportTask, flow: ContinuousFlow, mapped: Float[np.ndarray, "n columns"]
) -> Float[np.ndarray, "points n columns"]:
    """Trajectories from the mapped points at s = 0 back to the source."""
    fine = mapped[np.isfinite(mapped).all(axis=1)]
    return trajectories_of(flow, fine, task.solver, np.linspace(0, 1, _FRAMES))[0]


def _second(points: Float[np.ndarray, "n columns"]) -> Float[np.ndarray, "n"]:
    return points[:, 1] if points.shape[1] > 1 else np.zeros(len(points))
