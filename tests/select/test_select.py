"""Choosing k: the criteria by hand, a sweep that is interrupted, and the command."""

import json
import math
from dataclasses import fields, is_dataclass
from pathlib import Path

import numpy as np
import pytest

from charax.cli import main
from charax.data import load_dataset
from charax.select import aic, bic, pick, select_dimension
from charax.tasks import ClassificationConfig
from charax.train import LoopConfig, Sweep, SweepConfig, evaluate

ROWS = 60


@pytest.fixture(scope="module")
def table(tmp_path_factory) -> Path:
    """A small table with two classes."""
    y = np.arange(ROWS) % 2
    path = tmp_path_factory.mktemp("data") / "two.npz"
    np.savez(path, x=np.random.default_rng(0).normal(size=(ROWS, 3)) + 2 * y[:, None], y=y)
    return path


@pytest.fixture(scope="module")
def selected(table, tmp_path_factory) -> tuple[list[str], Path]:
    """The command, and the folder in which it was run once."""
    folder = tmp_path_factory.mktemp("selected")
    flags = ["--width", "4", "--epochs", "1", "--k", "2", "1", "--seeds", "1", "--output", str(folder)]
    command = ["select", "--data", str(table), *flags]
    assert main(command) == 0
    return command, folder


def stored(folder: Path) -> dict:
    return json.loads((folder / "ablation.json").read_text())


def results(folder: Path) -> dict[Path, int]:
    """What was computed, and when."""
    return {path: path.stat().st_mtime_ns for path in folder.glob("k*/**/*") if path.is_file()}


def test_criteria_are_those_of_the_books():
    # A fair coin thrown 100 times, one parameter: log L = -100 ln 2.
    loss = math.log(2)
    assert aic(loss, samples=100, parameters=1) == pytest.approx(2 + 200 * math.log(2))
    assert bic(loss, samples=100, parameters=1) == pytest.approx(math.log(100) + 200 * math.log(2))


def test_of_equal_candidates_the_smallest_k_is_picked():
    same = {"validation_mean": 0.5, "aic": 1.0, "bic": 1.0}
    assert pick([{"k": 4, **same}, {"k": 2, **same}]) == {"validation": 2, "aic": 2, "bic": 2}


def test_the_command_leaves_a_table_and_a_figure_with_the_smallest_k_first(selected):
    _, folder = selected
    answer = stored(folder)
    assert list(answer) == ["rows", "picked"]
    assert [row["k"] for row in answer["rows"]] == [1, 2]
    assert set(answer["rows"][0]) == {
        *("dataset", "k", "parameters", "accuracy_mean", "accuracy_sd", "validation_mean", "validation_sd"),
        *("train_loss", "train_loss_sd", "test_loss", "test_loss_sd", "aic", "bic", "seconds"),
    }
    assert answer["picked"]["bic"] == 1  # after one epoch no fit is worth the parameters
    assert {path.name for path in folder.iterdir()} == {"ablation.json", "ablation.md", "ablation.png", "k1", "k2"}


def test_every_training_sample_is_one_observation(selected, table):
    _, folder = selected
    samples = len(load_dataset(str(table)).train.targets)
    assert samples < ROWS
    for row in stored(folder)["rows"]:
        (run,) = (folder / f"k{row['k']}").iterdir()
        loss = evaluate(run, "train")["loss"]
        assert row["train_loss"] == pytest.approx(loss, rel=1e-5)
        assert row["aic"] == pytest.approx(2 * row["parameters"] + 2 * samples * loss, rel=1e-5)
        assert row["bic"] == pytest.approx(math.log(samples) * row["parameters"] + 2 * samples * loss, rel=1e-5)


def test_called_again_it_computes_nothing_and_prints_the_same(selected, capsys):
    command, folder = selected
    before, answer = results(folder), stored(folder)
    assert main([*command, "--json"]) == 0
    (line,) = capsys.readouterr().out.splitlines()
    assert json.loads(line) == answer
    assert len(before) > 10
    assert results(folder) == before


