"""`python -m benchmarks.toys`: toy flows by flow matching and by maximum likelihood, and the time of the whole command.

Writes docs/results/toys/toys.json. Each run is a `charax train density` in a process of its own with an empty cache of
compiled programs. CPU seconds are those of the process, with all of its threads. A run that is there already is not
made again.
"""

import argparse
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from charax.data import TOYS
from charax.train import mean_and_sd

RESULT = Path(__file__).parents[1] / "docs" / "results" / "toys" / "toys.json"
COMMANDS = {
    "likelihood": ("--sharpness", "8"),
    "toy-flow": (
        *("--preset", "paper", "--sharpness", "8", "--learning-rate", "3e-3"),
        *("--points", "102400", "--batch-size", "1024"),
    ),
    "matching": ("--objective", "matching"),
}
"""What follows `charax train density --data NAME`. toy-flow is `charax reproduce toy-flow --recipe sharp`, for circles
only."""
METRICS = ("nll", "validation_nll", "nfe", "parameters", "seconds")


def measure(data: str, recipe: str, method: str, seed: int, pictures: Path | None = None) -> dict[str, Any]:
    """Train, and note what the command prints and how long it took; keep the first picture of each kind of run."""
    flags = ["--data", data, "--method", method, "--seed", str(seed), *COMMANDS[recipe]]
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "JAX_COMPILATION_CACHE_DIR": f"{folder}/cache"}
        environment.pop("PYTHONDONTWRITEBYTECODE", None)  # modules are compiled once for all runs, as for users
        command = [sys.executable, "-m", "charax", "train", "density", *flags, "--output", f"{folder}/runs", "--json"]
        before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
        done = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
        wall, after = time.monotonic() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
        answer = json.loads(done.stdout)
        if pictures is not None and not (picture := pictures / f"{data}-{recipe}-{method}.png").exists():
            shutil.copy(Path(answer["run"]) / "plots" / "density.png", picture)
    return {
        "dataset": data,
        "recipe": recipe,
        "method": method,
        "seed": seed,
        **{name: answer[name] for name in METRICS},
        "command_seconds": wall,
        "cpu_seconds": after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime,
    }


def summarize(runs: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The mean and the standard deviation over the seeds, and the CPU time relative to that of the likelihood."""
    groups: dict[tuple[str, str, str], list[dict[str, Any]]] = {}
    for run in runs:
        groups.setdefault((run["dataset"], run["recipe"], run["method"]), []).append(run)
    rows: list[dict[str, Any]] = []
    for (dataset, recipe, method), each in groups.items():
        row: dict[str, Any] = {"dataset": dataset, "recipe": recipe, "method": method, "seeds": len(each)}
        for key in ("nll", "nfe", "cpu_seconds", "command_seconds"):
            row[f"{key}_mean"], row[f"{key}_sd"] = mean_and_sd([one[key] for one in each])
        rows.append(row | {"parameters": each[0]["parameters"]})
    likelihood = {(row["dataset"], row["method"]): row for row in rows if row["recipe"] == "likelihood"}
    for row in rows:
        other = likelihood.get((row["dataset"], row["method"]))
        if row["recipe"] != "likelihood" and other is not None:
            row["nll_difference"] = row["nll_mean"] - other["nll_mean"]
            row["cpu_ratio"] = row["cpu_seconds_mean"] / other["cpu_seconds_mean"]
    return rows


def main() -> None:
    """Make the runs that are missing, and write after each of them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dataset", nargs="+", choices=tuple(TOYS), default=list(TOYS))
    parser.add_argument("--recipe", nargs="+", choices=tuple(COMMANDS), default=list(COMMANDS))
    parser.add_argument("--method", nargs="+", default=["c-node"])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--output", type=Path, default=RESULT)
    given = parser.parse_args()
    runs: list[dict[str, Any]] = json.loads(given.output.read_text())["runs"] if given.output.exists() else []
    given.output.parent.mkdir(parents=True, exist_ok=True)
    asked = [
        (data, recipe, method, seed)
        for seed in range(given.seeds)
        for data in given.dataset
        for recipe in given.recipe
        for method in given.method
        if recipe != "toy-flow" or data == "circles"
    ]
    known = {(run["dataset"], run["recipe"], run["method"], run["seed"]) for run in runs}
    for each in (each for each in asked if each not in known):
        runs.append(measure(*each, pictures=given.output.parent))
        print(runs[-1], flush=True)
        given.output.write_text(json.dumps({"rows": summarize(runs), "runs": runs}, indent=2) + "\n")


if __name__ == "__main__":
    main()
