"""Latency of a trained model: exported as a program, loaded by charax, and as the command `charax predict`.

    python -m benchmarks.export_latency runs/classify-digits-c-node --rows 1 64

The first call, which compiles, is left out, except for the command, which is a process of its own.
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.export
import numpy as np

from charax import train


def milliseconds(call: Callable[[], Any], *, repeats: int = 30) -> float:
    """The median time of a call, after a first one."""
    jax.block_until_ready(call())
    times = []
    for _ in range(repeats):
        began = time.perf_counter()
        jax.block_until_ready(call())
        times.append(time.perf_counter() - began)
    return 1000 * statistics.median(times)


def measure(run: Path, rows: int) -> dict[str, Any]:
    """Latencies for a batch of this many rows of noise."""
    trained = train.load_model(run)
    programs: dict[str, train.Program] = trained.task.programs(trained.model)
    name, program = next(iter(programs.items()))
    shapes = [(rows, *(8 if isinstance(size, str) else size for size in shape)) for shape in program.inputs.values()]
    inputs = [np.random.default_rng(0).uniform(0.1, 0.9, shape).astype(np.float32) for shape in shapes]
    with tempfile.TemporaryDirectory() as folder:
        began = time.perf_counter()
        path, *_ = train.export_programs(trained, folder, platforms=("cpu",))
        export_seconds = time.perf_counter() - began
        compiled = jax.jit(program.function)
        exported = jax.jit(jax.export.deserialize(bytearray(path.read_bytes())).call)
        answer = {
            "run": str(run),
            "program": name,
            "rows": rows,
            "export_seconds": export_seconds,
            "exported_ms": milliseconds(lambda: exported(*inputs)),
            "compiled_ms": milliseconds(lambda: compiled(*inputs)),
        }
        if len(inputs) == 1 and trained.task.__class__.__name__ == "ClassificationTask":
            np.savez(Path(folder) / "x.npz", x=inputs[0])
            command = [sys.executable, "-m", "charax", "predict", str(run), f"{folder}/x.npz", "--force"]
            began = time.perf_counter()
            subprocess.run([*command, "--output", f"{folder}/p.csv", "--json"], check=True, capture_output=True)
            answer["predict_command_ms"] = 1000 * (time.perf_counter() - began)
    return answer


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path)
    parser.add_argument("--rows", type=int, nargs="+", default=[1, 64])
    chosen = parser.parse_args()
    print(json.dumps({"rows": [measure(chosen.run, rows) for rows in chosen.rows]}, indent=2))
