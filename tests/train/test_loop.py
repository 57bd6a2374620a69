"""The training loop: what is learned, skipped, selected, averaged and stopped."""

import dataclasses
import json
import threading

import equinox as eqx
import jax
import numpy as np
import pytest

from charax.train import Devices, Diverged, LoopConfig, OptimizerConfig, Splits, fit, flatten_model
from charax.train._evaluation import Evaluation
from tests.train.line_task import LineTask

LOOP = LoopConfig(epochs=4, batch_size=8)
FAST = OptimizerConfig(learning_rate=0.1, weight_decay=0.0, schedule="constant")


def plain(history):
    return [{name: value for name, value in row.items() if name != "seconds"} for row in history]


def leaves(model):
    return [np.asarray(leaf) for leaf in jax.tree.leaves(model)]


def poisoned(splits: Splits, rows: slice, value: float) -> Splits:
    x = splits.train.x.copy()
    x[rows] = value
    return splits._replace(train=splits.train._replace(x=x))


def test_learns(line):
    history = fit(*line, dataclasses.replace(LOOP, epochs=30), FAST).history
    assert history[0]["loss"] > 1
    assert history[-1]["test_loss"] < 1e-3


def test_same_seed_gives_identical_metrics_and_another_does_not(line):
    first, second, other = (plain(fit(*line, dataclasses.replace(LOOP, seed=seed), FAST).history) for seed in (0, 0, 1))
    assert first == second
    assert first != other


def test_nothing_is_traced_after_the_first_epoch(line):
    fit(*line, dataclasses.replace(LOOP, epochs=1), FAST)
    after_one = len(line.task.traces)
    line.task.traces.clear()
    fit(*line, dataclasses.replace(LOOP, epochs=5), FAST)
    assert len(line.task.traces) == after_one
    # The shapes of the metrics and the step; one evaluation serves the validation and the test split.
    assert line.task.traces.count("loss") == 2


class Prepared(LineTask):
    """A line whose samples of the third epoch are prepared for it."""

    threads: list[str] = eqx.field(static=True, default_factory=list)
    fails: bool = eqx.field(static=True, default=False)

    def prepare_epoch(self, train, order, generator):
        self.threads.append(threading.current_thread().name)
        if len(self.threads) < 3:
            return train
        if self.fails:
            raise ValueError("no partners for the third epoch")
        return train._replace(y=train.y + 100)


def test_the_next_epoch_is_prepared_by_another_thread(line):
    task = Prepared(**vars(line.task))
    history = fit(task, line.splits, LOOP, FAST).history
    assert task.threads[0] == "MainThread"
    assert len(task.threads) == 4
    assert not any(name == "MainThread" for name in task.threads[1:])
    losses = [row["loss"] for row in history[:-1]]
    assert losses[2] > 100 * losses[1]  # its samples, not those of another epoch
    with pytest.raises(ValueError, match="no partners for the third epoch"):
        fit(Prepared(**vars(line.task), fails=True), line.splits, LOOP, FAST)


def test_the_evaluation_is_compiled_by_another_thread(line, monkeypatch):
    compile_, threads = jax.stages.Lowered.compile, []
    monkeypatch.setattr(
        jax.stages.Lowered, "compile", lambda self: (threads.append(threading.current_thread().name), compile_(self))[1]
    )
    params, unflatten = flatten_model(line.task.build(jax.random.key(0)))
    evaluate, validation = Evaluation(line.task, unflatten, 8, Devices()), line.splits.validation
    before = evaluate(params, validation)
    evaluate.compile_ahead(params, validation)
    assert evaluate(params, validation) == before
    assert len(threads) == 1
    assert threads[0] != "MainThread"


@pytest.mark.parametrize("value", [np.nan, 1e3], ids=["not finite", "failed solve"])
def test_a_bad_step_is_skipped_and_counted(line, value):
    history = fit(line.task, poisoned(line.splits, slice(0, 1), value), LOOP, FAST).history
    assert [row["skipped"] for row in history[:-1]] == [1, 2, 3, 4]  # the one bad sample, once per epoch
    assert history[-1]["test_loss"] < 1
    json.dumps(history, allow_nan=False)  # its metrics are left out of the averages


def test_a_skipped_step_changes_no_parameter(line):
    untrained = line.task.build(jax.random.split(jax.random.key(0))[0])
    model = fit(line.task, poisoned(line.splits, slice(None), np.nan), LoopConfig(epochs=1, batch_size=8), FAST).model
    assert all(map(np.array_equal, leaves(model), leaves(untrained)))


@pytest.mark.parametrize(("value", "words"), [(np.nan, "lower the learning rate"), (1e3, "the solve failed")])
def test_ten_bad_steps_in_a_row_stop_the_run_with_a_reason(line, tmp_path, value, words):
    with pytest.raises(Diverged, match=f"10 steps in a row.*{words}.*checkpoint"):
        fit(line.task, poisoned(line.splits, slice(None), value), LOOP, FAST, folder=tmp_path)
    assert [path.name for path in (tmp_path / "checkpoints").iterdir()] == ["5"]


def test_patience_stops_when_validation_does_not_improve(line):
    validation = line.splits.validation
    contrary = validation._replace(y=validation.y[::-1] * -3)  # cannot be learned from the train split
    splits = line.splits._replace(validation=contrary)
    *epochs, test = fit(line.task, splits, LoopConfig(epochs=40, batch_size=8, patience=3), FAST).history
    assert len(epochs) == test["best_epoch"] + 3 < 40


