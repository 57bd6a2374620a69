"""However a run is stopped, resuming it ends with the metrics of one that nothing interrupted."""

import json
import os
import shutil
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from charax import train
from charax.cli import main
from charax.train import LoopConfig, Silent, load_config, load_run, resume, save_config
from charax.train._checkpoints import truncate_lines
from charax.train._history import advise
from tests.train.kills import MOMENTS

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def killed(tmp_path_factory) -> Path:
    """The folders of runs that were killed by SIGKILL, one for each moment."""
    folder = tmp_path_factory.mktemp("killed")
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "tests.train.kills", str(folder)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == dict.fromkeys(MOMENTS, -signal.SIGKILL)
    return folder


@pytest.mark.parametrize("moment", [moment for moment in MOMENTS if moment != "before the figures"])
def test_a_run_killed_anywhere_ends_with_the_same_metrics(killed, moment, line_task, trained, metrics_of):
    folder = killed / moment
    with pytest.raises(ValueError, match="is not finished; resume it: charax resume"):
        train.load_run(folder)
    resume(folder)
    assert metrics_of(folder) == metrics_of(trained)
    assert (folder / "model.safetensors").read_bytes() == (trained / "model.safetensors").read_bytes()


def test_a_run_killed_before_its_figures_is_finished_and_resuming_it_plots_them(killed, ask, trained, metrics_of):
    folder = killed / "before the figures"
    assert not (folder / "plots").exists()
    assert ask("resume", folder)["loss"] == metrics_of(trained)[-1]["test_loss"]
    assert {path.name for path in (folder / "plots").iterdir()} == {"training.png", "points.txt"}


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


@pytest.mark.parametrize(
    ("losses", "says"),
    [
        ((3, 2, 1), "epoch 3 of 3: train longer with --epochs, or resume this run: charax resume runs/mine"),
        ((1, 2, 3), "the weights of epoch 1 of 3 are kept"),
        ((2, 1, 1), ""),
    ],
)
def test_a_run_that_could_go_further_says_how(losses, says):
    rows = [{"validation_loss": loss} for loss in losses]
    config: Any = SimpleNamespace(loop=LoopConfig(epochs=3))
    said = advise(Path("runs/mine"), config, rows, "loss", higher_is_better=False)
    assert said == says == "" or (says and says in said)
