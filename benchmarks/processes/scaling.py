"""What a second process gains: measured here, and computed for many devices."""

import json
import math
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

from benchmarks.processes.runs import LONGEST
from charax.train._launch import _free_port

STEPS = {
    "dense": {"preset": "dense", "width": 64, "batch_size": 512},
    "images": {"preset": "small", "width": None, "batch_size": 256},
}
"""Classifiers of digits whose step is timed."""
KINDS = {
    "one process, one core": (1, ["0"]),
    "one process, two cores": (1, ["0,1"]),
    "two processes, a core each": (2, ["0", "1"]),
    "two processes, two cores": (2, ["0,1", "0,1"]),
}
"""The number of processes, and the cores of each."""
LAUNCHED = "two processes, a core each"
"""What `charax launch -n 2` does on two cores."""
_WARM, _TIMED = 5, 20
"""Steps that are made, and then timed."""


def measure_step(name: str, processes: int, rank: int, port: int) -> dict[str, float]:
    """Seconds of a step of training, with its reading, and of its all-reduces; called in each of the processes."""
    import jax
    import numpy as np

    from charax.tasks.classification import ClassificationConfig
    from charax.train import LoopConfig, OptimizerConfig, ProcessesConfig, Silent, join, tune_process
    from charax.train._loop import _Training
    from charax.train._processes import _Together

    tune_process()  # as the command does
    options = STEPS[name]
    loop = LoopConfig(epochs=1, batch_size=options["batch_size"])
    alone = processes == 1
    with join(ProcessesConfig() if alone else ProcessesConfig(f"127.0.0.1:{port}", processes, rank)):
        config = ClassificationConfig(preset=options["preset"], width=options["width"], loop=loop)
        data = config.load_data()
        training = _Training(config.build_task(data.spec), data.splits, loop, OptimizerConfig(), None, Silent())
        order = np.random.default_rng(0).integers(0, training.samples, (_WARM + _TIMED, training.batch_size))
        training.feed.start_epoch(training.splits.train, order, first=0)
        for number in range(_WARM):
            jax.block_until_ready(training._take_step(number))
        began, cpu_began = time.perf_counter(), time.process_time()
        for number in range(_WARM, _WARM + _TIMED):
            jax.block_until_ready(training._take_step(number))
        seconds, cpu_seconds = time.perf_counter() - began, time.process_time() - cpu_began
        found = {"seconds": seconds / _TIMED, "cpu_seconds": cpu_seconds / _TIMED}
        if not alone:
            compiled: Any = cast(_Together, training.epoch)._compiled
            sizes = reduced_sizes(compiled.as_text())
            found |= {"arrays": len(sizes), "numbers": sum(sizes), "exchange_seconds": time_exchange(sizes)}
        return found


def reduced_sizes(program: str) -> list[int]:
    """The numbers of every array that a compiled program reduces over the processes."""
    results = re.findall(r"= (\(.*?\)|\S+) all-reduce\(", program)
    shapes = [shape for result in results for shape in re.findall(r"\[([\d,]*)\]", result)]
    return [math.prod(map(int, filter(None, shape.split(",")))) for shape in shapes]


def time_exchange(sizes: list[int]) -> float:
    """Seconds of all-reduces of such arrays and of nothing else, in these processes on these cores."""
    import jax
    import numpy as np

    from charax.train import Devices
    from charax.train._processes import compile_together

    devices = Devices()
    arrays = [devices.take(np.ones((devices.count, size), np.float32), np.arange(devices.count)) for size in sizes]
    total = compile_together(jax.jit(lambda arrays: [array.sum(axis=0) for array in arrays]))
    for _ in range(_WARM):
        jax.block_until_ready(total(arrays))
    began = time.perf_counter()
    for _ in range(_TIMED):
        jax.block_until_ready(total(arrays))
    return (time.perf_counter() - began) / _TIMED


def time_kind(name: str, processes: int, cores: list[str]) -> dict[str, float]:
    """A step in as many processes, each on its cores: what the slowest of them found."""
    port, command = _free_port(), [sys.executable, "-m", "benchmarks.processes", "step", "--run", name]
    ranks = []
    for rank in range(processes):
        flags = ["--processes", str(processes), "--number", str(rank), "--port", str(port)]
        pinned = ["taskset", "-c", cores[rank]]
        ranks.append(subprocess.Popen([*pinned, *command, *flags], stdout=subprocess.PIPE, text=True))
    found = [json.loads(rank.communicate(timeout=LONGEST)[0].splitlines()[-1]) for rank in ranks]
    return max(found, key=lambda measured: measured["seconds"])


def time_steps(done: int = 0, repeats: int = 3) -> Iterator[dict[str, Any]]:
    """Seconds of a step with one process on one core, one on two, and two processes."""
    for name in list(STEPS)[done:]:
        measured: dict[str, list[dict[str, float]]] = {kind: [] for kind in KINDS}
        for _ in range(repeats):  # interleaved, for a machine that is not quiet
            for kind, (processes, cores) in KINDS.items():
                measured[kind].append(time_kind(name, processes, cores))
        best = {kind: min(each["seconds"] for each in values) for kind, values in measured.items()}
        yield {
            "run": name,
            "options": STEPS[name],
            "measured": measured,
            "speedup_over_one_core": best["one process, one core"] / best[LAUNCHED],
            "speedup_over_one_process": best["one process, two cores"] / best[LAUNCHED],
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
