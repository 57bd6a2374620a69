"""Figures of a selection: what happens as the characteristic dimension grows."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from charax.plotting import C_NODE, EXACT, save_figure
from charax.select._criteria import Criterion, pick

_LINES: dict[Criterion, str] = {"validation": "-", "aic": "--", "bic": ":"}
_PANELS = {
    "test accuracy": ("accuracy_mean", "accuracy_sd"),
    "test loss": ("test_loss", "test_loss_sd"),
    "training loss": ("train_loss", "train_loss_sd"),
}


def plot_rows(groups: Sequence[Sequence[Mapping[str, Any]]], path: Path) -> Path:
    """Plot accuracy, test loss and training loss against k, from the rows of each selection as they are stored.

    There is a row per data set; bands are standard deviations over seeds, and vertical lines mark what the criteria
    pick.
    """
    with save_figure(path, width=9.5, height=0.9 + 2.4 * len(groups)) as figure:
        axes = figure.subplots(len(groups), len(_PANELS), squeeze=False)
        for line, rows in zip(axes, groups, strict=True):
            for axis, (title, (mean, sd)) in zip(line, _PANELS.items(), strict=True):
                _plot_curve(axis, rows, mean, sd)
                axis.set(title=f"{rows[0]['dataset']}: {title}", xlabel="characteristic dimension k", ylabel=title)
            for criterion, k in pick(rows).items():
                line[0].axvline(k, color=EXACT, linewidth=1, linestyle=_LINES[criterion], label=f"{criterion}: {k}")
            line[0].legend(fontsize="small", title="k picked by", title_fontsize="small")
        figure.suptitle("More characteristic dimensions: mean and standard deviation over seeds", fontsize="medium")
    return path


def _plot_curve(axis: Any, rows: Sequence[Mapping[str, Any]], mean: str, sd: str) -> None:
    k, middle = [row["k"] for row in rows], np.array([row[mean] for row in rows])
    axis.plot(k, middle, "o-", markersize=4, color=C_NODE)
    spread = [row.get(sd) for row in rows]
    if None not in spread:
        axis.fill_between(k, middle - spread, middle + spread, color=C_NODE, alpha=0.15, linewidth=0)
    axis.set_xscale("log", base=2)
    axis.set_xticks(k, [str(number) for number in k])
    axis.minorticks_off()
