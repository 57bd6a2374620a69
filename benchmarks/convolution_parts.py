"""`python -m benchmarks.convolution_parts`: how close the parts of small convolutions are to the peak of one core.

Writes docs/results/convolution-parts.json: GFLOP/s of the forward pass and of the weight gradient of the convolutions
of row 9, with the half of a mini-batch that one of two cores gets, and of a large matrix product. Seconds are CPU time
of one core, so that a busy machine changes little.
"""

import json
import os
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

RESULT = Path(__file__).parents[1] / "docs" / "results" / "convolution-parts.json"
REPETITIONS, INNER = 30, 4


def use_one_core() -> None:
    """Keep this process on one core, with one thread. Before JAX is imported."""
    os.environ["NPROC"] = "1"
    os.sched_setaffinity(0, [min(os.sched_getaffinity(0))])


def cpu_seconds(call: Callable[[], Any]) -> float:
    """The median CPU time of a call, after one that does not count."""
    import jax

    seconds = []
    for _ in range(1 + REPETITIONS):
        start = time.process_time()
        for _ in range(INNER):
            jax.block_until_ready(call())
        seconds.append((time.process_time() - start) / INNER)
    return statistics.median(seconds[1:])


def measure() -> dict[str, Any]:
    """GFLOP/s of everything."""
    import jax
    import jax.numpy as jnp

    from benchmarks.small_images import CONVOLUTIONS
    from charax.nn import convolve

    side = 2_048
    matrix, multiply = jax.random.normal(jax.random.key(0), (side, side)), jax.jit(jnp.matmul)
    forward, rows = jax.jit(convolve), []
    transpose = lambda image, kernel, out: jax.linear_transpose(lambda k: convolve(image, k), kernel)(out)
    gradient = jax.jit(transpose)
    for case in CONVOLUTIONS:
        half = case._replace(batch=case.batch // 2)
        image, kernel = (jnp.asarray(array) for array in half.arrays().values())
        cotangent = forward(image, kernel)
        gigaflop = 2 * (image.size / half.channels_in) * kernel.size / 1e9
        passes = {
            "forward": lambda image=image, kernel=kernel: forward(image, kernel),
            "weight_gradient": lambda image=image, kernel=kernel, out=cotangent: gradient(image, kernel, out),
        }
        speeds = {name: gigaflop / cpu_seconds(call) for name, call in passes.items()}
        rows.append({**half._asdict(), **speeds})
        print(rows[-1], flush=True)
    return {"rows": rows, "matrix_product": 2 * side**3 / 1e9 / cpu_seconds(lambda: multiply(matrix, matrix))}


def main() -> None:
    """Measure and write."""
    use_one_core()
    from charax.train import tune_process

    tune_process()
    answer = {"unit": "GFLOP/s of one core", **measure()}
    RESULT.write_text(json.dumps(answer, indent=2) + "\n")
    print(answer["matrix_product"])


if __name__ == "__main__":
    main()
