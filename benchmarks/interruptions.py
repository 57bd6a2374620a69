"""Kill a run with SIGKILL at moments spread over its life, resume it, and compare with a run that nothing interrupted.

`python -m benchmarks.interruptions --kills 100 --output docs/results/interruptions` writes a table. Every run is a
process of its own, forked when the packages are imported and before JAX has computed anything; so is every resumption.
"""

import argparse
import json
import os
import random
import signal
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from charax.train import use_compilation_cache

EPOCHS = 4
FLAGS = f"train regress --method node --width 2 --steps 1 --batch-size 128 --checkpoint-steps 1 --epochs {EPOCHS}"
_MODULES = ("charax.cli._commands", "charax.train._training", "charax.tasks.regression._task")
_POLL = 0.001
_LONGEST = 120.0


@dataclass(frozen=True)
class Kill:
    """One run that was killed."""

    moment: str
    """The part of its life in which it was killed."""
    found: list[str]
    """What was in its folder then."""
    checkpoints: int
    """How many of them were complete."""
    lines: int
    """How many lines the metrics had."""
    same: bool
    """Whether resuming it, or training again where nothing had been written, gave the same metrics and weights."""


_PAGE = """# Runs killed by SIGKILL

**{same} of {kills} runs that were killed at some moment and resumed ended with exactly the metrics and weights of a run
that nothing interrupted.**

`python -m benchmarks.interruptions --kills {kills} --output docs/results/interruptions`

Runs of `charax {flags}`, killed at
moments spread over their life, and resumed (`charax resume`; trained again where
not even `config.json` had been written). *Same*: the metrics of all epochs and of the test split, and the bytes of
`model.safetensors`, are those of a run that nothing interrupted. Raw numbers: [kills.json](kills.json).

| killed | runs | complete checkpoints then | lines of metrics then | same |
|---|---|---|---|---|"""


def lines_of(folder: Path) -> int:
    """The lines of the metrics."""
    try:
        return (folder / "metrics.jsonl").read_bytes().count(b"\n")
    except OSError:
        return 0


def names_of(folder: Path) -> list[str]:
    """What is in a folder."""
    try:
        return sorted(path.name for path in folder.iterdir())
    except OSError:
        return []


def saved(folder: Path) -> int:
    """The number of complete checkpoints."""
    return sum(name.isdecimal() for name in names_of(folder / "checkpoints"))


def is_saving(folder: Path) -> bool:
    """Whether a checkpoint is being written."""
    return any("tmp" in name for name in names_of(folder / "checkpoints"))


MOMENTS: dict[str, tuple[Callable[[Path], bool], float]] = {
    "start": (lambda folder: True, 0.8),
    "compile": (lambda folder: (folder / "config.json").exists(), 0.8),
    "first step": (lambda folder: saved(folder) == 1, 0.02),
    "in a checkpoint": (is_saving, 0.004),
    "in a later checkpoint": (lambda folder: lines_of(folder) > 1 and is_saving(folder), 0.004),
    "between epochs": (lambda folder: lines_of(folder) == 2, 0.1),
    "last evaluation": (lambda folder: lines_of(folder) == EPOCHS, 0.2),
    "export": (lambda folder: any(name.startswith("model.") for name in names_of(folder)), 0.01),
    "pictures": (lambda folder: lines_of(folder) > EPOCHS, 1.0),
}
"""When each part of the life of a run begins, as seen from outside, and how many seconds later at most it is killed."""


def start(*arguments: object) -> int:
    """Run a command of `charax` in a forked process; returns its id."""
    child = os.fork()
    if child:
        return child
    status = 70
    try:
        quiet = os.open(os.devnull, os.O_WRONLY)
        os.dup2(quiet, 1)
        os.dup2(quiet, 2)
        from charax.cli import main

        status = main([str(each) for each in arguments])
    finally:
        os._exit(status)


def wait(process: int) -> int:
    """Wait for a process; returns its exit status, or minus the signal that ended it."""
    return os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])


