"""The metrics of one training do not depend on the number of processes, also if it is resumed with another one."""

import shutil
import signal
import subprocess
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from benchmarks.processes.runs import LONGEST, charax, checkpoints_of, largest_difference, resume, train

SHORT = "--epochs 2 --batch-size 64"
TASKS = {
    "classification": f"classify --preset dense --width 8 --max-samples 500 {SHORT}",
    "density": "density --width 16 --steps 2 --epochs 1 --batch-size 2048",
    "pde": "pde --epochs 2",
    "series": f"series --width 8 --state-dim 8 {SHORT}",
    "regression": f"regress --width 8 {SHORT}",
    "matching": "density --objective matching --coupling ot --width 16 --steps 2 --epochs 1 --batch-size 2048",
    "forecast": f"forecast --width 8 {SHORT}",
}
"""Small runs of every kind."""
COUNTS = {task: (2, 4) if task == "classification" else (2,) for task in TASKS}
KILLED = "classify --preset dense --width 8 --max-samples 200 --epochs 4 --batch-size 32 --checkpoint-steps 3"
"""A run that has checkpoints within its epochs."""


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
    process.communicate(timeout=LONGEST)
    if process.returncode != 128 + signal.SIGTERM:
        raise RuntimeError(f"exit status {process.returncode}")


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
