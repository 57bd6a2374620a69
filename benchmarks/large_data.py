"""Train on a data set that does not fit into memory, and measure the memory that this takes.

    python -m benchmarks.large_data --gigabytes 20 --output docs/results/large-data
    python -m benchmarks.large_data --small --output docs/results/large-data

The first makes a sparse file of that size, in a temporary folder, trains a classifier on it for one epoch, and
evaluates it. The second times steps of training on small data: in memory, where they stay, next to steps whose samples
are on the device already, and on disk.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

FEATURES, BATCH = 4096, 512
FLAGS = f"classify --preset dense --width 8 --members 1 --epochs 1 --batch-size {BATCH} --json"


def make_sparse(folder: Path, gigabytes: float) -> Path:
    """An `x.npy` of zeros that takes no space on disk, and a `y.npy` of two classes."""
    count = int(gigabytes * 1e9) // (4 * FEATURES)
    path = folder / "x.npy"
    header = {"descr": "<f4", "fortran_order": False, "shape": (count, FEATURES)}
    with path.open("wb") as file:
        np.lib.format.write_array_header_1_0(file, header)
        file.truncate(file.tell() + 4 * FEATURES * count)
    np.save(folder / "y.npy", np.random.default_rng(0).integers(0, 2, count))
    return path


def train(data: Path, name: str, **variables: str) -> dict[str, Any]:
    """Train in a process of its own; returns its wall-clock and CPU seconds and the summary."""
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    place = ("--output", str(data.parent / "runs"), "--name", name)
    command = [sys.executable, "-m", "charax", "train", *FLAGS.split(), "--data", str(data), *place]
    answer = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, env={**os.environ, **variables})
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return {
        "wall_seconds": time.monotonic() - began,
        "cpu_seconds": after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime,
        "loop_seconds": json.loads(answer.stdout)["seconds"],
    }


def time_small(steps: int = 200, repeats: int = 5) -> dict[str, Any]:
    """Milliseconds of a step, and its CPU milliseconds: the best of some repeats, interleaved."""
    import jax

    from charax.data._stored import MappedRows
    from charax.tasks.classification import ClassificationConfig
    from charax.train import LoopConfig, OptimizerConfig, Silent
    from charax.train._loop import _Training

    loop = LoopConfig(epochs=1, batch_size=64)
    config = ClassificationConfig(preset="dense", width=16, loop=loop)
    data = config.load_data()
    order = np.random.default_rng(0).integers(0, len(data.splits.train.targets), (steps + 1, 64))
    with tempfile.TemporaryDirectory() as place:
        inputs = data.splits.train.inputs
        (Path(place) / "x").write_bytes(np.ascontiguousarray(inputs).tobytes())
        mapped = MappedRows(Path(place) / "x", 0, inputs.shape, inputs.dtype)
        stored = data.splits._replace(train=data.splits.train._replace(inputs=mapped))
        make = lambda splits: _Training(config.build_task(data.spec), splits, loop, OptimizerConfig(), None, Silent())
        trainings = {"on the device": make(data.splits), "in memory": make(data.splits), "on disk": make(stored)}
        bare = trainings["on the device"]
        resident, rows = (
            bare.devices.replicate(data.splits.train),
            [bare.devices.shard_rows(row[None]) for row in order],
        )

        def step(name: str, number: int) -> None:
            training = trainings[name]
            if name != "on the device":
                training._take_step(number)
            else:
                training.state, _ = training.epoch(training.state, resident, rows[number])

        found: dict[str, Any] = {name: {"milliseconds": [], "cpu_milliseconds": []} for name in trainings}
        for _ in range(repeats):
            for name, training in trainings.items():
                training.feed.start_epoch(training.splits.train, order, first=0)
                step(name, 0)
                jax.block_until_ready(training.state)
                began, cpu = time.perf_counter(), time.process_time()
                for number in range(1, steps + 1):
                    step(name, number)
                jax.block_until_ready(training.state)
                found[name]["milliseconds"].append(1e3 * (time.perf_counter() - began) / steps)
                found[name]["cpu_milliseconds"].append(1e3 * (time.process_time() - cpu) / steps)
    return found


def write_page(output: Path) -> None:
    """Write README.md from the files that are there."""
    lines = ["# Data that do not fit into memory", ""]
    if (output / "large.json").is_file():
        found = json.loads((output / "large.json").read_text())
        lines += [
            f"**Training on a file of {found['bytes'] / 1e9:.0f} GB takes "
            f"{found['peak_rss_bytes'] / 1e9:.2f} GB of memory.**",
            "",
            "Written by `python -m benchmarks.large_data`.",
            "",
            f"`charax train {found['flags']}` on a file of {found['bytes'] / 1e9:.1f} GB ({FEATURES:,} numbers per",
            "sample), one epoch with evaluation on validation and test: at most",
            f"{found['peak_rss_bytes'] / 1e9:.2f} GB of memory (peak resident set of the process),",
            f"{found['cpu_seconds']:.0f} CPU seconds. Raw numbers: [large.json](large.json).",
            "",
        ]
    if (output / "small.json").is_file():
        found = json.loads((output / "small.json").read_text())
        lines += [
            "## Small data",
            "",
            "A step of a classifier of digits, mini-batches of 64, the best of five means:",
            "",
        ]
        lines += ["| samples | time of a step | CPU time |", "|---|---|---|"]
        lines += [
            f"| {name} | {min(row['milliseconds']):.2f} ms | {min(row['cpu_milliseconds']):.2f} ms |"
            for name, row in found.items()
        ]
        lines += ["", "Small data stay in memory; on the device is a step without any reading. Raw numbers:"]
        lines += ["[small.json](small.json).", ""]
    (output / "README.md").write_text("\n".join(lines))


def main() -> None:
    """Run it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--gigabytes", type=float, default=20.0)
    parser.add_argument("--output", type=Path)
    parser.add_argument("--small", action="store_true", help="time steps on small data")
    arguments = parser.parse_args()
    if arguments.small:
        name, found = "small", time_small()
    else:
        with tempfile.TemporaryDirectory() as place:
            data = make_sparse(Path(place), arguments.gigabytes)
            name, found = "large", {"bytes": data.stat().st_size, "flags": FLAGS, **train(data, "large")}
            found["peak_rss_bytes"] = 1024 * resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    print(json.dumps(found))
    if arguments.output is not None:
        arguments.output.mkdir(parents=True, exist_ok=True)
        (arguments.output / f"{name}.json").write_text(json.dumps(found, indent=1) + "\n")
        write_page(arguments.output)


if __name__ == "__main__":
    main()
