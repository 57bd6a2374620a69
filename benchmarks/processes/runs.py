"""Runs of `charax` in processes of their own, and what they left behind."""

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

LONGEST = 1800.0
"""Seconds after which a run counts as stuck."""


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
    _, errors = process.communicate(timeout=LONGEST)
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


def checkpoints_of(folder: Path) -> list[str]:
    """The complete checkpoints."""
    try:
        return [path.name for path in (folder / "checkpoints").iterdir() if path.name.isdecimal()]
    except OSError:
        return []
