"""Train on a data set that does not fit into memory, and measure the memory that this takes.

`python -m benchmarks.large_data --gigabytes 20 --output docs/results/large-data` makes a sparse file of that size, in a
temporary folder, trains a classifier on it for one epoch, evaluates it, and compares small data in memory and on disk.
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


def main() -> None:
    """Run it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--gigabytes", type=float, default=20.0)
    parser.add_argument("--output", type=Path)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        data = make_sparse(Path(place), arguments.gigabytes)
        size = data.stat().st_size
        found: dict[str, Any] = {"bytes": size, "flags": FLAGS, **train(data, "large")}
        found["peak_rss_bytes"] = 1024 * resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    print(json.dumps(found))
    if arguments.output is None:
        return
    arguments.output.mkdir(parents=True, exist_ok=True)
    (arguments.output / "large.json").write_text(json.dumps(found, indent=1) + "\n")
    page = f"""# Data that do not fit into memory

`python -m benchmarks.large_data --gigabytes {arguments.gigabytes:g} --output docs/results/large-data`

`charax train {FLAGS}` on a file of {size / 1e9:.1f} GB ({FEATURES:,} numbers per sample), one epoch with evaluation on
validation and test: at most {found["peak_rss_bytes"] / 1e9:.2f} GB of memory (peak resident set of the process),
{found["cpu_seconds"]:.0f} CPU seconds. Raw numbers: [large.json](large.json).
"""
    (arguments.output / "README.md").write_text(page)


if __name__ == "__main__":
    main()
