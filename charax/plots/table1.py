"""The training dynamics behind Table 1."""

from pathlib import Path

import numpy as np

from charax.experiments.comparison import Compared
from charax.plots.style import C_NODE, NODE, picture

_LINES = {"node": "-", "anode": "--", "2nd-order": "-.", "il-node": ":"}


def draw_dynamics(compared: list[Compared], path: Path) -> Path:
    """Validation accuracy over the epochs, red for plain and blue for characteristic; mean and band over seeds."""
    datasets = list(dict.fromkeys(one.dataset for one in compared))
    with picture(path, width=1.6 + 3.6 * len(datasets), height=3.2) as figure:
        axes = np.atleast_1d(figure.subplots(1, len(datasets), squeeze=True))
        for axis, dataset in zip(axes, datasets, strict=True):
            for one in (one for one in compared if one.dataset == dataset):
                courses = [[row["validation_accuracy"] for row in run.history if "epoch" in row] for run in one.runs]
                epochs = np.arange(1, 1 + min(map(len, courses)))
                values = np.array([course[: len(epochs)] for course in courses])
                colour = C_NODE if one.method.endswith("c-node") else NODE
                lift = "node" if one.method == "c-node" else one.method.removesuffix("+c-node")
                axis.plot(epochs, values.mean(0), _LINES[lift], color=colour, label=one.method)
                if len(values) > 1:
                    axis.fill_between(epochs, values.min(0), values.max(0), color=colour, alpha=0.15, linewidth=0)
            axis.set_title(dataset)
            axis.set_xlabel("epoch")
            axis.xaxis.get_major_locator().set_params(integer=True)
        axes[0].set_ylabel("validation accuracy")
        axes[-1].legend(loc="upper left", bbox_to_anchor=(1, 1), fontsize="small")
    return path


def draw_nll(compared: list[Compared], metric: str, path: Path) -> Path:
    """A metric of the validation part over the epochs, red for plain and blue for characteristic flows."""
    datasets = list(dict.fromkeys(one.dataset for one in compared))
    with picture(path, width=0.6 + 3.6 * len(datasets), height=3.2) as figure:
        axes = np.atleast_1d(figure.subplots(1, len(datasets)))
        for axis, dataset in zip(axes, datasets, strict=True):
            for one in (one for one in compared if one.dataset == dataset):
                courses = [[row[f"validation_{metric}"] for row in run.history if "epoch" in row] for run in one.runs]
                epochs = np.arange(1, 1 + min(map(len, courses)))
                values = np.array([course[: len(epochs)] for course in courses], float)
                colour = C_NODE if one.method == "c-node" else NODE
                axis.plot(epochs, values.mean(0), color=colour, label=one.method)
                if len(values) > 1:
                    axis.fill_between(epochs, values.min(0), values.max(0), color=colour, alpha=0.15, linewidth=0)
            axis.set_title(dataset)
            axis.set_xlabel("epoch")
            axis.xaxis.get_major_locator().set_params(integer=True)
        axes[0].set_ylabel({"nll": "validation NLL", "bits_per_dim": "validation bits/dim"}[metric])
        axes[-1].legend()
    return path
