"""One training over many processes: equal metrics, kills that cost nothing, and what a second process gains.

    python -m benchmarks.processes equality --output docs/results/processes
    python -m benchmarks.processes resume --output docs/results/processes
    python -m benchmarks.processes kills --number 20 --output docs/results/processes
    python -m benchmarks.processes scaling --output docs/results/processes
    python -m benchmarks.processes arithmetic --output docs/results/processes

Each part writes one JSON file, and README.md from all of them that are there. An interrupted part continues after the
rows that it has written.
"""

import argparse
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

SHORT = "--epochs 2 --batch-size 64"
TASKS = {
    "classification": f"classify --preset dense --width 8 --max-samples 500 {SHORT}",
    "density": "density --width 16 --steps 2 --epochs 1 --batch-size 2048",
    "pde": "pde --epochs 2",
    "series": f"series --width 8 --state-dim 8 {SHORT}",
}
"""Small runs of every kind."""
COUNTS = {"classification": (2, 4), "density": (2,), "pde": (2,), "series": (2,)}
KILLED = "classify --preset dense --width 8 --max-samples 200 --epochs 4 --batch-size 32 --checkpoint-steps 3"
STEPS = {
    "dense": "classify --preset dense --width 64 --data digits --batch-size 512 --epochs 10",
    "images": "classify --preset small --data digits --batch-size 256 --epochs 4",
}
"""Runs whose step is timed."""
_LONGEST = 1800.0


def charax(*arguments: object, devices: int = 1) -> subprocess.Popen[str]:
    """Start a command of `charax`, in a process with as many devices."""
    flags = f"{os.environ.get('XLA_FLAGS', '')} --xla_force_host_platform_device_count={devices}".strip()
    environment = {**os.environ, "XLA_FLAGS": flags} if devices > 1 else dict(os.environ)
    return subprocess.Popen(
        [sys.executable, "-m", "charax", *map(str, arguments)],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def train(flags: str, folder: Path, *, processes: int = 1, devices: int = 1) -> list[dict[str, Any]]:
    """Train in several processes, or in one with several devices; returns the metrics."""
    launch = ("launch", "-n", processes, "--") if processes > 1 else ()
    return finish(
        charax(*launch, "train", *flags.split(), "--output", folder.parent, "--name", folder.name, devices=devices),
        folder,
    )


def resume(folder: Path, *, processes: int = 1) -> list[dict[str, Any]]:
    """Resume a run in as many processes; returns the metrics."""
    return finish(charax(*(("launch", "-n", processes, "--") if processes > 1 else ()), "resume", folder), folder)


def finish(process: subprocess.Popen[str], folder: Path) -> list[dict[str, Any]]:
    """Wait for a run that must succeed; returns the metrics."""
    _, errors = process.communicate(timeout=_LONGEST)
    if process.returncode:
        raise RuntimeError(f"exit status {process.returncode}: {errors[-2_000:]}")
    return metrics_of(folder)


def metrics_of(folder: Path) -> list[dict[str, Any]]:
    """The metrics of a run without times."""
    rows = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    return [{name: value for name, value in row.items() if name != "seconds"} for row in rows]


def largest_difference(rows: Sequence[dict[str, Any]], others: Sequence[dict[str, Any]]) -> float:
    """The largest difference of two lists of metrics, relative to those above 1."""
    if [list(row) for row in rows] != [list(row) for row in others]:
        raise RuntimeError(f"the rows differ: {rows} {others}")
    pairs = [(row[name], other[name]) for row, other in zip(rows, others, strict=True) for name in row]
    numbers = [(one, two) for one, two in pairs if isinstance(one, int | float) and isinstance(two, int | float)]
    assert [one for one, _ in pairs if isinstance(one, str)] == [two for _, two in pairs if isinstance(two, str)]
    return max(abs(one - two) / max(1.0, abs(two)) for one, two in numbers)


def compare(tasks: Sequence[str], home: Path, done: int = 0) -> Iterator[dict[str, Any]]:
    """The differences between processes and devices."""
    pairs = [(task, count) for task in tasks for count in COUNTS[task]]
    for task, count in pairs[done:]:
        one = train(TASKS[task], home / f"{task}-{count}-one")
        many = train(TASKS[task], home / f"{task}-{count}-processes", processes=count)
        devices = train(TASKS[task], home / f"{task}-{count}-devices", devices=count)
        yield {
            "task": task,
            "flags": TASKS[task],
            "processes": count,
            "from_devices": largest_difference(many, devices),
            "from_one": largest_difference(many, one),
        }


def stop_in_training(process: subprocess.Popen[str], folder: Path) -> None:
    """Interrupt a run after its first checkpoint."""
    while not checkpoints_of(folder):
        if process.poll() is not None:
            raise RuntimeError(process.communicate()[1][-2_000:])
        time.sleep(0.05)
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=_LONGEST)
    if process.returncode != 128 + signal.SIGTERM:
        raise RuntimeError(f"exit status {process.returncode}")


