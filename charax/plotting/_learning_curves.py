"""Learning curves."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from charax.plotting._palette import C_NODE, NODE
from charax.plotting._style import save_figure

_SAVED = ("loss", "accuracy", "deviation_percent")
_LOSSES = {"nll": "negative log-likelihood", "bits_per_dim": "bits/dim"}
"""Losses that have a name of their own, and how people write it."""


def plot_learning_curve(history: Sequence[dict[str, Any]], axes: Axes | None = None, *, metric: str = "loss") -> Axes:
    """Does it still improve? Plot a metric of the train and the validation split over the epochs.

    Args:
        history: The rows of `metrics.jsonl`, which are `run.history`; those without an `epoch` are left out.
        axes: Where to plot; a new figure if left out.
        metric: The name of the metric, such as loss or accuracy.

    Returns:
        The axes.

    Raises:
        ValueError: If the history has no such metric.

    ```python
    from charax.plotting import plot_learning_curve

    history = [{"epoch": i, "loss": 1 / i, "validation_loss": 1.1 / i} for i in (1, 2, 3)]
    assert [line.get_label() for line in plot_learning_curve(history).lines] == ["training", "validation"]
    ```
    """
    rows = [row for row in history if "epoch" in row]
    keys = (metric, f"validation_{metric}")
    if not rows or any(key not in rows[0] for key in keys):
        known = [name for name in (rows[0] if rows else ()) if rows and f"validation_{name}" in rows[0]]
        raise ValueError(f"the history has no metric {metric!r}; choose from {', '.join(known) or 'none'}")
    axes = Figure(layout="constrained").subplots() if axes is None else axes
    for key, color, label in zip(keys, (NODE, C_NODE), ("training", "validation"), strict=True):
        values = [np.nan if row[key] is None else row[key] for row in rows]
        marker = "o" if len(rows) == 1 else None
        axes.plot([row["epoch"] for row in rows], values, color=color, label=label, marker=marker)
    own_name = next((title for name, title in _LOSSES.items() if f"validation_{name}" in rows[0]), "loss")
    titles = {"loss": own_name, "deviation_percent": "relative error, %", "nfe": "function evaluations per solve"}
    axes.set(xlabel="epoch", ylabel=titles.get(metric, metric))
    axes.xaxis.set_major_locator(MaxNLocator("auto", integer=True))
    # A log-likelihood may be of either sign.
    if metric == "loss" and min(row[key] or 1 for row in rows for key in keys) > 0:
        _use_plain_log_scale(axes)
    return axes


def save_learning_curves(history: Sequence[dict[str, Any]], path: Path) -> Path:
    """Save the learning curves that a run has among the usual ones."""
    first = next(row for row in history if "epoch" in row)
    names = [name for name in _SAVED if name in first]
    with save_figure(path, width=3.8 * len(names), height=3.0) as figure:
        panels = np.atleast_1d(figure.subplots(1, len(names)))
        for axes, name in zip(panels, names, strict=True):
            plot_learning_curve(history, axes, metric=name)
        panels[-1].legend()
    return path


def _use_plain_log_scale(axis: Any) -> None:
    """A logarithmic axis whose ticks are plain numbers, also where it spans less than a power of ten."""
    axis.set_yscale("log")
    low, high = axis.get_ylim()
    shown = "25" if high < 100 * low else ""
    axis.yaxis.set_major_formatter("{x:g}")
    axis.yaxis.set_minor_formatter(lambda value, _: f"{value:g}" if f"{value:e}"[0] in shown else "")
