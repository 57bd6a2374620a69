"""The paper's ablation: what happens as the number of characteristic dimensions grows."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from charax.plotting._style import C_NODE, EXACT, picture
from charax.select import Criterion, Selection

_MARKS: dict[Criterion, str] = {"validation": "-", "aic": "--", "bic": ":"}


def draw_ablation(selections: Sequence[Selection], path: Path) -> Path:
    """Accuracy, test loss and training loss against k: a row for each data set, bands from worst to best seed.

    Vertical lines are what the criteria pick.
    """
    with picture(path, width=9.5, height=0.6 + 2.4 * len(selections)) as figure:
        axes = figure.subplots(len(selections), 3, squeeze=False)
        for row, selection in zip(axes, selections, strict=True):
            tried = selection.tried
            courses = {
                "test accuracy": [[run.summary()["accuracy"] for run in one.runs] for one in tried],
                "test loss": [one.test_losses for one in tried],
                "training loss": [one.train_losses for one in tried],
            }
            for axis, (title, course) in zip(row, courses.items(), strict=True):
                _draw_course(axis, [one.k for one in tried], np.array(course))
                axis.set_title(f"{tried[0].dataset}, {title}")
                axis.set_xlabel("k")
            for criterion, k in selection.picked().items():
                row[0].axvline(k, color=EXACT, linewidth=1, linestyle=_MARKS[criterion], label=f"{criterion}: {k}")
            row[0].legend(fontsize="small")
    return path


def _draw_course(axis, k: list[int], values: np.ndarray) -> None:
    axis.plot(k, values.mean(axis=1), "o-", markersize=4, color=C_NODE)
    if values.shape[1] > 1:
        axis.fill_between(k, values.min(axis=1), values.max(axis=1), color=C_NODE, alpha=0.15, linewidth=0)
    axis.set_xscale("log", base=2)
    axis.set_xticks(k, [str(number) for number in k])
    axis.minorticks_off()
