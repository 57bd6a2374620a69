"""`--tensorboard`: event files that agree with `metrics.jsonl`."""

import json
import shutil
import struct
from pathlib import Path

import pytest
from tensorboardX.proto.event_pb2 import Event

from charax.train import Silent, TensorBoard


def scalars(folder: Path) -> dict[tuple[str, int], float]:
    """What TensorBoard reads: records of a length, its checksum, an event, its checksum."""
    (path,) = (folder / "tensorboard").iterdir()
    data, found = path.read_bytes(), {}
    while data:
        (length,) = struct.unpack("<Q", data[:8])
        event = Event.FromString(data[12 : 12 + length])
        found |= {(value.tag, event.step): value.simple_value for value in event.summary.value}
        data = data[16 + length :]
    return found


def check(folder: Path) -> None:
    rows = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    found = scalars(folder)
    for row in rows[:-1]:
        assert found["loss/train", row["epoch"]] == pytest.approx(row["loss"], rel=1e-6)
        assert found["loss/validation", row["epoch"]] == pytest.approx(row["validation_loss"], rel=1e-6)
    assert found["loss/test", rows[-1]["best_epoch"]] == pytest.approx(rows[-1]["test_loss"], rel=1e-6)
    assert ("loss/train", len(rows)) not in found


def test_event_files_hold_the_metrics_of_every_epoch_and_of_the_test_split(ask, tmp_path):
    ask("train", "line", "--epochs", 3, "--output", tmp_path, "--name", "run", "--tensorboard")
    check(tmp_path / "run")


def test_a_resumed_run_has_the_epochs_from_before_too_and_none_that_were_lost(trained, tmp_path):
    folder = shutil.copytree(trained, tmp_path / "run")
    *rows, test = (folder / "metrics.jsonl").read_text().splitlines(keepends=True)
    for kept in (3, 1):  # interrupted after epoch 3, and again, when only the checkpoint of epoch 1 was intact
        (folder / "metrics.jsonl").write_text("".join(rows[:kept]))
        events = TensorBoard(Silent(), folder)
        events.start(epochs=4, steps_per_epoch=1, batch_size=8)
        for row in rows[kept:3]:
            events.epoch(json.loads(row))
        events.stop()
        assert ("loss/train", 3) in scalars(folder)
        assert ("loss/train", 4) not in scalars(folder)
    (folder / "metrics.jsonl").write_text("".join([*rows, test]))
    events.finish([json.loads(row) for row in (*rows, test)])
    check(folder)


def test_resume_takes_the_flag(trained, ask, tmp_path):
    folder = shutil.copytree(trained, tmp_path / "run")
    ask("resume", folder, "--tensorboard")
    check(folder)


def test_without_the_flag_there_are_no_event_files(trained):
    assert not (trained / "tensorboard").exists()


def test_without_the_extra_nothing_is_trained(refuse, tmp_path, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "tensorboardX", None)
    command = ["train", "line", "--output", tmp_path, "--name", "run", "--tensorboard"]
    assert "pip install 'charax[all]'" in refuse(*command, status=1)
    assert not (tmp_path / "run").exists()
