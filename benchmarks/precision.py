"""What bfloat16 costs a trained classifier: the same weights, evaluated in both precisions on the test split.

python -m benchmarks.precision runs/classify-digits-c-node
"""

import argparse
import dataclasses
import json
from pathlib import Path
from typing import Any

import numpy as np

from charax import train


def measure(folder: Path) -> dict[str, Any]:
    """Accuracies, and how far the probabilities are apart."""
    run = train.load_run(folder)
    task: Any = run.trained.task
    inputs, targets = run.splits.test
    low = dataclasses.replace(task, solver=dataclasses.replace(task.solver, precision="bfloat16"))
    full, rounded = (one.standardized_probabilities(run.trained.model, inputs) for one in (task, low))
    change = np.abs(full - rounded).max(axis=1)
    return {
        "run": str(folder),
        "samples": len(targets),
        "accuracy_float32": float((full.argmax(1) == targets).mean()),
        "accuracy_bfloat16": float((rounded.argmax(1) == targets).mean()),
        "same_class": float((full.argmax(1) == rounded.argmax(1)).mean()),
        "probability_change_mean": float(change.mean()),
        "probability_change_max": float(change.max()),
    }


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", type=Path, nargs="+")
    print(json.dumps({"rows": [measure(run) for run in parser.parse_args().runs]}, indent=2))