def ended(process: int) -> bool:
    """Whether a process has ended by itself."""
    return os.waitpid(process, os.WNOHANG)[0] != 0


def train(folder: Path) -> int:
    """Start the run."""
    return start(*FLAGS.split(), "--output", folder.parent, "--name", folder.name)


def result_of(folder: Path) -> tuple[Any, bytes]:
    """The metrics without times, and the weights."""
    rows = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    return [{**row, "seconds": 0} for row in rows], (folder / "model.safetensors").read_bytes()


def kill_at(folder: Path, moment: str, generator: random.Random, expected: tuple[Any, bytes]) -> Kill | None:
    """Kill a run at a moment and resume it; None if it had ended before."""
    begins, within = MOMENTS[moment]
    process, limit = train(folder), time.monotonic() + _LONGEST
    while not begins(folder):
        if ended(process):
            return None
        if time.monotonic() > limit:
            os.kill(process, signal.SIGKILL)
            raise RuntimeError(f"the run took more than {_LONGEST:g} s before {moment}")
        time.sleep(_POLL)
    time.sleep(generator.uniform(0, within))
    if ended(process):
        return None
    os.kill(process, signal.SIGKILL)
    if wait(process) != -signal.SIGKILL:
        return None
    found, checkpoints, lines = names_of(folder), saved(folder), lines_of(folder)
    again = start("resume", folder) if "config.json" in found else train(folder)
    same = wait(again) == 0 and result_of(folder) == expected and (folder / "plots" / "training.png").is_file()
    return Kill(moment, found, checkpoints, lines, same)


def run(kills: int, output: Path | None = None, seed: int = 0) -> list[Kill]:
    """Kill as many runs, the moments in turn."""
    os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0")  # only the first run compiles for long
    use_compilation_cache()
    # Imported once, for all processes; nothing is computed before they are forked.
    for name in ("jax", "matplotlib.pyplot", "orbax.checkpoint", "pandas", "sklearn.datasets", *_MODULES):
        import_module(name)
    generator, done = random.Random(seed), []
    with tempfile.TemporaryDirectory() as home:
        whole = Path(home) / "whole"
        if wait(train(whole)) != 0:
            raise RuntimeError("the run that nothing interrupts failed")
        expected = result_of(whole)
        attempt = 0
        while len(done) < kills:
            moment = list(MOMENTS)[len(done) % len(MOMENTS)]
            kill = kill_at(Path(home) / f"run{attempt}", moment, generator, expected)
            attempt += 1
            if attempt > 3 * kills + 10:
                raise RuntimeError(f"runs end before {moment}: the moments do not fit this machine")
            if kill is not None:
                done.append(kill)
                print(f"{len(done)}/{kills} {kill}", file=sys.stderr, flush=True)
                if output is not None:
                    write(done, output)
    return done


def write(kills: list[Kill], output: Path) -> None:
    """Write the table and the raw numbers."""
    output.mkdir(parents=True, exist_ok=True)
    lines = [_PAGE.format(kills=len(kills), same=sum(kill.same for kill in kills), flags=FLAGS)]
    for moment in MOMENTS:
        chosen = [kill for kill in kills if kill.moment == moment]
        if not chosen:
            continue
        span = lambda values: f"{min(values)} to {max(values)}" if min(values) < max(values) else f"{min(values)}"
        checkpoints, metrics = span([kill.checkpoints for kill in chosen]), span([kill.lines for kill in chosen])
        same = sum(kill.same for kill in chosen)
        lines.append(f"| {moment} | {len(chosen)} | {checkpoints} | {metrics} | {same} of {len(chosen)} |")
    lines.append(f"| all | {len(kills)} | | | {sum(kill.same for kill in kills)} of {len(kills)} |")
    (output / "README.md").write_text("\n".join(lines) + "\n")
    (output / "kills.json").write_text(json.dumps([asdict(kill) for kill in kills], indent=1) + "\n")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--output", type=Path)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    results = run(arguments.kills, arguments.output, arguments.seed)
    sys.exit(0 if all(kill.same for kill in results) else 1)