def test_other_settings_in_the_same_folder_are_refused_by_name(selected, capsys):
    command, folder = selected
    before, answer = results(folder), stored(folder)
    assert main([*command, "--epochs", "2", "--json"]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "other settings: loop.epochs (1 there, 2 here)" in captured.err
    assert (results(folder), stored(folder)) == (before, answer)


@pytest.mark.slow
def test_sweep_counts_what_it_says_and_resumes(tmp_path):
    quick = ClassificationConfig(width=4, loop=LoopConfig(epochs=1, batch_size=512))
    first = select_dimension(quick, [1, 3], seeds=2, folder=tmp_path)
    small, large = first.rows()
    assert [small["k"], large["k"]] == [1, 3]
    assert large["parameters"] > small["parameters"]
    runs = first.candidates[1].runs
    assert runs[0].trained.model.ode.field.characteristic_dim == 3
    # The criterion by hand, from the runs themselves and the size of the train split.
    losses = [evaluate(run.folder, "train")["loss"] for run in runs]
    samples = len(runs[0].splits.train.targets)
    expected = 2 * large["parameters"] + 2 * samples * sum(losses) / 2
    assert large["aic"] == pytest.approx(expected, rel=1e-5)
    test_losses = [evaluate(run.folder, "test")["loss"] for run in runs]
    assert large["test_loss"] == pytest.approx(sum(test_losses) / 2, rel=1e-5)
    before = results(tmp_path)
    again = select_dimension(quick, [1, 3], seeds=2, folder=tmp_path)
    assert again.rows() == first.rows()
    assert results(tmp_path) == before


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ("--k 0", "at least 1"),
        ("--method node", "use c-node"),
        ("--seeds 0", "seeds must be at least 1"),
        # What is varied or fixed by the selection.
        ("--seed 1", "--seeds"),
        ("--jacobian joint", "leave it out"),
        ("--characteristic-dim 3", "--k"),
    ],
)
def test_bad_input_of_select_is_named_before_anything_is_written(tmp_path, capsys, flags, message):
    assert main(["select", "--output", str(tmp_path / "none"), *flags.split()]) == 2
    captured = capsys.readouterr()
    assert message in captured.err
    assert captured.out == ""
    assert not (tmp_path / "none").exists()


def leaf_names(config: object) -> list[str]:
    """The names of all settings of a config, also of those inside it."""
    values = {field.name: getattr(config, field.name) for field in fields(config)}  # pyright: ignore[reportArgumentType]
    nested = [leaf for value in values.values() if is_dataclass(value) for leaf in leaf_names(value)]
    return [name for name, value in values.items() if not is_dataclass(value)] + nested


VALUES = {
    "data": "mnist",
    "target": "class",
    "separator": ";",
    "shrink": "2",
    "max_samples": "100",
    "augmentation": "none",
    "method": "anode+c-node",
    "preset": "dense",
    "width": "7",
    "augment_dim": "3",
    "characteristic_dim": "3",
    "jacobian": "joint",
    "solver": "heun",
    "steps": "7",
    "rtol": "0.1",
    "atol": "0.1",
    "adjoint": "backsolve",
    "precision": "bfloat16",
    "learning_rate": "0.1",
    "weight_decay": "0.1",
    "schedule": "constant",
    "clip": "7",
    "ema": "0.9",
    "epochs": "7",
    "batch_size": "7",
    "steps_per_epoch": "7",
    "weights": "last",
    "seed": "7",
    "patience": "7",
    "checkpoint_steps": "7",
    "k": "7",
    "seeds": "7",
    "members": "7",
    "size": "7",
    "jobs": "7",
    "backend": "dask",
    "address": "localhost:8786",
    "slurm": "local",
    "minutes": "7",
}
"""Another value for every flag."""


class Started(BaseException):
    """The training would begin."""


@pytest.fixture
def start(monkeypatch, tmp_path):
    """Call `select` up to its first training: what would be trained, or the exit status."""

    def begin(self, groups):
        raise Started(groups, self.config)

    def call(*flags: str) -> int | tuple:
        try:
            return main(["select", "--output", str(tmp_path), *flags])
        except Started as started:
            return started.args

    monkeypatch.setattr(Sweep, "run_groups", begin)
    return call


@pytest.mark.parametrize("name", [*leaf_names(ClassificationConfig()), *leaf_names(SweepConfig()), "k", "seeds"])
def test_every_flag_changes_what_is_trained_or_is_refused(name, start, capsys):
    flag = f"--{name.replace('_', '-')}"
    other = start(flag, VALUES[name])
    assert other != start()
    assert other != 2 or flag in capsys.readouterr().err