def test_validation_selects_the_weights(line):
    zeros = line.splits.validation._replace(y=np.zeros_like(line.splits.validation.y))
    fitted = fit(line.task, line.splits._replace(validation=zeros), dataclasses.replace(LOOP, epochs=10), FAST)
    losses = [row["validation_loss"] for row in fitted.history[:-1]]
    assert fitted.history[-1]["best_epoch"] == int(np.argmin(losses)) + 1 < 10
    evaluated = line.task.metrics(fitted.model, jax.tree.map(jax.numpy.asarray, zeros))["loss"].mean()
    assert float(evaluated) == pytest.approx(min(losses), rel=1e-5)


def test_the_last_weights_are_kept_on_request(line):
    zeros = line.splits.validation._replace(y=np.zeros_like(line.splits.validation.y))
    loop = dataclasses.replace(LOOP, epochs=10, weights="last")
    fitted = fit(line.task, line.splits._replace(validation=zeros), loop, FAST)
    losses = [row["validation_loss"] for row in fitted.history[:-1]]
    assert fitted.history[-1]["best_epoch"] == 10 > int(np.argmin(losses)) + 1
    evaluated = line.task.metrics(fitted.model, jax.tree.map(jax.numpy.asarray, zeros))["loss"].mean()
    assert float(evaluated) == pytest.approx(losses[-1], rel=1e-5)
    # Patience still counts from the best epoch.
    short = fit(
        line.task, line.splits._replace(validation=zeros), dataclasses.replace(loop, epochs=40, patience=3), FAST
    )
    assert short.history[-1]["best_epoch"] == len(short.history) - 1 == int(np.argmin(losses)) + 1 + 3


def test_the_test_split_has_no_influence(line):
    other = line.splits._replace(test=line.splits.test._replace(y=line.splits.test.y + 100))
    first, second = fit(*line, LOOP, FAST), fit(line.task, other, LOOP, FAST)
    assert all(map(np.array_equal, leaves(first.model), leaves(second.model)))
    assert first.history[-1]["test_loss"] < second.history[-1]["test_loss"]


@pytest.mark.parametrize("batch_size", [1, 4, 13, 50])
def test_the_mean_over_a_split_does_not_depend_on_the_batches(line, batch_size):
    model = line.task.build(jax.random.key(3))
    vector, unflatten = flatten_model(model)
    evaluate = Evaluation(line.task, unflatten, batch_size, Devices())
    validation = line.splits.validation
    exact = float(line.task.metrics(model, jax.tree.map(jax.numpy.asarray, validation))["loss"].mean())
    assert evaluate(vector, validation)["loss"] == pytest.approx(exact, rel=1e-5)


def test_short_epochs_continue_a_pass_and_the_next_pass_has_another_order(line, monkeypatch):
    orders: list[list[int]] = []

    def note(task, train, order, generator):
        orders.extend(order.tolist())
        return train

    monkeypatch.setattr(type(line.task), "prepare_epoch", note)
    fit(*line, dataclasses.replace(LOOP, epochs=2), FAST)
    whole = orders.copy()
    orders.clear()
    fit(*line, dataclasses.replace(LOOP, epochs=4, steps_per_epoch=2), FAST)
    assert orders == [*whole[:4], *whole[5:9]]  # the fifth step of a pass fills no epoch


def test_more_steps_than_a_pass_has_are_refused(line):
    with pytest.raises(ValueError, match="--steps-per-epoch 6 is more than the 5 mini-batches"):
        fit(*line, dataclasses.replace(LOOP, steps_per_epoch=6), FAST)


def test_less_data_than_a_batch_is_one_batch(line):
    assert fit(*line, LoopConfig(epochs=2, batch_size=1000), FAST).history[0]["step"] == 1


def test_splits_whose_arrays_disagree_are_refused(line):
    with pytest.raises(ValueError, match=r"same number of samples, above 0, got \[3, 40\]"):
        fit(line.task, line.splits._replace(train=line.splits.train._replace(y=np.zeros(3, np.float32))))


def test_what_is_refined_after_training_is_the_model_and_is_evaluated(line, monkeypatch):
    zero = lambda self, model, splits, say: (jax.tree.map(np.zeros_like, model), {"found": 7})
    monkeypatch.setattr(type(line.task), "refine", zero)
    fitted = fit(*line, LOOP, FAST)
    assert (fitted.history[-1]["found"], fitted.history[-1]["refined"]) == (7, True)
    assert fitted.history[-1]["test_loss"] == pytest.approx(np.square(line.splits.test.y).mean(), rel=1e-5)
    assert not any(leaf.any() for leaf in leaves(fitted.model))


def test_programs_are_compiled_with_the_options_of_the_task(line, monkeypatch):
    monkeypatch.setattr(type(line.task), "compiler_options", property(lambda self: {"xla_of_nobody": True}))
    with pytest.raises(jax.errors.JaxRuntimeError, match="xla_of_nobody"):
        fit(*line, LOOP, FAST)
    evaluate = Evaluation(line.task, flatten_model(line.task.build(jax.random.key(0)))[1], 8, Devices())
    with pytest.raises(jax.errors.JaxRuntimeError, match="xla_of_nobody"):
        evaluate(flatten_model(line.task.build(jax.random.key(0)))[0], line.splits.test)
