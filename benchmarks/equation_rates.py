"""`python -m benchmarks.equation_rates`: choose the learning rates of `reproduce equations` on validation errors.

Every method that is compared with the structured form gets the same tries, on samples that the table does not use (seed
100). Writes docs/results/equations/rates.json; a try that is there already is not made again.
"""

import json
import statistics
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

from charax import train
from charax.models import PDEMethod
from charax.paper import equations

RESULT = Path(__file__).parents[1] / "docs" / "results" / "equations" / "rates.json"
METHODS: tuple[PDEMethod, ...] = ("node-fair", "mlp", "c-node")
PROBLEMS = ("traffic", "growth", "medium")
LEARNING_RATES = (3e-3, 1e-2, 3e-2, 1e-1, 3e-1)
SEED = 100


def main() -> None:
    """Make the tries that are missing, and write what came out after each of them."""
    tries: list[dict[str, Any]] = json.loads(RESULT.read_text())["tries"] if RESULT.exists() else []
    RESULT.parent.mkdir(parents=True, exist_ok=True)
    setting = equations.SETTINGS["cpu"]
    for method in METHODS:
        for problem in PROBLEMS:
            for learning_rate in LEARNING_RATES:
                key = {"method": method, "problem": problem, "learning_rate": learning_rate}
                if any(key.items() <= one.items() for one in tries):
                    continue
                with tempfile.TemporaryDirectory() as folder:
                    path = Path(folder) / "samples.npz"
                    equations.save_samples(path, problem, 0.0, points=setting.points, seed=SEED)
                    config = equations.make_config(path, problem, method, epochs=setting.epochs, seed=SEED)
                    config = replace(config, optimizer=replace(config.optimizer, learning_rate=learning_rate))
                    error = train.train_or_load(config, Path(folder) / "run").summary()["validation_error_percent"]
                tries.append(key | {"validation_error_percent": error})
                print(tries[-1], flush=True)
                RESULT.write_text(json.dumps(_summary(tries), indent=2) + "\n")


def _summary(tries: list[dict[str, Any]]) -> dict[str, Any]:
    """All tries, and for every method the learning rate with the least geometric mean of the validation errors."""
    chosen = {}
    for method in dict.fromkeys(one["method"] for one in tries):
        errors: dict[float, list[float]] = {}
        for one in tries:
            if one["method"] == method:
                errors.setdefault(one["learning_rate"], []).append(one["validation_error_percent"])
        chosen[method] = min(errors, key=lambda rate: statistics.geometric_mean(errors[rate]))
    return {"seed": SEED, "chosen_learning_rates": chosen, "tries": tries}


if __name__ == "__main__":
    main()
