"""`python -m benchmarks.linear_start`: the linear start of forecasts alone, next to the autoregression of the baseline.

Writes docs/results/forecasts/linear-start.json: RMSE on the test split, in standard deviations of the training values,
of what `charax train forecast --history` begins with, before a model corrects it. It is fitted in seconds, so that many
seeds can be compared: seeds 0 to 4 are those of `charax reproduce forecasts`, its form was chosen on seeds from 100.
"""

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np

from charax import data
from charax.paper import _forecast_baselines as baselines
from charax.paper.forecasts import SETTINGS, Name, find_file
from charax.train import mean_and_sd

RESULT = Path(__file__).parents[1] / "docs" / "results" / "forecasts" / "linear-start.json"
NAMES = tuple(name for name, setting in SETTINGS.items() if not setting.rows)
METHODS = ("linear_start", "autoregression", "persistence")


def measure(name: Name, seed: int) -> dict[str, Any]:
    """The errors on one test split."""
    setting = SETTINGS[name]
    config = setting.config
    load = lambda **more: data.load_forecast_windows(
        find_file(setting.file or name),
        context=config.context,
        history=config.history or 1,
        horizon=config.horizon,
        hold_out=config.hold_out,
        seed=seed,
        **more,
    )
    ours, plain = load(folds=None, transform=config.transform), load()
    scale = np.asarray(plain.units.value_scale)
    truth = plain.units.restore(plain.test.values)
    error = lambda forecast: float(np.sqrt(np.nanmean(((forecast - truth) / scale) ** 2)))
    return {
        "dataset": name,
        "seed": seed,
        "linear_start": error(ours.units.expect(ours.test.anchor.mean(axis=1), np.asarray(ours.units.linear_std))),
        "autoregression": error(plain.units.restore(baselines.autoregression(plain).test)),
        "persistence": error(plain.units.restore(baselines.persistence(plain).test)),
    }


def summarize(runs: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Mean and standard deviation over the seeds, and how often the linear start is better."""
    rows = []
    for name in dict.fromkeys(run["dataset"] for run in runs):
        for kind, chosen in (("test", range(100)), ("choice", range(100, 1000))):
            each = [run for run in runs if run["dataset"] == name and run["seed"] in chosen]
            if each:
                row: dict[str, Any] = {"dataset": name, "seeds": kind, "count": len(each)}
                for method in METHODS:
                    row[f"{method}_mean"], row[f"{method}_sd"] = mean_and_sd([run[method] for run in each])
                row["better"] = sum(run["linear_start"] < run["autoregression"] for run in each)
                rows.append(row)
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--dataset", nargs="*", choices=NAMES, default=NAMES)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--seeds", type=int, default=5)
    options = parser.parse_args()
    seeds = range(options.first, options.first + options.seeds)
    stored = json.loads(RESULT.read_text())["runs"] if RESULT.exists() else []
    is_new = lambda run: run["dataset"] not in options.dataset or run["seed"] not in seeds
    runs = [run for run in stored if is_new(run)]
    for name in options.dataset:
        for seed in seeds:
            runs.append(measure(name, seed))
            print(runs[-1], flush=True)
        RESULT.write_text(json.dumps({"rows": summarize(runs), "runs": runs}, indent=2) + "\n")


if __name__ == "__main__":
    main()
