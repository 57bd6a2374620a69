"""How long known PDEs take at many points, float64: `python -m benchmarks.pde_points [POINTS] [PROBLEM …]`.

Prints one JSON line: for each problem the seconds of a call after compilation, of the first call with compilation, and
the largest error against the closed form; the peak memory of the process; and the seconds of the entropy solution of
problems with a shock. For all problems it is also written to docs/results/pde-points.json.
"""

import json
import resource
import sys
import time
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

from charax.pde import PROBLEMS, solve

OUTPUT = Path(__file__).parents[1] / "docs" / "results" / "pde-points.json"

UNTIL = {
    "burgers-ramp": 0.9,
    "burgers-sine": 0.9,
    "burgers-gaussian": 1.4,
    "burgers-wave": 0.9,
    "burgers-tracer": 1.4,
    "traffic": 1.2,
}


def measure(name: str, points: int) -> dict[str, float | str]:
    """One row: a problem at random points before its first crossing."""
    problem = PROBLEMS[name]()
    random = np.random.default_rng(0)
    x = jnp.asarray(random.uniform(-2, 2, (points, problem.dim)))
    t = jnp.asarray(random.uniform(0, UNTIL.get(name, 1.0), points))

    def clock() -> tuple[float, jax.Array]:
        start = time.perf_counter()
        u = jax.block_until_ready(solve(problem, x, t))
        return time.perf_counter() - start, u

    first, u = clock()
    seconds = min(clock()[0] for _ in range(3))
    error = float(jnp.abs(u - problem.exact(x, t)).max())
    return {"problem": name, "seconds": seconds, "seconds_first": first, "error": error}


ENTROPY = {"burgers-sine": 3.0, "burgers-gaussian": 5.0, "traffic": 4.0}
"""Problems with a shock, and the last time: about three times that of the shock."""


def measure_entropy(name: str, points: int) -> dict[str, float | str]:
    """One row: the entropy solution at random points before and after the shock."""
    problem = PROBLEMS[name]()
    random = np.random.default_rng(0)
    x = jnp.asarray(random.uniform(-2, 2, (points, 1)))
    t = jnp.asarray(random.uniform(0, ENTROPY[name], points))

    def clock() -> tuple[float, float]:
        start, used = time.perf_counter(), time.process_time()
        jax.block_until_ready(solve(problem, x, t, after_shock="entropy"))
        return time.perf_counter() - start, time.process_time() - used

    first, first_cpu = clock()
    calls = [clock() for _ in range(3)]
    return {
        "problem": name,
        "seconds": min(seconds for seconds, _ in calls),
        "cpu_seconds": min(cpu for _, cpu in calls),
        "seconds_first": first,
        "cpu_seconds_first": first_cpu,
    }


def main() -> None:
    jax.config.update("jax_enable_x64", True)
    points = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    rows = [measure(name, points) for name in sys.argv[2:] or PROBLEMS]
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    entropy = [measure_entropy(name, points) for name in ENTROPY if not sys.argv[2:] or name in sys.argv[2:]]
    answer = {"points": points, "peak_megabytes": round(peak), "rows": rows, "entropy_rows": entropy}
    print(json.dumps(answer))
    if len(sys.argv) <= 2:
        OUTPUT.write_text(json.dumps(answer, indent=2) + "\n")


if __name__ == "__main__":
    main()
