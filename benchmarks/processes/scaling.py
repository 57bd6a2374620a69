"""What a second process gains: measured here, and computed for many devices."""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.processes.runs import LONGEST, train

STEPS = {
    "dense": "classify --preset dense --width 64 --data digits --batch-size 512 --epochs 10",
    "images": "classify --preset small --data digits --batch-size 256 --epochs 4",
}
"""Runs whose step is timed."""


def time_steps(home: Path, done: int = 0, repeats: int = 3) -> Iterator[dict[str, Any]]:
    """Seconds of an epoch after the first, with one process on one core, one on all, and two with one core each."""
    cores = sorted(os.sched_getaffinity(0))
    for name, flags in list(STEPS.items())[done:]:
        seconds: dict[str, list[float]] = {"one process, one core": [], "one process, two cores": [], "two": []}
        for repeat in range(repeats):  # interleaved, for a machine that is not quiet
            for kind in seconds:
                folder = home / f"{name}-{kind[-8:].strip()}-{repeat}"
                os.sched_setaffinity(0, cores[:1] if kind == "one process, one core" else cores)
                train(flags, folder, processes=2 if kind == "two" else 1)
                os.sched_setaffinity(0, cores)
                rows = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
                seconds[kind].append((rows[-2]["seconds"] - rows[0]["seconds"]) / (len(rows) - 2))
        best = {kind: min(values) for kind, values in seconds.items()}
        yield {
            "run": name,
            "flags": flags,
            "seconds_per_epoch": seconds,
            "speedup_over_one_core": best["one process, one core"] / best["two"],
            "speedup_over_one_process": best["one process, two cores"] / best["two"],
        }


def all_reduce(rank: int, port: int) -> dict[str, float]:
    """Seconds of an all-reduce between two processes, by its bytes; called in each of them."""
    import jax
    import numpy as np

    from charax.train import Devices, ProcessesConfig, join
    from charax.train._processes import compile_together

    found = {}
    with join(ProcessesConfig(f"127.0.0.1:{port}", 2, rank)):
        devices = Devices()
        for length in (1, 1 << 18, 1 << 20, 1 << 22):
            rows = devices.take(np.ones((2, length), np.float32), np.arange(2))
            total = compile_together(jax.jit(lambda rows: rows.sum(axis=0), out_shardings=devices.replicated))
            jax.block_until_ready(total(rows))
            times = []
            for _ in range(20):
                began = time.perf_counter()
                jax.block_until_ready(total(rows))
                times.append(time.perf_counter() - began)
            found[str(4 * length)] = min(times)
    return found


def image_step(batch: int = 4, size: int = 224, repeats: int = 3) -> dict[str, float]:
    """CPU seconds of a training step on images of 224x224, and its parameters, on one core."""
    import jax
    import numpy as np

    from charax.tasks.classification import ClassificationConfig
    from charax.train import LoopConfig, OptimizerConfig
    from charax.train._step import initial_state, make_epoch, make_optimizer

    with tempfile.TemporaryDirectory() as place:
        generator = np.random.default_rng(0)
        images = generator.integers(0, 256, (60, size, size, 3), dtype=np.uint8)
        np.savez(Path(place) / "images.npz", x=images, y=np.arange(60) % 2)
        config = ClassificationConfig(data=f"{place}/images.npz", preset="small", loop=LoopConfig(batch_size=batch))
        data = config.load_data()
    task, optimizer = config.build_task(data.spec), OptimizerConfig()
    transform = make_optimizer(optimizer, epochs=1, steps_per_epoch=10)
    samples = jax.tree.map(lambda leaf: leaf[:batch], data.splits.train)
    state, unflatten = initial_state(task, samples, transform, seed=0, ema=None)
    step = jax.jit(make_epoch(task, unflatten, transform, None))
    compiled = step.lower(state, samples, None).compile()
    memory: Any = compiled.memory_analysis()
    state, _ = jax.block_until_ready(compiled(state, samples, None))
    times = []
    for _ in range(repeats):
        began = time.process_time()
        state, _ = jax.block_until_ready(compiled(state, samples, None))
        times.append(time.process_time() - began)
    return {
        "size": size,
        "batch": batch,
        "parameters": state.params.size,
        "seconds_per_image": min(times) / batch,
        "bytes_per_image": memory.temp_size_in_bytes / batch,
    }


def do_arithmetic() -> dict[str, Any]:
    """Measure a step and an all-reduce, and compute from them what many devices would give."""
    from charax.train._launch import _free_port

    port = _free_port()
    command = [sys.executable, "-m", "benchmarks.processes", "rank"]
    ranks = [
        subprocess.Popen([*command, "--number", str(rank), "--port", str(port)], stdout=subprocess.PIPE, text=True)
        for rank in range(2)
    ]
    answers = [json.loads(rank.communicate(timeout=LONGEST)[0].splitlines()[-1]) for rank in ranks]
    reduced = answers[0]
    step = image_step()
    largest = max(map(int, reduced))
    return {"all_reduce_seconds": reduced, "step": step, "rows": paper_devices(step, reduced, largest)}


def paper_devices(step: dict[str, float], reduced: dict[str, float], largest: int) -> list[dict[str, float]]:
    """A ring all-reduce of n devices sends 2 (n - 1) / n times the gradient, in 2 (n - 1) messages."""
    latency = reduced["4"] / 2
    bandwidth = largest / max(reduced[str(largest)] - reduced["4"], 1e-9)
    gradient, rows = 4 * step["parameters"], []
    for count in (1, 8, 64):
        compute = 1024 / count * step["seconds_per_image"]
        exchange = 0.0 if count == 1 else 2 * (count - 1) * (latency + gradient / count / bandwidth)
        rows.append(
            {
                "devices": count,
                "images_per_device": 1024 // count,
                "bytes_per_device": 1024 / count * step["bytes_per_image"],
                "compute_seconds": compute,
                "all_reduce_seconds": exchange,
                "efficiency": compute / (compute + exchange),
            }
        )
    return rows
