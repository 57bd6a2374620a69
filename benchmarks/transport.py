"""`python -m benchmarks.transport`: flows from eight Gaussians to moons by flow matching, and how close they come.

Writes docs/results/transport/transport.json: the Wasserstein-2 distance between mapped points and new ones, with an
adaptive solver and with one Euler step, next to the distance between two samples of the moons. A run that is there
already is not made again.
"""

import argparse
import json
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

from charax import DensityConfig, train
from charax.data import sample_toy
from charax.models import FlowMethod
from charax.models.matching import wasserstein_distance
from charax.solve import Solver
from charax.tasks.density import TransportTask

RESULT = Path(__file__).parents[1] / "docs" / "results" / "transport" / "transport.json"
POINTS = 4_000
"""Points of a Wasserstein distance."""
TEST_SEED = 10_000
"""New points have other seeds than all splits."""


def measure(method: FlowMethod, seed: int) -> dict[str, Any]:
    """Train with the command's defaults, then compare new points."""
    config = DensityConfig(data="moons", source="eight-gaussians", objective="matching", method=method)
    config = replace(config, loop=replace(config.loop, seed=seed))
    with tempfile.TemporaryDirectory() as folder:
        run = train.train_or_load(config, Path(folder) / "run")
        task, model = run.trained
        assert isinstance(task, TransportTask)
        source = sample_toy("eight-gaussians", POINTS, seed=TEST_SEED + seed)
        data, other = (sample_toy("moons", POINTS, seed=first + seed) for first in (2 * TEST_SEED, 3 * TEST_SEED))
        one_step = replace(task, solver=Solver("euler", steps=1))
        return {
            "method": method,
            "seed": seed,
            "wasserstein": wasserstein_distance(task.transport(model, source), data),
            "wasserstein_one_euler_step": wasserstein_distance(one_step.transport(model, source), data),
            "wasserstein_of_data": wasserstein_distance(other, data),
            "parameters": run.summary()["parameters"],
            "seconds": run.summary()["seconds"],
        }


def summarize(runs: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The mean and the standard deviation over the seeds of each method."""
    rows = []
    for method in dict.fromkeys(one["method"] for one in runs):
        each = [one for one in runs if one["method"] == method]
        row: dict[str, Any] = {"method": method, "seeds": len(each), "parameters": each[0]["parameters"]}
        for key in ("wasserstein", "wasserstein_one_euler_step", "wasserstein_of_data", "seconds"):
            row[f"{key}_mean"], row[f"{key}_sd"] = train.mean_and_sd([one[key] for one in each])
        rows.append(row)
    return rows


def main() -> None:
    """Make the runs that are missing, and write after each of them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--method", nargs="+", default=["c-node", "node"])
    parser.add_argument("--output", type=Path, default=RESULT)
    given = parser.parse_args()
    runs: list[dict[str, Any]] = json.loads(given.output.read_text())["runs"] if given.output.exists() else []
    given.output.parent.mkdir(parents=True, exist_ok=True)
    for seed in range(given.seeds):
        for method in given.method:
            if any((one["method"], one["seed"]) == (method, seed) for one in runs):
                continue
            runs.append(measure(method, seed))
            print(runs[-1], flush=True)
            answer = {"points": POINTS, "rows": summarize(runs), "runs": runs}
            given.output.write_text(json.dumps(answer, indent=2) + "\n")


if __name__ == "__main__":
    main()
