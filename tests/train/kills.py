"""`python -m tests.train.kills FOLDER`: runs that are really killed, at moments spread over their life.

Every run is a forked process with one function replaced by SIGKILL, or is killed from outside. What they import is
imported once, before; nothing is computed in the process that forks.
"""

import json
import os
import signal
import sys
import time
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

import pytest

from charax.cli import main
from charax.train._checkpoints import Checkpoints, write_json
from charax.train._evaluation import Evaluation
from tests.train.commands import train_line
from tests.train.line_task import LineTask
from tests.train.registration import registered_line

TEST_POINTS = 11


def kill(*_, **__):
    os.kill(os.getpid(), signal.SIGKILL)


def kill_while_the_epoch_is_compiled(patched):
    loss, calls = LineTask.loss, []
    # The first call only asks for shapes.
    patched.setattr(LineTask, "loss", lambda *args: kill() if calls else (calls.append(1), loss(*args))[1])


def kill_before_the_first_step(patched):
    patched.setattr("charax.train._loop.initial_state", kill)


def kill_before_the_second_checkpoint(patched):
    save = Checkpoints.save
    patched.setattr(
        Checkpoints, "save", lambda self, number, *args: kill() if number > 3 else save(self, number, *args)
    )


def kill_between_the_metrics_of_an_epoch_and_its_checkpoint(patched):
    save = Checkpoints.save
    patched.setattr(Checkpoints, "save", lambda self, n, *args: kill() if n == 10 else save(self, n, *args))


def kill_in_the_middle_of_a_checkpoint(patched):
    save = Checkpoints.save

    def save_half(self, number, *args):
        if number == 6:
            part = self._folder / "6.orbax-checkpoint-tmp" / "state"
            part.mkdir(parents=True)
            (part / "manifest.ocdbt").write_bytes(b"half")
            kill()
        save(self, number, *args)

    patched.setattr(Checkpoints, "save", save_half)


def kill_in_the_last_evaluation(patched):
    class Killed(Evaluation):
        def __call__(self, params, split):
            if len(split.x) == TEST_POINTS:
                kill()
            return super().__call__(params, split)

    patched.setattr("charax.train._loop.Evaluation", Killed)


def kill_when_half_of_the_weights_are_written(patched):
    def save_half(arrays, path):
        Path(path).write_bytes(b"half")
        kill()

    patched.setattr("charax.train._export.save_file", save_half)


def kill_between_the_description_and_the_weights(patched):
    patched.setattr("charax.train._export.write_json", lambda path, content: (write_json(path, content), kill()))


def kill_before_the_model_is_written(patched):
    patched.setattr("charax.train._training.save_model", kill)


def kill_before_the_test_metrics_are_written(patched):
    patched.setattr("charax.train._training.write_atomically", kill)


def kill_before_the_figures(patched):
    patched.setattr("charax.train.Run.plot", kill)


def kill_from_outside(patched):
    """The process that forked waits for the first metrics."""


MOMENTS: dict[str, Callable[[pytest.MonkeyPatch], None]] = {
    "while the first checkpoint is written, or soon after": kill_from_outside,
    "before the first step": kill_before_the_first_step,
    "while the epoch is compiled": kill_while_the_epoch_is_compiled,
    "in the middle of a checkpoint": kill_in_the_middle_of_a_checkpoint,
    "before the second checkpoint": kill_before_the_second_checkpoint,
    "between the metrics of an epoch and its checkpoint": kill_between_the_metrics_of_an_epoch_and_its_checkpoint,
    "in the last evaluation": kill_in_the_last_evaluation,
    "before the model is written": kill_before_the_model_is_written,
    "when half of the weights are written": kill_when_half_of_the_weights_are_written,
    "between the description and the weights": kill_between_the_description_and_the_weights,
    "before the test metrics are written": kill_before_the_test_metrics_are_written,
    "before the figures": kill_before_the_figures,
}


def start(folder: Path, patch: Callable[[pytest.MonkeyPatch], None]) -> int:
    """Train in a forked process that a patch kills; returns its id."""
    child = os.fork()
    if child:
        return child
    status = 70
    try:
        patch(pytest.MonkeyPatch())
        with registered_line():
            status = main(train_line(folder))
    finally:
        os._exit(status)


def run(folder: Path) -> dict[str, int]:
    """Kill a run at every moment; returns the exit status of each, or minus the signal that ended it."""
    for name in ("orbax.checkpoint", "matplotlib.pyplot", "charax.cli._commands", "charax.train._training"):
        import_module(name)
    ended = {}
    for name, patch in MOMENTS.items():
        process, metrics = start(folder / name, patch), folder / name / "metrics.jsonl"
        if patch is kill_from_outside:
            while not (metrics.exists() and metrics.stat().st_size) and not os.waitpid(process, os.WNOHANG)[0]:
                time.sleep(0.002)
            os.kill(process, signal.SIGKILL)
        _, status = os.waitpid(process, 0)
        ended[name] = os.waitstatus_to_exitcode(status)
    return ended


if __name__ == "__main__":
    sys.stdout.write(json.dumps(run(Path(sys.argv[1]))))
