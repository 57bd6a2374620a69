"""Figures of a model of series: the observations, the path through them, and what the model says as they come in."""

from pathlib import Path

import equinox as eqx
import matplotlib as mpl
import numpy as np
from jaxtyping import Float

from charax.data import SeriesSplit
from charax.fields import Interpolation
from charax.plotting import C_NODE, interpolate_observations, save_figure
from charax.tasks.series._task import SeriesTask

_SERIES, _CHANNELS = 4, 3
_THIN, _BOLD = 0.9, 2.4
MOST_ANSWERS = 100
"""After so many observations of a series the model is asked at most: each answer solves the series so far."""


def plot_series(task: SeriesTask, model: eqx.Module, split: SeriesSplit, path: Path) -> Path:
    """Plot some series with their interpolation, and the outputs of the model after each observation.

    Args:
        task: The task.
        model: The trained model.
        split: Series to choose from: one of each class, as far as there is space.
        path: The file.

    Returns:
        The file.
    """
    spec = task.spec
    if spec.classes:
        chosen = [int(np.argmax(split.targets == label)) for label in np.unique(split.targets)[:_SERIES]]
    else:
        chosen = list(range(min(_SERIES, len(split.targets))))
    with save_figure(path, width=1.8 + 3.0 * len(chosen), height=5.0) as figure:
        axes = figure.subplots(2, len(chosen), squeeze=False, sharex="col", sharey="row")
        for column, row in enumerate(chosen):
            _plot_observations(axes[0, column], task, split, row)
            _plot_outputs(axes[1, column], task, model, split, row)
        axes[0, 0].set_ylabel("value")
        axes[1, 0].set_ylabel("probability (bold: true class)" if spec.classes else spec.target)
        for axis in axes[:, -1]:
            legend = axis.legend(loc="upper left", bbox_to_anchor=(1, 1), fontsize="small")
            # The true class of the last series is not that of the others.
            for line in legend.get_lines():
                line.set_linewidth(_THIN)
    return path


def _plot_observations(axis, task: SeriesTask, split: SeriesSplit, row: int) -> None:
    spec, length = task.spec, int(split.lengths[row])
    times = split.times[row, :length] * spec.scaling.duration
    raw = spec.scaling.standardizer.inverse(split.values[row, :length])
    clock, curve = path_of(split, row, task.design.interpolation)
    smooth = spec.scaling.standardizer.inverse(curve)
    for j, name in enumerate(spec.scaling.channels[:_CHANNELS]):
        (line,) = axis.plot(clock * spec.scaling.duration, smooth[:, j], linewidth=1.0, alpha=0.7)
        axis.plot(times, raw[:, j], ".", color=line.get_color(), markersize=4, label=name)
    what = spec.classes[int(split.targets[row])] if spec.classes else ""
    axis.set_title(f"class {what}" if what else f"series {row}")


def path_of(
    split: SeriesSplit, row: int, interpolation: Interpolation
) -> tuple[Float[np.ndarray, "points"], Float[np.ndarray, "points channels"]]:
    """The times and values of the path through one series, in scaled units."""
    length = int(split.lengths[row])
    return interpolate_observations(split.times[row, :length], split.values[row, :length], interpolation)


def _plot_outputs(axis, task: SeriesTask, model: eqx.Module, split: SeriesSplit, row: int) -> None:
    counts, outputs = task.outputs_over_time(model, split, row, most=MOST_ANSWERS)
    times = split.times[row, counts - 1] * task.spec.scaling.duration
    if task.spec.classes:
        colours = mpl.colormaps["tab10" if len(task.spec.classes) <= 10 else "turbo"]
        for label, name in enumerate(task.spec.classes):
            is_true = label == int(split.targets[row])
            colour = colours(label if len(task.spec.classes) <= 10 else label / len(task.spec.classes))
            axis.plot(times, outputs[:, label], color=colour, linewidth=_BOLD if is_true else _THIN, label=name)
        axis.set_ylim(0, 1)
    else:
        scale = task.spec.target_standardizer
        assert scale is not None
        axis.plot(times, outputs[:, 0], color=C_NODE, label="predicted so far")
        truth = float(scale.inverse(split.targets[row : row + 1, None].astype(np.float32))[0, 0])
        axis.axhline(truth, color="black", linewidth=0.9, label="observed")
    axis.set_xlabel("time since the first observation")
