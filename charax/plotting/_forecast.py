"""Forecasts with their bands."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.ticker import NullFormatter, ScalarFormatter

from charax.data import Observations
from charax.plotting._style import C_NODE, EXACT, NODE, picture
from charax.tasks.forecast import ForecastTask
from charax.train import Problem, Run

_SHOWN = 4
_POINTS = 121


def draw_forecasts(run: Run, problem: Problem) -> list[Path]:
    """The forecast of the first series, its band, what was learned from and what came later; in the run's `plots`."""
    task, model = run.trained
    assert isinstance(task, ForecastTask)
    names = task.columns.values
    series = np.unique(problem.train.series)[:_SHOWN]
    path = run.folder / "plots" / "forecast.png"
    with picture(path, width=2.0 + 3.4 * len(series), height=2.8 * len(names)) as figure:
        axes = figure.subplots(len(names), len(series), squeeze=False, sharex="col")
        for column, index in enumerate(series):
            seen, chosen, later = (
                part.take(np.flatnonzero(part.series == index))
                for part in (problem.train, problem.validation, problem.test)
            )
            asked = _course(seen, max(float(part.t.max()) for part in (seen, chosen, later) if len(part.t)))
            mean, lower, upper = task.forecast(model, asked)
            for row, name in enumerate(names):
                axis = axes[row, column]
                axis.fill_between(asked.t, lower[:, row], upper[:, row], color=C_NODE, alpha=0.15, linewidth=0)
                axis.plot(asked.t, mean[:, row], color=C_NODE, label="forecast, and 95% of observations")
                for part, colour, label in (
                    (later, NODE, "test"),
                    (chosen, EXACT, "validation"),
                    (seen, "black", "training"),
                ):
                    few = part.take(np.arange(min(len(part.t), 400)))
                    axis.plot(few.t, few.value[:, row], ".", color=colour, markersize=3, alpha=0.6, label=label)
                axis.set_ylabel(name)
                if row == len(names) - 1:
                    axis.set_xlabel(f"{task.columns.time} since the start")
        axes[0, -1].legend(loc="upper left", bbox_to_anchor=(1, 1), fontsize="small")
    return [path]


def _course(seen: Observations, end: float) -> Observations:
    """Times all along one series."""
    first = seen.take(np.zeros(_POINTS, int))
    return first._replace(t=np.linspace(0, end, _POINTS, dtype=np.float32))


def draw_intervals(rows: Sequence[dict[str, Any]], path: Path) -> Path:
    """Deviations over the six intervals of the paper's series: ours, the paper's dashed, and the floor."""
    colours = {"c-node": C_NODE, "node": NODE, "node-fair": "#e8968f"}
    with picture(path, width=6.4, height=3.6) as figure:
        axis = figure.add_subplot()
        for method in dict.fromkeys(row["method"] for row in rows):
            ours = [row for row in rows if row["method"] == method]
            middle = [np.mean(row["interval"]) for row in ours]
            sd = [row["deviation_percent_sd"] or 0 for row in ours]
            mean = [row["deviation_percent_mean"] for row in ours]
            axis.errorbar(middle, mean, sd, color=colours[method], marker="o", markersize=4, capsize=3, label=method)
            if ours[0]["deviation_percent_paper"] is not None:
                paper = [row["deviation_percent_paper"] for row in ours]
                axis.plot(middle, paper, "--", color=colours[method], linewidth=1.2, label=f"{method} in the paper")
        axis.axhline(rows[0]["deviation_percent_floor"], color=EXACT, linewidth=1, linestyle=":", label="floor")
        axis.set_yscale("log")
        axis.yaxis.set_major_formatter(ScalarFormatter())
        axis.yaxis.set_minor_formatter(NullFormatter())
        axis.set_yticks([15, 20, 30, 50, 100, 200])
        axis.set(xlabel="t", ylabel="mean relative deviation, %")
        axis.legend(loc="upper left", bbox_to_anchor=(1, 1), fontsize="small")
    return path
