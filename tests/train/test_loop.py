import dataclasses

import jax
import numpy as np
import pytest

from charax.train import Diverged, LoopConfig, OptimizerConfig, Problem, fit
from charax.train._devices import Devices
from charax.train._evaluation import make_evaluation
from charax.train._parameters import flatten_model

LOOP = LoopConfig(epochs=4, batch_size=8)
FAST = OptimizerConfig(learning_rate=0.1, weight_decay=0.0, schedule="constant")


def plain(history):
    return [{name: value for name, value in row.items() if name != "seconds"} for row in history]


def leaves(model):
    return [np.asarray(leaf) for leaf in jax.tree.leaves(model)]


def poisoned(problem: Problem, rows: slice, value: float) -> Problem:
    x = problem.train.x.copy()
    x[rows] = value
    return problem._replace(train=problem.train._replace(x=x))


def test_learns(line):
    history = fit(line, dataclasses.replace(LOOP, epochs=30), FAST).history
    assert history[0]["loss"] > 1
    assert history[-1]["test_loss"] < 1e-3


def test_same_seed_gives_identical_metrics_and_another_does_not(line):
    first, second, other = (plain(fit(line, dataclasses.replace(LOOP, seed=seed), FAST).history) for seed in (0, 0, 1))
    assert first == second
    assert first != other


def test_nothing_is_traced_after_the_first_epoch(line):
    fit(line, dataclasses.replace(LOOP, epochs=1), FAST)
    after_one = len(line.task.traces)
    line.task.traces.clear()
    fit(line, dataclasses.replace(LOOP, epochs=5), FAST)
    assert len(line.task.traces) == after_one
    # The shapes of the metrics, the step, and one evaluation for validation and test.
    assert line.task.traces.count("loss") == 2


@pytest.mark.parametrize("value", [np.nan, 1e3], ids=["not finite", "failed solve"])
def test_a_bad_step_is_skipped_and_counted(line, value):
    history = fit(poisoned(line, slice(0, 1), value), LOOP, FAST).history
    assert [row["skipped"] for row in history[:-1]] == [1, 2, 3, 4]  # the one bad sample, once an epoch
    assert history[-1]["test_loss"] < 1


def test_a_skipped_step_changes_no_parameter(line):
    settings = LoopConfig(epochs=1, batch_size=8)
    untrained = line.task.build(jax.random.split(jax.random.key(0))[0])
    model = fit(poisoned(line, slice(None), np.nan), settings, FAST).model
    assert all(map(np.array_equal, leaves(model), leaves(untrained)))


@pytest.mark.parametrize(("value", "words"), [(np.nan, "learning rate"), (1e3, "the solve failed")])
def test_ten_bad_steps_in_a_row_stop_the_run_with_a_reason(line, tmp_path, value, words):
    with pytest.raises(Diverged, match=f"10 steps in a row.*{words}.*checkpoint"):
        fit(poisoned(line, slice(None), value), LOOP, FAST, folder=tmp_path)
    assert [path.name for path in (tmp_path / "checkpoints").iterdir()] == ["5"]


def test_patience_stops_when_validation_does_not_improve(line):
    shuffled = line.validation._replace(y=line.validation.y[::-1] * -3)  # cannot be learned from the training part
    history = fit(line._replace(validation=shuffled), LoopConfig(epochs=40, batch_size=8, patience=3), FAST).history
    *epochs, test = history
    assert len(epochs) == test["best_epoch"] + 3 < 40


def test_validation_chooses_the_weights(line):
    other = line.validation._replace(y=np.zeros_like(line.validation.y))
    fitted = fit(line._replace(validation=other), dataclasses.replace(LOOP, epochs=10), FAST)
    losses = [row["validation_loss"] for row in fitted.history[:-1]]
    assert fitted.history[-1]["best_epoch"] == int(np.argmin(losses)) + 1
    measured = line.task.measure(fitted.model, jax.tree.map(jax.numpy.asarray, other))["loss"].mean()
    assert float(measured) == pytest.approx(min(losses), rel=1e-5)


def test_the_average_of_the_weights_is_what_is_evaluated(line):
    plain_model = fit(line, LOOP, FAST).model
    averaged = fit(line, LOOP, dataclasses.replace(FAST, ema=0.9)).model
    assert not np.allclose(leaves(plain_model)[0], leaves(averaged)[0], atol=1e-4)


@pytest.mark.parametrize("schedule", ["cosine", "paper", "constant"])
def test_every_schedule_trains(line, schedule):
    history = fit(line, LOOP, dataclasses.replace(FAST, schedule=schedule)).history
    assert history[-2]["loss"] < history[0]["loss"]


@pytest.mark.parametrize("batch_size", [1, 4, 13, 50])
def test_the_mean_over_a_split_does_not_depend_on_the_batches(line, batch_size):
    model = line.task.build(jax.random.key(3))
    vector, rebuild = flatten_model(model)
    evaluate = make_evaluation(line.task, rebuild, batch_size, Devices())
    exact = float(line.task.measure(model, jax.tree.map(jax.numpy.asarray, line.validation))["loss"].mean())
    assert evaluate(vector, line.validation)["loss"] == pytest.approx(exact, rel=1e-5)


def test_less_data_than_a_batch_is_one_batch(line):
    assert fit(line, LoopConfig(epochs=2, batch_size=1000), FAST).history[0]["step"] == 1


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        (LoopConfig, {"epochs": 0}),
        (LoopConfig, {"seed": -1}),
        (OptimizerConfig, {"learning_rate": 0.0}),
        (OptimizerConfig, {"ema": 1.0}),
    ],
)
def test_a_setting_that_makes_no_sense_is_named(kind, values):
    with pytest.raises(ValueError, match=next(iter(values))):
        kind(**values)
