"""However a run is stopped, resuming it ends with the metrics of one that nothing interrupted."""

import os
import shutil
import signal
import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from charax import train
from charax.cli import main
from charax.train import LoopConfig, Silent, load_config, load_run, resume, save_config
from charax.train._checkpoints import Checkpoints, truncate_lines, write_json
from charax.train._evaluation import make_evaluation
from charax.train._history import advise
from tests.train.line_task import LineTask

TEST_POINTS = 11


class Killed(BaseException):
    """What nobody catches."""


@pytest.fixture
def killed(monkeypatch, line_task, command, tmp_path):
    """The folder of a run that was killed at some point."""

    def run(patch) -> Path:
        folder = tmp_path / "killed"
        with monkeypatch.context() as patched:
            patch(patched)
            with pytest.raises(Killed):
                main(command(folder))
        return folder

    return run


def kill(*_, **__):
    raise Killed


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
    def make(*args):
        evaluate = make_evaluation(*args)
        return lambda params, split: kill() if len(split.x) == TEST_POINTS else evaluate(params, split)

    patched.setattr("charax.train._loop.make_evaluation", make)


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


@pytest.mark.parametrize(
    "patch",
    [
        kill_before_the_first_step,
        kill_while_the_epoch_is_compiled,
        kill_in_the_middle_of_a_checkpoint,
        kill_in_the_last_evaluation,
        kill_when_half_of_the_weights_are_written,
        kill_between_the_description_and_the_weights,
        kill_before_the_second_checkpoint,
        kill_between_the_metrics_of_an_epoch_and_its_checkpoint,
        kill_before_the_model_is_written,
        kill_before_the_test_metrics_are_written,
    ],
)
def test_a_run_killed_anywhere_ends_with_the_same_metrics(killed, patch, trained, metrics_of):
    folder = killed(patch)
    with pytest.raises(ValueError, match="is not finished; resume it: charax resume"):
        train.load_run(folder)
    resume(folder)
    assert metrics_of(folder) == metrics_of(trained)
    assert (folder / "model.safetensors").read_bytes() == (trained / "model.safetensors").read_bytes()


def test_a_run_killed_before_its_figures_is_finished_and_resuming_it_plots_them(killed, ask, trained, metrics_of):
    folder = killed(lambda patched: patched.setattr("charax.train.Run.plot", kill))
    assert not (folder / "plots").exists()
    assert ask("resume", folder)["loss"] == metrics_of(trained)[-1]["test_loss"]
    assert {path.name for path in (folder / "plots").iterdir()} == {"training.png", "points.txt"}


def test_a_process_that_is_really_killed_is_resumed(start, command, ask, trained, metrics_of, tmp_path):
    folder, began = tmp_path / "killed", time.monotonic()
    process, metrics = start(*command(folder)), folder / "metrics.jsonl"
    while not (metrics.exists() and metrics.read_text()):  # while the first checkpoint is written, or soon after
        assert process.poll() is None, process.communicate()[1]
        assert time.monotonic() - began < 100
        time.sleep(0.002)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert process.returncode == -signal.SIGKILL
    answer = ask("resume", folder)
    assert metrics_of(folder) == metrics_of(trained)
    assert (folder / "model.safetensors").read_bytes() == (trained / "model.safetensors").read_bytes()
    assert answer.keys() == {"run", "loss", "validation_loss", "nfe", "parameters", "seconds"}


class Signalling(Silent):
    """Sends this process a signal after the second epoch."""

    def __init__(self, number: int):
        self.number = number

    def epoch(self, row):
        if row["epoch"] == 2:
            os.kill(os.getpid(), self.number)


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_saves_the_run_and_says_how_to_resume_it(
    monkeypatch, command, refuse, tmp_path, number, status, trained, metrics_of
):
    monkeypatch.setattr(train, "make_progress", lambda: Signalling(number))
    before, folder = signal.getsignal(number), tmp_path / "stopped"
    reason = refuse(*command(folder), "--checkpoint-steps", 100_000, status=status)
    assert f"charax resume {folder}" in reason
    assert signal.getsignal(number) is before
    assert (folder / "checkpoints" / "10").is_dir()
    resume(folder)
    assert metrics_of(folder) == metrics_of(trained)


def test_a_finished_run_is_not_trained_again(ask, trained, metrics_of):
    before = metrics_of(trained)
    assert ask("resume", trained)["loss"] == before[-1]["test_loss"]
    assert metrics_of(trained) == before


def test_a_run_whose_data_have_changed_is_not_resumed(refuse, command, tmp_path):
    x = np.random.default_rng(0).normal(size=(120, 2))
    np.savez(tmp_path / "points.npz", x=x, y=x.sum(axis=1))
    assert main([*command(tmp_path / "run"), "--data", str(tmp_path / "points.npz")]) == 0
    truncate_lines(tmp_path / "run" / "metrics.jsonl", 1)  # as if it had been interrupted
    shutil.rmtree(tmp_path / "run" / "checkpoints")
    np.savez(tmp_path / "points.npz", x=x + 1, y=x.sum(axis=1))
    assert "have changed since the run started" in refuse("resume", tmp_path / "run")


def test_a_finished_run_is_trained_longer_as_if_it_had_been_from_the_start(line_task, trained, tmp_path):
    folder = shutil.copytree(trained, tmp_path / "run")
    made = len(load_run(folder).epochs)
    before = load_run(folder).epochs
    longer = resume(folder, epochs=made + 1)
    assert longer.config.loop.epochs == load_config(folder).loop.epochs == made + 1
    assert [{**row, "seconds": 0} for row in longer.epochs[:made]] == [{**row, "seconds": 0} for row in before]
    assert len(longer.epochs) == made + 1
    assert load_run(folder).summary() == longer.summary()
    with pytest.raises(ValueError, match=f"has {made + 1} epochs: --epochs must be more than that"):
        resume(folder, epochs=made + 1)


def test_a_run_that_stopped_early_is_not_trained_longer(line_task, trained, tmp_path):
    folder = shutil.copytree(trained, tmp_path / "run")
    config: Any = load_config(folder)
    save_config(folder, replace(config, loop=replace(config.loop, epochs=99, patience=2)))
    with pytest.raises(ValueError, match="validation had not improved for 2, so more epochs change nothing"):
        resume(folder, epochs=100)


@pytest.mark.parametrize(("losses", "says"), [((3, 2, 1), True), ((1, 2, 3), False), ((2, 1, 1), False)])
def test_a_run_that_ended_while_validation_improved_says_how_to_go_on(losses, says):
    rows = [{"validation_loss": loss} for loss in losses]
    config: Any = SimpleNamespace(loop=LoopConfig(epochs=3))
    said = advise(Path("runs/mine"), config, rows, "loss", higher_is_better=False)
    assert bool(said) == says
    assert not says or "epoch 3 of 3: train longer with --epochs, or resume this run: charax resume runs/mine" in said