def checkpoints_of(folder: Path) -> list[str]:
    """The complete checkpoints."""
    try:
        return [path.name for path in (folder / "checkpoints").iterdir() if path.name.isdecimal()]
    except OSError:
        return []


def resume_with_others(home: Path, done: int = 0) -> Iterator[dict[str, Any]]:
    """A run of 2 processes that is interrupted, and resumed with 1, 2 and 4 of them."""
    whole = train(KILLED, home / "whole", processes=2)
    begun = home / "begun"
    arguments = ("--output", home, "--name", begun.name)
    stop_in_training(charax("launch", "-n", 2, "--", "train", *KILLED.split(), *arguments), begun)
    saved = sorted(map(int, checkpoints_of(begun)))[-1]
    for count in (1, 2, 4)[done:]:
        folder = shutil.copytree(begun, home / f"resumed-{count}")
        difference = largest_difference(resume(folder, processes=count), whole)
        yield {"started": 2, "resumed": count, "saved_step": saved, "difference": difference}


def rank_of(launcher: int, rank: int) -> int | None:
    """The id of a process that a launcher has started."""
    for entry in Path("/proc").iterdir():
        try:
            if not entry.name.isdecimal() or f"PPid:\t{launcher}\n" not in (entry / "status").read_text():
                continue
            words = (entry / "cmdline").read_text().split("\0")
        except OSError:
            continue
        if "--process" in words and words[words.index("--process") + 1] == str(rank):
            return int(entry.name)
    return None


def kill_one(folder: Path, seconds: float, rank: int, whole: list[dict[str, Any]]) -> dict[str, Any] | None:
    """Kill one of two processes after some seconds; None if the run had ended before."""
    command = ("launch", "-n", 2, "--restarts", 1, "--", "train", *KILLED.split())
    process = charax(*command, "--output", folder.parent, "--name", folder.name)
    time.sleep(seconds)
    victim = rank_of(process.pid, rank)
    if victim is None:
        process.communicate(timeout=_LONGEST)
        return None
    found = sorted(map(int, checkpoints_of(folder)))
    os.kill(victim, signal.SIGKILL)
    _, errors = process.communicate(timeout=_LONGEST)
    if "starting again" not in errors:
        return None
    same = process.returncode == 0 and metrics_of(folder) == whole
    return {"seconds": seconds, "rank": rank, "last_checkpoint": found[-1] if found else None, "same": same}


def kill_many(number: int, home: Path, done: int = 0) -> Iterator[dict[str, Any]]:
    """Kill random ranks at random moments, and compare the resumed runs with one that nothing interrupted."""
    train(KILLED, home / "warm", processes=2)  # fills the cache of compiled programs, so that lives are alike
    began = time.monotonic()
    whole = train(KILLED, home / "whole", processes=2)
    life = time.monotonic() - began
    for kill in range(done, number):
        generator = random.Random(kill)
        while True:
            folder = home / f"run{kill}"
            row = kill_one(folder, generator.uniform(0.05, 1) * life, generator.randrange(2), whole)
            shutil.rmtree(folder, ignore_errors=True)
            if row is not None:
                yield row
                break
            life *= 0.9  # the run had ended before


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
    answers = [json.loads(rank.communicate(timeout=_LONGEST)[0].splitlines()[-1]) for rank in ranks]
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


def read(output: Path | None, part: str) -> Any:
    """What a part has written; None if it has not begun."""
    path = output / f"{part}.json" if output is not None else None
    return json.loads(path.read_text()) if path is not None and path.is_file() else None


def write(output: Path | None, part: str, content: Any) -> None:
    """Write a part, and the page of all parts."""
    if output is None:
        return
    output.mkdir(parents=True, exist_ok=True)
    (output / f"{part}.json").write_text(json.dumps(content, indent=1) + "\n")
    write_page(output)


