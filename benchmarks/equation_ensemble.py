"""Members of an ensemble of equations, one after another or at once: `python -m benchmarks.equation_ensemble`.

Eight members are fitted to 800 samples by the same number of Levenberg–Marquardt steps, in turn or with
`minimize_all`. Both ways use the one program of blocks of samples, which a fit compiles before it draws an ensemble.
CPU seconds, interleaved, the median of `REPEATS`. Writes docs/results/equations/ensemble.json.
"""

import json
import time
from pathlib import Path
from statistics import median
from typing import Any

import jax
import numpy as np

from charax.data import SolutionSamples
from charax.models import DEFAULT_EQUATION_SOLVER, EquationRegressor, Scaling, default_terms
from charax.paper import equations
from charax.tasks.pde._formula_slots import activate_networks
from charax.tasks.pde._least_squares import Fit, minimize, minimize_all, single_threaded_blas
from charax.tasks.pde._members import ravel

OUTPUT = Path(__file__).parents[1] / "docs" / "results" / "equations" / "ensemble.json"
MEMBERS, SAMPLES, STEPS, REPEATS = 8, 800, 3, 7


def main() -> None:
    x, t, u = equations.sample_equation("growth", SAMPLES, seed=[0], between=(0, 1)).values()
    samples = SolutionSamples(*(part.astype(np.float32) for part in (x[:, None], t, u[:, None])))
    terms: Any = {"velocity_terms": default_terms(("u",)), "source_terms": default_terms(("u",))}
    build = lambda key: EquationRegressor.build(Scaling.fit(*samples), width=16, **terms, key=key)
    members = [build(jax.random.key(seed)) for seed in range(MEMBERS)]
    problems = [(Fit(member, activate_networks(member), 0.01), samples) for member in members]
    exactly: Any = {"steps": STEPS, "least_gain": 0.0}
    ways = {
        "in turn": lambda: [minimize(*problem, DEFAULT_EQUATION_SOLVER, **exactly) for problem in problems],
        "at once": lambda: minimize_all(problems, DEFAULT_EQUATION_SOLVER, **exactly),
    }
    seconds: dict[str, list[float]] = {name: [] for name in ways}
    found: dict[str, list[Fit]] = {}
    with single_threaded_blas():
        for _ in range(REPEATS + 1):
            for name, way in ways.items():
                started = time.process_time()
                found[name] = way()
                seconds[name].append(time.process_time() - started)
    differ = [np.abs(ravel(a.model) - ravel(b.model)).max() for a, b in zip(*found.values(), strict=True)]
    answer = {
        "members": MEMBERS,
        "samples": SAMPLES,
        "steps": STEPS,
        "first_cpu_seconds_with_compilation": round(seconds["in turn"][0], 2),
        "cpu_seconds": {name: round(median(times[1:]), 4) for name, times in seconds.items()},
        "largest_difference_of_a_weight": float(max(differ)),
    }
    print(json.dumps(answer))
    OUTPUT.write_text(json.dumps(answer, indent=2) + "\n")


if __name__ == "__main__":
    main()
