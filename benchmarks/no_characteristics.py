"""`python -m benchmarks.no_characteristics`: what a learned equation looks like where there are no characteristics.

1,000 clean samples of the heat equation (two modes; a single one also solves uₜ = -u) and of the Korteweg-de Vries
equation (two solitons; a single one also solves a transport equation). The structured form and a network of x and t
learn the same samples: where the network's error inside the data is several times lower, the data follow no equation
uₜ + a(u)uₓ = c(u). Writes docs/results/equations/no-characteristics.json.
"""

import json
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from charax import train
from charax.models import PDEMethod
from charax.paper import equations

RESULT = Path(__file__).parents[1] / "docs" / "results" / "equations" / "no-characteristics.json"


def heat(x: np.ndarray, t: np.ndarray) -> np.ndarray:
    """uₜ = uₓₓ"""
    return np.exp(-t) * np.sin(x) + 0.5 * np.exp(-4 * t) * np.sin(2 * x + 1)


def korteweg_de_vries(x: np.ndarray, t: np.ndarray) -> np.ndarray:
    """uₜ + 6uuₓ + uₓₓₓ = 0: two solitons that meet."""
    k, m = 1.0, 1.5
    coupling = ((k - m) / (k + m)) ** 2
    one, two = np.exp(k * (x + 3) - k**3 * t), np.exp(m * (x + 6) - m**3 * t)
    both = coupling * one * two
    tau, first = 1 + one + two + both, k * one + m * two + (k + m) * both
    second = k**2 * one + m**2 * two + (k + m) ** 2 * both
    return 2 * (second * tau - first**2) / tau**2


CASES: dict[str, tuple[Callable[[np.ndarray, np.ndarray], np.ndarray], tuple[float, float], float]] = {
    "heat": (heat, (0.0, 2 * np.pi), 0.8),
    "kdv": (korteweg_de_vries, (-10.0, 8.0), 4.0),
}
METHODS: tuple[PDEMethod, ...] = ("equation", "mlp")


def main() -> None:
    """Learn both equations with both methods."""
    rows = [learn(name, method) for name in CASES for method in METHODS]
    RESULT.parent.mkdir(parents=True, exist_ok=True)
    RESULT.write_text(json.dumps({"rows": rows}, indent=2) + "\n")
    print(json.dumps(rows, indent=2))


def learn(name: str, method: PDEMethod) -> dict[str, Any]:
    """One row, seed 0."""
    solution, space, end = CASES[name]
    random, started = np.random.default_rng(0), time.process_time()
    x, t = random.uniform(*space, 1000), random.uniform(0, end, 1000)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "samples.npz"
        np.savez(path, allow_pickle=False, x=x, t=t, u=solution(x, t))
        epochs = equations.EQUATION_EPOCHS if method == "equation" else equations.SETTINGS["cpu"].epochs
        config = equations.make_config(path, "burgers", method, epochs=epochs, seed=0)
        summary = train.train_or_load(config, Path(folder) / "run").summary()
    return {
        "problem": name,
        "method": method,
        "error_percent": summary["error_percent"],
        "equation": summary.get("equation"),
        "cpu_seconds": time.process_time() - started,
    }


if __name__ == "__main__":
    main()
