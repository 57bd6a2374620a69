"""Latency of a trained model: exported as a program, loaded by charax, and as the command `charax predict`.

    charax train classify --epochs 1 && charax train density --epochs 1
    python -m benchmarks.export_latency runs/* --output docs/results/latency

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
    spec: Any = trained.task.spec  # pyright: ignore[reportAttributeAccessIssue]
    brightest = spec.standardizer.max_value or 1.0
    inputs = [brightest * np.random.default_rng(0).uniform(0.1, 0.9, shape).astype(np.float32) for shape in shapes]
    with tempfile.TemporaryDirectory() as folder:
        began = time.perf_counter()
        path, *_ = train.export_programs(trained, folder, platforms=("cpu",))
        export_seconds = time.perf_counter() - began
        compiled = jax.jit(program.function)
        exported = jax.jit(jax.export.deserialize(bytearray(path.read_bytes())).call)
        answer = {
            "run": run.name,
            "program": name,
            "rows": rows,
            "export_seconds": export_seconds,
            "exported_ms": milliseconds(lambda: exported(*inputs)),
            "compiled_ms": milliseconds(lambda: compiled(*inputs)),
        }
        if len(inputs) == 1:
            np.savez(Path(folder) / "x.npz", x=inputs[0])
            command = [sys.executable, "-m", "charax", "predict", str(run), f"{folder}/x.npz", "--force"]
            times = []
            for _ in range(4):  # the first one may compile
                began = time.perf_counter()
                subprocess.run([*command, "--output", f"{folder}/p.csv", "--json"], check=True, capture_output=True)
                times.append(time.perf_counter() - began)
            answer["predict_command_ms"] = 1000 * statistics.median(times[1:])
    return answer


def write(output: Path, rows: list[dict[str, Any]]) -> None:
    """Write the numbers and a page."""
    output.mkdir(parents=True, exist_ok=True)
    (output / "latency.json").write_text(json.dumps({"rows": rows}, indent=1) + "\n")
    ratios = [row["exported_ms"] / row["compiled_ms"] for row in rows]
    lines = [
        "# Latency of exported programs",
        "",
        "**An exported program takes "
        f"{min(ratios):.1f} to {max(ratios):.1f} times as long as the compiled model in charax.**",
        "",
        "Written by `python -m benchmarks.export_latency`. Milliseconds for a batch, the median of 30 calls after a",
        "first one; the command is a process of its own, with a warm compilation cache, and so mostly imports.",
        "",
        "| run | program | rows | exported | model in charax, compiled | `charax predict` | to export |",
        "|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        command = f"{row['predict_command_ms']:,.0f}" if "predict_command_ms" in row else ""
        lines.append(
            f"| {row['run']} | `{row['program']}` | {row['rows']} | {row['exported_ms']:.3g} "
            f"| {row['compiled_ms']:.3g} | {command} | {row['export_seconds']:.2g} s |"
        )
    lines += ["", "Raw numbers: [latency.json](latency.json).", ""]
    (output / "README.md").write_text("\n".join(lines))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", type=Path, nargs="+")
    parser.add_argument("--rows", type=int, nargs="+", default=[1, 64])
    parser.add_argument("--output", type=Path, help="folder of the numbers and of a page")
    chosen = parser.parse_args()
    found = [measure(run, rows) for run in chosen.runs for rows in chosen.rows]
    print(json.dumps({"rows": found}, indent=2))
    if chosen.output is not None:
        write(chosen.output, found)
