"""Row 6: how long `--help`, an import and the first training step of a new process take, and how often a run compiles.

`python -m benchmarks.startup FOLDER` is the child process: it begins to train on MNIST and stops at the first step.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.rows import Row

AT_MOST = {"cold": 10.0, "warm": 4.0}
HELP_AT_MOST, IMPORT_AT_MOST = 0.6, 1.1
EVERYTHING = "from charax import CharacteristicField, NeuralODE, Solver, mlp"


def begin(folder: Path) -> None:
    """Train until the first step is done, print when each part was finished, and end the process there."""
    from charax.tasks.classification import ClassificationConfig
    from charax.train import LoopConfig, Silent, train

    imported = time.time()

    class FirstStep(Silent):
        def start(self, epochs: int, steps_per_epoch: int, batch_size: int) -> None:
            self.ready = time.time()

        def step(self, epoch: int, step: int, metrics: Any) -> None:
            end = time.time()
            parts = {"data and model": self.ready - imported, "first step": end - self.ready}
            print(json.dumps(parts), flush=True)
            os._exit(0)

    settings = ClassificationConfig(data="mnist", preset="cpu", loop=LoopConfig(epochs=1, batch_size=128))
    train(settings, folder, progress=FirstStep())


def _first_step(cache: Path) -> tuple[float, dict[str, float]]:
    environment = os.environ | {
        "JAX_COMPILATION_CACHE_DIR": str(cache),
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0.2",
    }
    with tempfile.TemporaryDirectory() as folder:
        start = time.perf_counter()
        command = [sys.executable, "-m", "benchmarks.startup", str(Path(folder) / "run")]
        child = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
        return time.perf_counter() - start, json.loads(child.stdout)


def _seconds(*arguments: str, repetitions: int = 5) -> float:
    """The fastest of a few runs of a Python process."""
    times = []
    for _ in range(repetitions):
        start = time.perf_counter()
        subprocess.run([sys.executable, *arguments], capture_output=True, check=True)
        times.append(time.perf_counter() - start)
    return min(times)


def help_and_import() -> Iterator[Row]:
    """What a user waits for before anything is computed."""
    for words in (("--help",), ("train", "density", "--help"), ("reproduce", "table1", "--help")):
        yield _row(f"charax {' '.join(words)}", _seconds("-m", "charax", *words), {"at_most": HELP_AT_MOST})
    peers, empty = _seconds("-c", "import jax, equinox, diffrax"), _seconds("-c", "pass")
    for case, code in {"import charax": "import charax", "import its fields, solver and models": EVERYTHING}.items():
        ours = _seconds("-c", code)
        ratio = (ours - empty) / (peers - empty)
        yield _row(f"{case}, against import jax, equinox, diffrax", ours, {"ratio": ratio, "at_most": IMPORT_AT_MOST})


def row6() -> Iterator[Row]:
    """The MNIST model of preset cpu in a new process, without and with compiled programs from before."""
    yield from help_and_import()
    with tempfile.TemporaryDirectory() as cache:
        for state, at_most in AT_MOST.items():
            seconds, parts = _first_step(Path(cache))
            step = parts.pop("first step")
            before = parts | {"imports": seconds - step - sum(parts.values())}
            yield _row(f"first MNIST step, {state} cache", step, {"before": before, "at_most": at_most})
    start = time.perf_counter()
    per_epoch = count_compilations()
    seconds = time.perf_counter() - start
    yield _row("compilations in each epoch of a run on digits", seconds, {"compilations": per_epoch})


def count_compilations(epochs: int = 3) -> list[int]:
    """How many programs XLA compiled by the end of each epoch, since the one before."""
    import jax

    from charax.tasks.classification import ClassificationConfig
    from charax.train import LoopConfig, Silent, train

    compiled: list[str] = []
    counts: list[int] = []

    def listen(event: str, duration_secs: float, **_: str | int) -> None:
        if event.endswith("backend_compile_duration"):
            compiled.append(event)

    jax.monitoring.register_event_duration_secs_listener(listen)

    class Counting(Silent):
        def epoch(self, row: dict[str, Any]) -> None:
            counts.append(len(compiled) - sum(counts))

    with tempfile.TemporaryDirectory() as folder:
        train(ClassificationConfig(loop=LoopConfig(epochs=epochs)), Path(folder) / "run", progress=Counting())
    jax.monitoring.unregister_event_duration_listener(listen)
    return counts


def _row(case: str, seconds: float, extra: dict[str, Any]) -> Row:
    return Row(6, case, None, seconds, None, None, None, None, extra=extra)


if __name__ == "__main__":
    begin(Path(sys.argv[1]))
