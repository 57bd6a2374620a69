"""The training dynamics behind the paper's tables."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from charax.paper._comparison import Compared
from charax.paper.table1 import Training
from charax.plotting._style import C_NODE, NODE, picture

_COLOURS = {"node": NODE, "c-node": C_NODE}


def draw_dynamics(
    dynamics: Mapping[Training, list[Compared]] | Mapping[str, list[Compared]], path: Path, *, metric: str = "accuracy"
) -> Path:
    """A validation metric over the epochs: a row of panels for each way to train, a column for each data set.

    Red is NODE and blue is C-NODE; the line is the mean over seeds, the band from the worst to the best. One epoch is
    no course: a data set that had no more is left out beside one that had.
    """
    several = lambda one: len(one.courses(metric)[0]) > 1
    some = any(several(one) for compared in dynamics.values() for one in compared)
    kept = {training: [one for one in compared if several(one) or not some] for training, compared in dynamics.items()}
    shown = {training: compared for training, compared in kept.items() if compared}
    datasets = list(dict.fromkeys(one.dataset for compared in shown.values() for one in compared))
    with picture(path, width=1.2 + 2.8 * max(1, len(datasets)), height=0.6 + 2.2 * max(1, len(shown))) as figure:
        axes = figure.subplots(max(1, len(shown)), max(1, len(datasets)), squeeze=False, sharex="col", sharey="col")
        for row, (training, compared) in zip(axes, shown.items(), strict=False):
            for axis, dataset in zip(row, datasets, strict=True):
                for one in (one for one in compared if one.dataset == dataset):
                    _draw_course(axis, one, metric)
                axis.set_title(f"{dataset}, {training}" if training else dataset)
                axis.xaxis.get_major_locator().set_params(integer=True)
            row[0].set_ylabel(f"validation {metric.replace('_', ' ')}")
        for axis in axes[-1]:
            axis.set_xlabel("epoch")
        axes[0, -1].legend()
    return path


def _draw_course(axis, one: Compared, metric: str) -> None:
    courses = one.courses(metric)
    epochs = np.arange(1, 1 + min(map(len, courses)))
    values = np.array([course[: len(epochs)] for course in courses], float)
    colour = _COLOURS[one.method]
    axis.plot(epochs, values.mean(0), "o-", markersize=3, color=colour, label=one.method)
    if len(values) > 1:
        axis.fill_between(epochs, values.min(0), values.max(0), color=colour, alpha=0.15, linewidth=0)
