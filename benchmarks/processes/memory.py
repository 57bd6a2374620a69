"""The memory of each process: only the first reads the data, and none holds more than its share of them."""

import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.processes.kills import rank_of
from benchmarks.processes.runs import LONGEST, charax

FEATURES, ROWS, FEW = 4096, 16_000, 1_200
FLAGS = "classify --preset dense --width 8 --members 1 --epochs 2 --batch-size 240"
"""A classifier of rows with many columns, which are nearly all that it holds."""


def resident(pid: int) -> tuple[int, int]:
    """The bytes that a process holds, and the most that it has held."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    found = {line.split(":")[0]: 1024 * int(line.split()[1]) for line in lines if line.startswith(("VmRSS", "VmHWM"))}
    return found["VmRSS"], found["VmHWM"]


def watch(process: subprocess.Popen[str], count: int, folder: Path) -> list[dict[str, int]]:
    """The memory of each rank at the end of its training, and the most that it held before its model was written."""
    found: list[dict[str, int]] = [{"held": 0, "peak": 0} for _ in range(count)]
    began = time.monotonic()
    while process.poll() is None:
        for rank in range(count):
            pid = process.pid if count == 1 else rank_of(process.pid, rank)
            try:
                held, peak = resident(pid or 0)
            except (OSError, KeyError):  # not there yet, or not any more
                continue
            if not (folder / "model.safetensors").exists():  # figures come after it
                found[rank] = {"held": held, "peak": peak}
        time.sleep(0.05)
        if time.monotonic() - began > LONGEST:
            process.kill()
    errors = process.communicate()[1]
    if process.returncode:
        raise RuntimeError(f"exit status {process.returncode}: {errors[-2_000:]}")
    return found


def measure_memory(home: Path, done: int = 0) -> Iterator[dict[str, Any]]:
    """The memory of one process and of two, with many rows and with few."""
    generator = np.random.default_rng(0)
    for count in (1, 2)[done:]:
        row: dict[str, Any] = {"processes": count, "flags": FLAGS, "data_bytes": 4 * FEATURES * ROWS}
        for name, rows in (("few", FEW), ("many", ROWS)):
            x = generator.normal(size=(rows, FEATURES)).astype(np.float32)
            np.savez(home / "rows.npz", x=x, y=np.arange(rows) % 2)
            launch = ("launch", "-n", count, "--") if count > 1 else ()
            folder = home / f"{name}-{count}"
            place = ("--data", home / "rows.npz", "--output", home, "--name", folder.name)
            row[name] = watch(charax(*launch, "train", *FLAGS.split(), *place), count, folder)
        yield row
