"""Where the time of a row goes: `python -m benchmarks.profile toy` prints XLA's operations, longest first.

Cases: `dense-512x64` and the like (row 1), `toy` (row 3), `mnist` and `cifar10` (the image fields of row 7, with
their gradients). Times are of all threads together, for one call.
"""

import argparse
import re
import statistics
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
from rich.console import Console
from rich.table import Table

from benchmarks.machine import FIELDS, FieldSide
from benchmarks.rows import DenseSide, ToySide
from charax.solve import Solver
from charax.train import tune_process

_REPETITIONS = 5
_SHOWN = 14


def make_call(case: str) -> Callable[[], Any]:
    """What is to be profiled."""
    solver = Solver("dopri5", rtol=1e-5, atol=1e-5)
    if case == "toy":
        return ToySide.make(1_024).gradient(solver)
    if case in FIELDS:
        return FieldSide.make(case).gradient
    if sizes := re.fullmatch(r"dense-(\d+)x(\d+)", case):
        return DenseSide.make(*map(int, sizes.groups())).gradient(solver)
    raise ValueError(f"there is no case {case!r}; choose from toy, {', '.join(FIELDS)}, dense-512x64 and the like")


def measure(call: Callable[[], Any]) -> tuple[float, dict[str, tuple[float, int]]]:
    """Seconds of a call without the profiler; seconds and number of every kind of operation with it."""
    walls = []
    for _ in range(2 + _REPETITIONS):
        start = time.perf_counter()
        jax.block_until_ready(call())
        walls.append(time.perf_counter() - start)
    with tempfile.TemporaryDirectory() as folder:
        with jax.profiler.trace(folder):
            for _ in range(_REPETITIONS):
                jax.block_until_ready(call())
        (path,) = Path(folder).rglob("*.xplane.pb")
        profile = jax.profiler.ProfileData.from_file(str(path))
    kinds: dict[str, list[float]] = defaultdict(list)
    for plane in profile.planes:
        for line in plane.lines:
            for event in line.events:
                # Python's own events begin with $; executors and loops contain the operations that are counted.
                if not re.match(r"\$|end: |.*(Thunk|Pjit|Execut|Await|Parse)|while|call|cond", event.name):
                    kinds[re.sub(r"[.\d]+$", "", event.name)].append(event.duration_ns / 1e9)
    per_call = {kind: (sum(times) / _REPETITIONS, len(times) // _REPETITIONS) for kind, times in kinds.items()}
    return statistics.median(walls[2:]), per_call


def main() -> None:
    """Print the table of one case."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("case")
    case = parser.parse_args().case
    tune_process()
    wall, kinds = measure(make_call(case))
    total = sum(seconds for seconds, _ in kinds.values())
    table = Table("operation", title=f"{case}: {wall * 1e3:.2f} ms a call, {total * 1e3:.2f} ms of operations")
    for column in ("ms", "share", "number", "µs each"):
        table.add_column(column, justify="right")
    for kind, (seconds, number) in sorted(kinds.items(), key=lambda item: -item[1][0])[:_SHOWN]:
        each = f"{seconds / max(number, 1) * 1e6:.1f}"
        table.add_row(kind, f"{seconds * 1e3:.2f}", f"{seconds / total:.0%}", str(number), each)
    Console().print(table)


if __name__ == "__main__":
    main()
