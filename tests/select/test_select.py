"""Choosing k: the criteria by hand, and a sweep that is interrupted."""

import json
import math

import pytest

from charax.cli import main
from charax.select import aic, bic, pick, select_dimension
from charax.tasks.classification import ClassificationConfig
from charax.train import LoopConfig, evaluate

QUICK = ClassificationConfig(width=4, loop=LoopConfig(epochs=1, batch_size=512))


def test_criteria_are_those_of_the_books():
    # A fair coin thrown 100 times, one parameter: log L = -100 ln 2.
    loss = math.log(2)
    assert aic(loss, samples=100, parameters=1) == pytest.approx(2 + 200 * math.log(2))
    assert bic(loss, samples=100, parameters=1) == pytest.approx(math.log(100) + 200 * math.log(2))


def test_of_equal_candidates_the_smallest_k_is_picked():
    same = {"validation_mean": 0.5, "aic": 1.0, "bic": 1.0}
    assert pick([{"k": 4, **same}, {"k": 2, **same}]) == {"validation": 2, "aic": 2, "bic": 2}


@pytest.mark.slow
def test_sweep_counts_what_it_says_and_goes_on_where_it_was(tmp_path):
    first = select_dimension(QUICK, [1, 3], seeds=2, folder=tmp_path)
    small, large = first.rows()
    assert [small["k"], large["k"]] == [1, 3]
    assert large["parameters"] > small["parameters"]
    run = first.tried[1].runs[0]
    assert run.trained.model.ode.field.characteristic_dim == 3
    # The criterion by hand, from the run itself and the size of the training part.
    losses = [evaluate(run.folder, "train")["loss"] for run in first.tried[1].runs]
    samples = len(run.settings.prepare().train.targets)
    expected = 2 * large["parameters"] + 2 * samples * sum(losses) / 2
    assert large["aic"] == pytest.approx(expected, rel=1e-5)
    assert large["test_loss"] == pytest.approx(
        sum(evaluate(run.folder, "test")["loss"] for run in first.tried[1].runs) / 2, rel=1e-5
    )
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("metrics.jsonl")}
    again = select_dimension(QUICK, [1, 3], seeds=2, folder=tmp_path)
    assert again.rows() == first.rows()
    assert before == {path: path.stat().st_mtime_ns for path in tmp_path.rglob("metrics.jsonl")}


def test_select_command_writes_table_and_picture(tmp_path, capsys):
    flags = ["--width", "4", "--epochs", "1", "--batch-size", "512", "--k", "1", "2", "--seeds", "1"]
    assert main(["select", "--data", "digits", *flags, "--output", str(tmp_path), "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert [row["k"] for row in answer["rows"]] == [1, 2]
    names = ("dataset", "k", "parameters", "accuracy_mean", "accuracy_sd", "train_loss", "test_loss", "aic", "bic")
    assert set(names) <= answer["rows"][0].keys()
    assert answer["picked"]["bic"] == 1  # after one epoch no fit is worth the parameters
    assert {"ablation.json", "ablation.md", "ablation.png"} <= {path.name for path in tmp_path.iterdir()}


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (["--k", "0"], "at least 1"),
        (["--method", "node"], "use c-node"),
        (["--seeds", "0"], "seeds must be at least 1"),
    ],
)
def test_bad_input_of_select_is_named(tmp_path, capsys, flags, words):
    assert main(["select", "--output", str(tmp_path / "none"), *flags]) == 2
    assert words in capsys.readouterr().err
    assert not (tmp_path / "none").exists()


def test_ablation_refuses_data_it_has_no_grid_for(capsys):
    assert main(["reproduce", "ablation", "--dataset", "mnist"]) == 2
    assert "choose from digits" in capsys.readouterr().err
