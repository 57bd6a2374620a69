"""Training on samples that stay on disk: the metrics of memory, also when it is interrupted."""

import dataclasses
import os
import sys
from pathlib import Path
from subprocess import PIPE, Popen, run
from typing import Any

import numpy as np
import pytest

from benchmarks.processes.runs import checkpoints_of, largest_difference, metrics_of
from charax.data._stored import ImageRows, MappedRows
from charax.train import LoopConfig, OptimizerConfig, Silent, Splits, fit
from tests.train.line_task import LineTask, Points

LOOP = LoopConfig(epochs=3, batch_size=8, checkpoint_steps=2)
OPTIMIZER = OptimizerConfig(0.1, 0.0, "constant")


@pytest.fixture
def stored(line, tmp_path) -> Splits:
    """The splits of the line, with their positions on disk."""

    def store(points: Points, name: str) -> Any:
        np.save(tmp_path / f"{name}.npy", points.x)
        return points._replace(x=MappedRows(tmp_path / f"{name}.npy", 128, points.x.shape, points.x.dtype))

    return Splits(*(store(points, name) for name, points in line.splits._asdict().items()))


def without_times(history):
    return [{name: value for name, value in row.items() if name != "seconds"} for row in history]


class Stopping(Silent):
    """Stops a run as a crash would."""

    def step(self, epoch, step, metrics):
        if (epoch, step) == (1, 3):
            raise ZeroDivisionError


def test_samples_on_disk_give_the_metrics_of_memory_bit_for_bit_also_when_interrupted(line, stored, tmp_path):
    memory = fit(line.task, line.splits, LOOP, OPTIMIZER)
    whole = fit(line.task, stored, LOOP, OPTIMIZER)
    for one, two in zip(without_times(whole.history), without_times(memory.history), strict=True):
        assert one == pytest.approx(two, abs=1e-6)
    folder = tmp_path / "run"
    folder.mkdir()
    with pytest.raises(ZeroDivisionError):
        fit(line.task, stored, LOOP, OPTIMIZER, folder=folder, progress=Stopping())
    assert (folder / "checkpoints").is_dir()
    resumed = fit(line.task, stored, LOOP, OPTIMIZER, folder=folder)
    assert without_times(resumed.history) == without_times(whole.history)


class Twice(LineTask):
    """The line, with two passes over its points in an epoch."""

    @property
    def passes(self) -> int:
        return 2


@pytest.mark.parametrize("on_disk", [False, True])
def test_passes_are_those_over_repeated_rows_without_a_copy_of_them(line, stored, on_disk):
    twice = Twice(**{field.name: getattr(line.task, field.name) for field in dataclasses.fields(line.task)})
    copies = line.splits._replace(train=Points(*(np.concatenate([part, part]) for part in line.splits.train)))
    copied = fit(line.task, copies, LOOP, OPTIMIZER)
    found = fit(twice, stored if on_disk else line.splits, LOOP, OPTIMIZER)
    assert [row.get("step") for row in found.history] == [row.get("step") for row in copied.history]
    for one, two in zip(without_times(found.history), without_times(copied.history), strict=True):
        assert one == pytest.approx(two, abs=1e-6)


def decode(files, shape):
    """Made of the names: what another process must see, too."""
    return np.stack([np.full(shape, int(file.name), np.uint8) for file in files])


@pytest.mark.slow
def test_images_are_decoded_by_other_processes_in_the_same_order(tmp_path):
    from charax.train import Devices
    from charax.train._feed import read_batches

    split = Points(ImageRows([tmp_path / str(i) for i in range(12)], (2, 2, 1), decode), np.arange(12))
    order = np.random.default_rng(0).permutation(12).reshape(3, 4)
    found = list(read_batches(Devices(), split, order, first=1))
    assert [batch.y.tolist() for batch in found] == order[1:].tolist()
    assert [np.asarray(batch.x)[:, 0, 0, 0].tolist() for batch in found] == order[1:].tolist()


def start_training(task: str, data: Path, folder: Path, *, processes: int = 1, memory: int = 1000) -> Popen[str]:
    """Start a training on rows that stay on disk, or in memory with enough of it."""
    flags = f"--data {data} --width 4 --epochs 3 --batch-size 16 --checkpoint-steps 2 --output {folder.parent}"
    launch = ["launch", "-n", str(processes), "--"] if processes > 1 else []
    return Popen(
        [sys.executable, "-m", "charax", *launch, "train", task, *flags.split(), "--name", folder.name],
        env={**os.environ, "CHARAX_MAX_MEMORY": str(memory)},
        stdout=PIPE,
        stderr=PIPE,
        text=True,
    )


def finish(process: Popen[str]) -> None:
    _, errors = process.communicate(timeout=300)
    assert process.returncode == 0, errors


@pytest.fixture
def rows_on_disk(tmp_path) -> Path:
    x = np.random.default_rng(0).normal(size=(400, 3))
    np.save(tmp_path / "x.npy", x.astype(np.float32))
    np.save(tmp_path / "y.npy", (x[:, 0] * x[:, 1]).astype(np.float32))
    return tmp_path / "x.npy"


@pytest.mark.slow
@pytest.mark.parametrize("task", ["regress", "density"])
def test_a_run_on_disk_that_is_killed_within_an_epoch_is_resumed_to_the_same_bytes(task, rows_on_disk, tmp_path):
    finish(start_training(task, rows_on_disk, tmp_path / "whole"))
    process = start_training(task, rows_on_disk, tmp_path / "killed")
    while not checkpoints_of(tmp_path / "killed"):
        assert process.poll() is None, process.communicate()[1]
    process.kill()
    process.communicate()
    assert not (tmp_path / "killed" / "model.safetensors").exists()
    environment = {**os.environ, "CHARAX_MAX_MEMORY": "1000"}
    run([sys.executable, "-m", "charax", "resume", str(tmp_path / "killed")], env=environment, check=True, timeout=300)
    name = "model.safetensors"
    assert (tmp_path / "killed" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()


@pytest.mark.slow
def test_two_processes_that_read_their_shares_from_disk_give_the_metrics_of_one_in_memory(rows_on_disk, tmp_path):
    finish(start_training("regress", rows_on_disk, tmp_path / "two", processes=2))
    finish(start_training("regress", rows_on_disk, tmp_path / "one", memory=10**9))
    assert largest_difference(metrics_of(tmp_path / "two"), metrics_of(tmp_path / "one")) < 1e-4
