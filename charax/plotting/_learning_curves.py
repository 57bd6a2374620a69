"""Learning curves."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from charax.plotting._palette import C_NODE, NODE
from charax.plotting._style import save_figure

_LOSSES = {"nll": "negative log-likelihood", "bits_per_dim": "bits/dim"}
"""Losses that have a name of their own, and how people write it."""


def plot_learning_curves(history: Sequence[dict[str, Any]], path: Path) -> Path:
    """Plot the metrics of the train and the validation split over the epochs.

    Args:
        history: The history of a run; rows without an `epoch` are left out.
        path: The file.

    Returns:
        The file.
    """
    rows = [row for row in history if "epoch" in row]
    names = [name for name in ("loss", "accuracy", "deviation_percent") if name in rows[0]]
    titles = {"loss": next((title for name, title in _LOSSES.items() if f"validation_{name}" in rows[0]), "loss")}
    with save_figure(path, width=3.8 * len(names), height=3.0) as figure:
        axes = np.atleast_1d(figure.subplots(1, len(names)))
        for axis, name in zip(axes, names, strict=True):
            for key, colour, label in ((name, NODE, "training"), (f"validation_{name}", C_NODE, "validation")):
                values = [np.nan if row[key] is None else row[key] for row in rows]
                marker = "o" if len(rows) == 1 else None
                axis.plot([row["epoch"] for row in rows], values, color=colour, label=label, marker=marker)
            axis.set_xlabel("epoch")
            axis.set_ylabel(titles.get(name, name).replace("deviation_percent", "relative error, %"))
            axis.xaxis.get_major_locator().set_params(integer=True)
            # A log-likelihood may be of either sign.
            if name == "loss" and min(row[key] or 1 for row in rows for key in ("loss", "validation_loss")) > 0:
                _use_plain_log_scale(axis)
        axes[-1].legend()
    return path


def _use_plain_log_scale(axis: Any) -> None:
    """A logarithmic axis whose ticks are plain numbers, also where it spans less than a power of ten."""
    axis.set_yscale("log")
    low, high = axis.get_ylim()
    shown = "25" if high < 100 * low else ""
    axis.yaxis.set_major_formatter("{x:g}")
    axis.yaxis.set_minor_formatter(lambda value, _: f"{value:g}" if f"{value:e}"[0] in shown else "")
