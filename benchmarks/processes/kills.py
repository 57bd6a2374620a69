"""Processes that are killed: the run is started again, and ends with the metrics of one that nothing interrupted."""

import os
import random
import shutil
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.processes.equality import KILLED
from benchmarks.processes.runs import LONGEST, charax, checkpoints_of, metrics_of, train


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
        process.communicate(timeout=LONGEST)
        return None
    found = sorted(map(int, checkpoints_of(folder)))
    os.kill(victim, signal.SIGKILL)
    _, errors = process.communicate(timeout=LONGEST)
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
