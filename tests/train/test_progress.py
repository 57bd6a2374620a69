"""Progress on standard error: one line per epoch, and a live display on a terminal."""

import io

import numpy as np
from rich.console import Console

from charax.train import Lines, Live, LoopConfig, fit, make_progress
from charax.train._step import StepMetrics
from tests.train.line_task import LineConfig

ROW = {"epoch": 2, "step": 10, "loss": 0.5, "validation_loss": 0.25, "nfe": 4.0, "skipped": 0, "seconds": 1.25}


def console(*, terminal: bool = False) -> Console:
    return Console(file=io.StringIO(), force_terminal=terminal, width=200)


def test_a_line_has_the_metrics_to_watch_with_their_validation_values():
    progress = Lines(where := console())
    progress.start(3, 5, 8)
    progress.epoch(ROW)
    progress.epoch({**ROW, "epoch": 3, "skipped": 7, "loss": None})
    progress.epoch({**ROW, "epoch": 3, "loss": 0.0000123})
    assert where.file.getvalue().splitlines() == [
        "epoch 2/3  loss 0.5000 (validation 0.2500)  nfe 4.0  1.2 s",
        "epoch 3/3  nfe 4.0  7 steps skipped  1.2 s",
        "epoch 3/3  loss 1.23e-05 (validation 0.2500)  nfe 4.0  1.2 s",
    ]


def test_a_terminal_sees_the_step_the_metrics_and_the_speed(monkeypatch):
    monkeypatch.setattr(Live, "_REFRESH", 0.0)
    progress = Live(where := console(terminal=True))
    progress.start(3, 5, 8)
    progress.step(1, 4, StepMetrics(np.array([0.75]), {"nfe": np.array([6.0])}, np.array([0])))
    progress._bar.refresh()
    progress.epoch(ROW)
    progress.stop()
    shown = where.file.getvalue()
    for words in ("epoch 2/3  step 4/5", "loss 0.7500", "nfe 6.0", "samples/s", "epoch 2/3  loss 0.5000"):
        assert words in shown


def test_what_is_not_a_terminal_gets_lines(capsys):
    progress = make_progress()
    assert isinstance(progress, Lines)
    progress.say("[bold]markup stays text")
    assert capsys.readouterr() == ("", "[bold]markup stays text\n")


def test_every_step_and_every_epoch_is_reported(line):
    steps, epochs = [], []

    class Counting(Lines):
        def step(self, epoch, step, metrics):
            steps.append((epoch, float(metrics.loss[-1])))

        def epoch(self, row):
            epochs.append(row["epoch"])

    fit(*line, LoopConfig(epochs=2, batch_size=8), LineConfig().optimizer, progress=Counting(console()))
    assert [epoch for epoch, _ in steps] == [0] * 5 + [1] * 5
    assert all(np.isfinite(loss) for _, loss in steps)
    assert epochs == [1, 2]