def write_page(output: Path) -> None:
    """Write README.md from the parts that are there."""
    lines = ["# One training over many processes", "", "Written by `python -m benchmarks.processes`.", ""]
    if equality := read(output, "equality"):
        lines += ["## Equality", "", "Largest difference of all metrics of all epochs and of the test split.", ""]
        lines += ["| task | processes | from one process with as many devices | from one device |", "|---|---|---|---|"]
        lines += [
            f"| {row['task']} | {row['processes']} | {row['from_devices']:.1e} | {row['from_one']:.1e} |"
            for row in equality
        ]
        lines += ["", "Raw numbers: [equality.json](equality.json).", ""]
    if resumed := read(output, "resume"):
        lines += ["## Resumed with another number of processes", ""]
        lines += ["| started with | resumed with | difference from an uninterrupted run of 2 |", "|---|---|---|"]
        lines += [f"| {row['started']} | {row['resumed']} | {row['difference']:.1e} |" for row in resumed]
        lines += ["", "Raw numbers: [resume.json](resume.json).", ""]
    if kills := read(output, "kills"):
        same = sum(kill["same"] for kill in kills)
        before = sum(kill["last_checkpoint"] is None for kill in kills)
        lines += ["## Killed by SIGKILL", ""]
        lines += [f"`charax launch -n 2 --restarts 1 -- train {KILLED}`: a random process killed at a random moment."]
        lines += [f"{same} of {len(kills)} runs ended with exactly the metrics of a run that nothing interrupted;"]
        lines += [
            f"{before} of them were killed before their first checkpoint. Raw numbers: [kills.json](kills.json).",
            "",
        ]
    if scaling := read(output, "scaling"):
        lines += ["## From one process to two", "", "Two cores; the best of the epochs' means.", ""]
        lines += ["| run | over one process on one core | over one process on both cores |", "|---|---|---|"]
        lines += [
            f"| {row['run']} | {row['speedup_over_one_core']:.2f}x | {row['speedup_over_one_process']:.2f}x |"
            for row in scaling
        ]
        lines += ["", "Raw numbers: [scaling.json](scaling.json).", ""]
    if arithmetic := read(output, "arithmetic"):
        step = arithmetic["step"]
        lines += ["## Many devices, on paper", ""]
        lines += [f"Images of {step['size']:g}x{step['size']:g}, {step['parameters']:,} parameters (preset small),"]
        lines += [f"batch 1,024: {1e3 * step['seconds_per_image']:.1f} CPU milliseconds per image were measured on one"]
        lines += ["core, and all-reduces between two processes; 8 and 64 devices are computed from them (ring).", ""]
        lines += [
            "| devices | images each | memory each | step | all-reduce | efficiency |",
            "|---|---|---|---|---|---|",
        ]
        lines += [
            f"| {row['devices']} | {row['images_per_device']} | {row['bytes_per_device'] / 2**20:,.0f} MiB "
            f"| {row['compute_seconds']:.2f} s | {row['all_reduce_seconds']:.3f} s | {row['efficiency']:.1%} |"
            for row in arithmetic["rows"]
        ]
        lines += ["", "Raw numbers: [arithmetic.json](arithmetic.json).", ""]
    (output / "README.md").write_text("\n".join(lines).rstrip() + "\n")


def main() -> None:
    """Run one part."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", choices=["equality", "resume", "kills", "scaling", "arithmetic", "rank"])
    parser.add_argument("--number", type=int, default=20, help="number of kills, or of a rank")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--tasks", nargs="+", choices=list(TASKS), default=list(TASKS))
    parser.add_argument("--output", type=Path)
    arguments = parser.parse_args()
    if arguments.part == "rank":
        print(json.dumps(all_reduce(arguments.number, arguments.port)))
        return
    with tempfile.TemporaryDirectory() as place:
        home = Path(place)
        if arguments.part == "arithmetic":
            write(arguments.output, "arithmetic", do_arithmetic())
            return
        rows = read(arguments.output, arguments.part) or []
        match arguments.part:
            case "equality":
                more = compare(arguments.tasks, home, len(rows))
            case "resume":
                more = resume_with_others(home, len(rows))
            case "kills":
                more = kill_many(arguments.number, home, len(rows))
            case _:
                more = time_steps(home, len(rows))
        for row in more:
            print(row, file=sys.stderr, flush=True)
            rows.append(row)
            write(arguments.output, arguments.part, rows)


if __name__ == "__main__":
    main()
