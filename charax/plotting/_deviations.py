"""Methods side by side: how far they are off."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from charax.plotting._style import C_NODE, EXACT, NODE, picture

_COLOURS = {"c-node": C_NODE, "node": NODE, "node-fair": "#e8968f"}


def draw_deviations(rows: Sequence[dict[str, Any]], path: Path) -> Path:
    """Deviations in percent by problem and method on a logarithmic axis, with spreads and the paper's as lines."""
    problems = list(dict.fromkeys(row["problem"] for row in rows))
    methods = [method for method in _COLOURS if any(row["method"] == method for row in rows)]
    width = 0.8 / len(methods)
    with picture(path, width=2.2 + 1.6 * len(problems), height=3.4) as figure:
        axis = figure.add_subplot()
        for row in rows:
            place = problems.index(row["problem"]) + (methods.index(row["method"]) - (len(methods) - 1) / 2) * width
            axis.bar(place, row["deviation_percent_mean"], 0.9 * width, color=_COLOURS[row["method"]])
            axis.errorbar(place, row["deviation_percent_mean"], row["deviation_percent_sd"], color="black", capsize=3)
            if row["deviation_percent_paper"] is not None:
                ends = [place - width / 2, place + width / 2]
                axis.plot(ends, [row["deviation_percent_paper"]] * 2, color=EXACT, linestyle="--")
        for method in methods:
            axis.bar(0, np.nan, color=_COLOURS[method], label=method)
        axis.plot([], [], color=EXACT, linestyle="--", label="in the paper")
        axis.set_yscale("log")
        axis.set_xticks(range(len(problems)), problems)
        axis.set_ylabel("mean relative deviation, %")
        axis.grid(visible=False, axis="x")
        axis.legend(loc="upper left", bbox_to_anchor=(1, 1))
    return path
