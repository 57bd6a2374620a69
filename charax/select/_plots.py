"""Figures of a selection: what happens as the characteristic dimension grows."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from charax.plotting import C_NODE, EXACT, save_figure
from charax.select._criteria import Criterion
from charax.select._sweep import Selection

_LINES: dict[Criterion, str] = {"validation": "-", "aic": "--", "bic": ":"}


def plot_selection(selections: Sequence[Selection], path: Path) -> Path:
    """Plot accuracy, test loss and training loss against k.

    There is a row per data set; bands span the worst to the best seed, and vertical lines mark what the criteria pick.

    Args:
        selections: One selection per data set.
        path: The file.

    Returns:
        The file.
    """
    with save_figure(path, width=9.5, height=0.6 + 2.4 * len(selections)) as figure:
        axes = figure.subplots(len(selections), 3, squeeze=False)
        for row, selection in zip(axes, selections, strict=True):
            candidates = selection.candidates
            curves = {
                "test accuracy": [[run.summary()["accuracy"] for run in one.runs] for one in candidates],
                "test loss": [one.test_losses for one in candidates],
                "training loss": [one.train_losses for one in candidates],
            }
            for axis, (title, curve) in zip(row, curves.items(), strict=True):
                _plot_curve(axis, [one.k for one in candidates], np.array(curve))
                axis.set_title(f"{candidates[0].dataset}, {title}")
                axis.set_xlabel("k")
            for criterion, k in selection.picked().items():
                row[0].axvline(k, color=EXACT, linewidth=1, linestyle=_LINES[criterion], label=f"{criterion}: {k}")
            row[0].legend(fontsize="small")
    return path


def _plot_curve(axis, k: list[int], values: np.ndarray) -> None:
    axis.plot(k, values.mean(axis=1), "o-", markersize=4, color=C_NODE)
    if values.shape[1] > 1:
        axis.fill_between(k, values.min(axis=1), values.max(axis=1), color=C_NODE, alpha=0.15, linewidth=0)
    axis.set_xscale("log", base=2)
    axis.set_xticks(k, [str(number) for number in k])
    axis.minorticks_off()
