"""Checkpoints: complete, verified, and with older ones to fall back to."""

from pathlib import Path

import numpy as np
import pytest

from charax.train import LoopConfig, OptimizerConfig, fit
from charax.train._checkpoints import Checkpoints, Position, truncate_lines

TREE = {"weight": np.arange(2000, dtype=np.float32), "step": np.int32(7)}


def saved(folder: Path) -> Checkpoints:
    checkpoints = Checkpoints(folder, print)
    for number in (1, 2, 3, 4):
        state = {**TREE, "step": np.int32(number)}
        checkpoints.save(number, state, Position(epoch=number, best_score=0.1))
    return checkpoints


def truncate(folder: Path) -> None:
    for path in folder.rglob("*"):
        if path.is_file():
            path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def alter(folder: Path) -> None:
    metadata = folder / "position" / "metadata"
    metadata.write_text(metadata.read_text().replace('"weight": ', '"weight": 1'))


def test_the_newest_comes_back_as_it_was(tmp_path):
    found = saved(tmp_path).restore(TREE)
    assert found is not None
    state, position = found
    assert position == Position(epoch=4, best_score=0.1)
    assert int(state["step"]) == 4
    assert np.array_equal(state["weight"], TREE["weight"])


def test_only_a_few_are_kept(tmp_path):
    saved(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["2", "3", "4"]


@pytest.mark.parametrize("damage", [truncate, alter])
def test_a_damaged_one_falls_back_to_the_one_before_and_says_so(tmp_path, capsys, damage):
    checkpoints = saved(tmp_path)
    damage(tmp_path / "4")
    found = checkpoints.restore(TREE)
    assert found is not None
    assert found[1].epoch == 3
    assert "checkpoint 4 is damaged" in capsys.readouterr().out
    checkpoints.save(4, TREE, Position(epoch=4))  # the run continues and writes it again
    assert (found := checkpoints.restore(TREE)) is not None
    assert found[1].epoch == 4


def test_those_of_another_model_are_not_restored(tmp_path, capsys):
    assert saved(tmp_path).restore({**TREE, "weight": np.zeros(3, np.float32)}) is None
    assert "checkpoint 2 is damaged" in capsys.readouterr().out


def test_no_checkpoint_is_no_state(tmp_path):
    assert Checkpoints(tmp_path, print).restore(TREE) is None


def test_lines_after_the_checkpoint_are_removed(tmp_path):
    path = tmp_path / "metrics.jsonl"
    path.write_text('{"epoch": 1}\n{"epoch": 2}\n{"epo')
    truncate_lines(path, 1)
    assert path.read_text() == '{"epoch": 1}\n'


@pytest.mark.parametrize("content", [None, '{"epoch": 1}\n', '{"epoch": 1}\n{"epo'])
def test_lines_that_the_checkpoint_counts_must_be_there(tmp_path, content):
    path = tmp_path / "metrics.jsonl"
    if content is not None:
        path.write_text(content)
    with pytest.raises(ValueError, match=r"metrics\.jsonl lacks lines that the checkpoint counts"):
        truncate_lines(path, 2)


def test_a_run_resumes_from_the_checkpoint_before_a_damaged_one(line, tmp_path, metrics_of):
    loop = LoopConfig(epochs=4, batch_size=8)
    optimizer = OptimizerConfig(learning_rate=0.1, weight_decay=0.01, schedule="constant", ema=0.9)
    fit(*line, loop, optimizer, folder=tmp_path)
    whole = metrics_of(tmp_path)
    truncate(tmp_path / "checkpoints" / "20")
    fit(*line, loop, optimizer, folder=tmp_path)
    assert metrics_of(tmp_path) == whole
