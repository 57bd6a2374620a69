"""The paper's time series: u(x, t) with x hidden, learned for t in [0, 1] and forecast until 6."""

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from charax.data import sample_hidden
from charax.models import ForecastMethod
from charax.tasks.forecast import ForecastConfig, ForecastTask
from charax.train import AbstractProgress, LoopConfig, OptimizerConfig, Run, spread, train_seeds

INTERVALS = tuple((n, n + 1) for n in range(6))

REPORTED: Mapping[str, tuple[float, ...]] = MappingProxyType(
    {"c-node": (20.49, 22.18, 25.54, 21.96, 23.88, 38.24), "node": (20.63, 25.00, 32.40, 45.91, 52.25, 70.01)}
)
"""What the paper reports in each interval: mean relative deviation in percent."""

FLOOR = 100 * (3 - 2 * math.sqrt(2))
"""With x uniform on [1, 2] and hidden, no prediction is closer than this on average, in percent."""

WIDTHS: Mapping[ForecastMethod, int] = MappingProxyType({"c-node": 16, "node": 96, "node-fair": 28})
"""881 parameters, 9,698 (the paper's NODE and the noise), 898."""

DAMPING = 0.5
"""Trends level off after half the span of the data: a prior, for data that end at t = 1 say nothing of t = 6."""


class Forecasted(NamedTuple):
    """One method, over seeds."""

    method: ForecastMethod
    runs: list[Run]

    def rows(self) -> list[dict[str, Any]]:
        """One for each interval."""
        deviations = np.array([[deviation(run, interval) for interval in INTERVALS] for run in self.runs])
        summary = self.runs[0].summary()
        rows = []
        for i, interval in enumerate(INTERVALS):
            mean, sd = spread(deviations[:, i].tolist())
            rows.append(
                {
                    "method": self.method,
                    "interval": list(interval),
                    "parameters": summary["parameters"],
                    "deviation_percent_mean": mean,
                    "deviation_percent_sd": sd,
                    "deviation_percent_paper": REPORTED[self.method][i] if self.method in REPORTED else None,
                    "deviation_percent_floor": FLOOR,
                    "seconds": max(run.summary()["seconds"] for run in self.runs),
                }
            )
        return rows


def deviation(run: Run, interval: tuple[float, float], *, points: int = 2000) -> float:
    """The mean relative deviation, in percent, from fresh and noise-free values in an interval."""
    task, model = run.trained
    assert isinstance(task, ForecastTask)
    truth = sample_hidden(points, interval, seed=[run.settings.loop.seed, 2 + int(interval[0])])
    mean, _, _ = task.forecast(model, truth)
    return 100 * float(np.mean(np.abs(mean - truth.value) / truth.value))


def run(
    *,
    methods: Sequence[ForecastMethod] = (),
    seeds: int = 5,
    epochs: int = 12,
    folder: Path,
    progress: AbstractProgress,
) -> list[Forecasted]:
    """Train each method with every seed, or go on where an interrupted experiment stopped; leaves `timeseries.json`."""
    folder.mkdir(parents=True, exist_ok=True)
    forecasted: list[Forecasted] = []
    for method in methods or tuple(WIDTHS):
        settings = ForecastConfig(
            method=method,
            width=WIDTHS[method],
            augment_dim=0,
            damping=None if method == "node" else DAMPING,
            optimizer=OptimizerConfig(learning_rate=3e-3, weight_decay=1e-2),
            loop=LoopConfig(epochs=epochs, batch_size=64),
        )
        forecasted.append(Forecasted(method, train_seeds(settings, seeds=seeds, folder=folder, progress=progress)))
    rows = [row for one in forecasted for row in one.rows()]
    (folder / "timeseries.json").write_text(json.dumps({"floor_percent": FLOOR, "rows": rows}, indent=2) + "\n")
    return forecasted
