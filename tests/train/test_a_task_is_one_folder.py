"""A new task is one folder and one line: `line_task`, through the public API and the command line."""

import csv

import jax
import numpy as np
import pytest

import charax
from charax.cli import main
from charax.train import TASKS, LoopConfig, load_config, register_task, train
from tests.train.line_task import LineConfig, LineTask


@pytest.fixture
def new_points(tmp_path):
    path = tmp_path / "new.npz"
    np.savez(path, x=np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]], np.float32))
    return path


def test_it_is_trained_loaded_evaluated_and_predicts(line_task, tmp_path, new_points):
    run = train(LineConfig(loop=LoopConfig(epochs=20, batch_size=8)), tmp_path / "run")
    assert run.summary().keys() == {"run", "loss", "validation_loss", "nfe", "parameters", "seconds"}
    assert run.summary()["parameters"] == 3
    trained = charax.load_model(tmp_path / "run")
    assert isinstance(trained.task, LineTask)
    assert all(map(np.array_equal, jax.tree.leaves(trained.model), jax.tree.leaves(run.trained.model)))
    assert charax.evaluate(tmp_path / "run")["loss"] == run.history[-1]["test_loss"]
    assert charax.load_run(tmp_path / "run").history == run.history
    heights = [float(row[1]) for row in charax.predict(tmp_path / "run", new_points).rows]
    np.testing.assert_allclose(heights, [0.5, 2.5, -0.5], atol=0.2)


def test_every_command_knows_it(trained, ask, new_points, tmp_path):
    ended = ask("resume", trained)
    assert ask("evaluate", trained)["loss"] == ended["loss"]
    assert ask("evaluate", trained, "--split", "validation")["loss"] == pytest.approx(ended["validation_loss"])
    answer = ask("predict", trained, new_points, "--output", tmp_path / "out.csv")
    assert (answer["output"], answer["predictions"]) == (str(tmp_path / "out.csv"), 3)
    with (tmp_path / "out.csv").open() as file:
        assert [row[0] for row in csv.reader(file)] == ["input", "0", "1", "2"]


def test_its_fields_are_the_flags(ask, tmp_path):
    flags = "--data plane --method linear --points 9 --slopes 1 2 3 --epochs 1 --batch-size 4 --learning-rate 0.01"
    answer = ask("train", "line", *flags.split(), "--steps", 3, "--output", tmp_path, "--name", "run")
    assert answer["parameters"] == 3  # three slopes, and no intercept
    config = load_config(tmp_path / "run")
    assert isinstance(config, LineConfig)
    assert (config.method, config.points, config.slopes) == ("linear", 9, (1.0, 2.0, 3.0))
    assert (config.loop.epochs, config.optimizer.learning_rate, config.solver.steps) == (1, 0.01, 3)


def test_its_run_has_all_files_and_its_own_figures(trained):
    names = {path.name for path in trained.iterdir()}
    assert names == {"config.json", "metrics.jsonl", "checkpoints", "model.safetensors", "model.json", "plots"}
    assert {path.name for path in (trained / "plots").iterdir()} == {"training.png", "points.txt"}


def test_it_cannot_sample_and_says_so(trained, refuse):
    assert "not a density" in refuse("sample", trained)


def test_two_tasks_cannot_share_a_name(line_task):
    class Other(LineConfig):
        pass

    register_task(LineConfig)  # the same again is the same
    with pytest.raises(ValueError, match="there is a task 'line' already: LineConfig"):
        register_task(Other)


def test_without_its_line_nothing_knows_it(trained, capsys):
    assert "line" not in TASKS
    with pytest.raises(
        ValueError, match=r"config\.json is of the task 'line', which is not registered; there are clas"
    ):
        charax.load_model(trained)
    assert main(["evaluate", str(trained)]) == 2
    with pytest.raises(SystemExit):
        main(["train", "line"])


def test_a_task_without_predictions_or_figures_says_so(line, tmp_path):
    class Bare(LineTask):
        predict, plot = charax.AbstractTask.predict, charax.AbstractTask.plot

    bare = Bare(line.task.solver, line.task.spec)
    model = bare.build(jax.random.key(0))
    with pytest.raises(ValueError, match="no predictions"):
        bare.predict(model, tmp_path)
    assert bare.plot(model, line.splits, tmp_path, data="plane") == []
