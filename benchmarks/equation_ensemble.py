"""Members of an ensemble of equations, one after another or vmapped: `python -m benchmarks.equation_ensemble`.

A member is fitted by Levenberg–Marquardt steps, each with a Jacobian of all residuals, the normal equations and an
evaluation. Both ways do the same work for eight members and 800 samples: a step of each in turn with the programs that
the fit before has compiled, or of all at once with programs of their own. CPU seconds, interleaved, the median of
`REPEATS`. Writes docs/results/equations/ensemble.json.
"""

import inspect
import json
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from charax.models import DEFAULT_EQUATION_SOLVER, EquationRegressor, Scaling, default_terms
from charax.paper import equations
from charax.tasks.pde._apply import apply_model, compile_solves, model_at
from charax.tasks.pde._least_squares import _linearize, single_threaded_blas

OUTPUT = Path(__file__).parents[1] / "docs" / "results" / "equations" / "ensemble.json"
MEMBERS, BATCH, BATCHES, REPEATS = 8, 256, 3, 9


def main() -> None:
    data = equations.sample_equation("growth", BATCH * BATCHES, seed=[0], between=(0, 1))
    x, t, u = (jnp.asarray(part, jnp.float32) for part in data.values())
    terms: Any = {"velocity_terms": default_terms(("u",)), "source_terms": default_terms(("u",))}
    build = lambda key: EquationRegressor.build(Scaling.identity(1, 1), width=16, **terms, key=key)
    members = [build(jax.random.key(seed)) for seed in range(MEMBERS)]
    stacked = jax.tree.map(lambda *leaves: jnp.stack(leaves), *members)
    batches = [slice(i * BATCH, (i + 1) * BATCH) for i in range(BATCHES)]
    rows = [(x[part, None], t[part], u[part, None]) for part in batches]
    points = [jnp.stack([x[part], t[part]], axis=1) for part in batches]
    over = eqx.if_array(0)
    jacobians = compile_solves(eqx.filter_vmap(inspect.unwrap(_linearize), in_axes=(over, None, None)))
    values = compile_solves(eqx.filter_vmap(model_at, in_axes=(over, None, None)))
    solver = DEFAULT_EQUATION_SOLVER

    def step(linearize: Callable[..., Any], evaluate: Callable[..., Any], model: EquationRegressor) -> None:
        parts = [linearize(model, part, solver) for part in rows]
        J, r = (np.concatenate([np.asarray(part[i], float) for part in parts], axis=-2 - (i == 0)) for i in (0, 1))
        J, r = J[..., 0, :], r[..., 0]
        hessian = np.swapaxes(J, -1, -2) @ J + 1e-2 * np.eye(J.shape[-1])
        np.linalg.solve(hessian, np.swapaxes(J, -1, -2) @ r[..., None])
        jax.block_until_ready([evaluate(model, part, solver) for part in points])

    ways = {
        "in turn": lambda: [step(_linearize, apply_model, member) for member in members],
        "vmapped": lambda: step(jacobians, values, stacked),
    }
    seconds: dict[str, list[float]] = {name: [] for name in ways}
    with single_threaded_blas():
        for _ in range(REPEATS + 1):
            for name, way in ways.items():
                started = time.process_time()
                way()
                seconds[name].append(time.process_time() - started)
    answer = {
        name: {"first_cpu_seconds": round(times[0], 2), "later_cpu_seconds": round(median(times[1:]), 4)}
        for name, times in seconds.items()
    }
    print(json.dumps(answer))
    OUTPUT.write_text(json.dumps({"members": MEMBERS, "samples": BATCH * BATCHES, **answer}, indent=2) + "\n")


if __name__ == "__main__":
    main()
