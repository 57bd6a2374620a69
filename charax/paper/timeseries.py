"""The paper's time series: u(x, t) with x hidden, learned for t in [0, 1] and forecast until 6."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar

from charax import data, plotting, train
from charax.models import ForecastMethod
from charax.paper._experiment import AbstractExperiment
from charax.paper._report import Column, Figure, Report
from charax.tasks import ForecastConfig
from charax.train import LoopConfig, OptimizerConfig, Sweep

if TYPE_CHECKING:
    from charax.train import Run

INTERVALS = tuple((n, n + 1) for n in range(6))

REPORTED: Mapping[str, tuple[float, ...]] = MappingProxyType(
    {"c-node": (20.49, 22.18, 25.54, 21.96, 23.88, 38.24), "node": (20.63, 25.00, 32.40, 45.91, 52.25, 70.01)}
)
"""What the paper reports in each interval: mean relative error in percent."""

FLOOR = 100 * (3 - 2 * math.sqrt(2))
"""With x uniform on [1, 2] and hidden, no prediction has a smaller mean relative error than this, in percent."""

WIDTHS: Mapping[ForecastMethod, int] = MappingProxyType({"c-node": 16, "node": 96, "node-fair": 28})
"""881 parameters, 9,698 (the paper's NODE and the noise), 898."""

DAMPING = 0.5
"""Trends level off after half the span of the data: a prior, since data that end at t = 1 say nothing about t = 6."""

_COLUMNS = (
    Column("method", "method"),
    Column("interval", "interval"),
    Column("relative error", "deviation_percent_mean", ".2f", "deviation_percent_sd"),
    Column("paper's", "deviation_percent_paper", ".2f"),
    Column("floor", "deviation_percent_floor", ".1f"),
    Column("parameters", "parameters", ",d"),
)


@dataclass(frozen=True)
class Timeseries(AbstractExperiment):
    """The paper's time series over six intervals, with its numbers and the least possible error. It resumes."""

    name: ClassVar[str] = "timeseries"

    method: tuple[ForecastMethod, ...] = ()
    """Only these methods."""
    seeds: int = 5
    """Seeds per method."""
    epochs: int = 12
    """Epochs of 50 steps each."""

    def run(self, folder: Path, sweep: Sweep) -> Report:
        methods = self.method or tuple(WIDTHS)
        configs = [
            ForecastConfig(
                method=method,
                width=WIDTHS[method],
                augment_dim=0,
                damping=None if method == "node" else DAMPING,
                optimizer=OptimizerConfig(learning_rate=3e-3, weight_decay=1e-2),
                loop=LoopConfig(epochs=self.epochs, batch_size=64),
            )
            for method in methods
        ]
        groups = sweep.run_groups([train.seed_jobs(one, folder, range(self.seeds)) for one in configs])
        rows: list[dict[str, Any]] = []
        for method, runs in zip(methods, groups, strict=True):
            runs[0].plot()
            rows += _rows(method, runs)
        return Report(
            name=self.name,
            title="Time series with x hidden: mean relative error in %",
            columns=_COLUMNS,
            answer={"rows": rows},
            record={"floor_percent": FLOOR},
            figures=self.figures({"rows": rows}),
        )

    def figures(self, stored: Mapping[str, Any]) -> Mapping[str, Figure]:
        return {"intervals.png": lambda path, rows=stored["rows"]: plot_intervals(rows, path)}


def _rows(method: ForecastMethod, runs: "Sequence[Run]") -> list[dict[str, Any]]:
    """One row per interval."""
    summaries = [run.summary() for run in runs]
    rows: list[dict[str, Any]] = []
    for i, interval in enumerate(INTERVALS):
        mean, sd = train.mean_and_sd([relative_error(run, interval) for run in runs])
        rows.append(
            {
                "method": method,
                "interval": list(interval),
                "parameters": summaries[0]["parameters"],
                "deviation_percent_mean": mean,
                "deviation_percent_sd": sd,
                "deviation_percent_paper": REPORTED[method][i] if method in REPORTED else None,
                "deviation_percent_floor": FLOOR,
                "seconds": max(summary["seconds"] for summary in summaries),
            }
        )
    return rows


def relative_error(run: "Run", interval: tuple[float, float], *, points: int = 2000) -> float:
    """The mean relative error, in percent, from new and noise-free values in an interval."""
    import numpy as np

    task, model = run.trained
    start, end = interval
    truth = data.sample_paper_series(points, (float(start), float(end)), seed=[run.config.loop.seed, 2 + int(start)])
    mean, _, _ = task.forecast(model, truth)  # pyright: ignore[reportAttributeAccessIssue]
    return 100 * float(np.mean(np.abs(mean - truth.value) / truth.value))


def plot_intervals(rows: Sequence[dict[str, Any]], path: Path) -> Path:
    """Relative errors over the six intervals of the paper's series: ours, the paper's (dashed), and the floor."""
    from matplotlib.ticker import NullFormatter, ScalarFormatter

    colours = {"c-node": plotting.C_NODE, "node": plotting.NODE, "node-fair": plotting.FAIR_NODE}
    with plotting.save_figure(path, width=6.4, height=3.6) as figure:
        axis = figure.add_subplot()
        for method in dict.fromkeys(row["method"] for row in rows):
            ours = [row for row in rows if row["method"] == method]
            middle = [sum(row["interval"]) / 2 for row in ours]
            sd = [row["deviation_percent_sd"] or 0 for row in ours]
            mean = [row["deviation_percent_mean"] for row in ours]
            axis.errorbar(middle, mean, sd, color=colours[method], marker="o", markersize=4, capsize=3, label=method)
            if ours[0]["deviation_percent_paper"] is not None:
                paper = [row["deviation_percent_paper"] for row in ours]
                axis.plot(middle, paper, "--", color=colours[method], linewidth=1.2, label=f"{method} in the paper")
        floor = rows[0]["deviation_percent_floor"]
        axis.axhline(floor, color=plotting.EXACT, linewidth=1, linestyle=":", label="least possible")
        axis.set_yscale("log")
        axis.yaxis.set_major_formatter(ScalarFormatter())
        axis.yaxis.set_minor_formatter(NullFormatter())
        axis.set_yticks([15, 20, 30, 50, 100, 200])
        axis.set(xlabel="time t", ylabel="mean relative error, %")
        axis.set_title("Error of forecasts by the time that is forecast; trained until t = 1")
        axis.legend(loc="upper left", bbox_to_anchor=(1, 1), fontsize="small")
    return path
