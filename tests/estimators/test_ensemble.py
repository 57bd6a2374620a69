"""An ensemble is trained by the engine's epoch: its optimizer, its rule for skipped steps, its handling of failures."""

import threading
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from charax.estimators import _ensemble
from charax.estimators._ensemble import Ensemble, EnsembleConfig, count_groups, count_threads, train_ensemble
from charax.estimators._objectives import AbstractObjective
from charax.estimators._rows import Rows, make_batches
from charax.nn import Linear
from charax.train import LoopConfig, OptimizerConfig, Silent, SolverConfig
from charax.train._step import MAX_SKIPPED_STEPS

EPOCHS, STEPS_PER_EPOCH, ROWS = 5, 2, 40
OPTIMIZER = OptimizerConfig(learning_rate=0.05, weight_decay=0.5, schedule="constant", clip=3e-8)
START = np.full((1, 3), 0.5, np.float32)
NOT_FINITE, FAILING = 1e3, 1e6


@dataclass(frozen=True)
class LeastSquares(AbstractObjective):
    """Least squares, which compiles at once. Large targets stand for a loss that is not finite and a failed solve."""

    traces: ClassVar[list[str]] = []

    def build(self, key: Any) -> Linear:
        return Linear(self.features, self.outputs, key=key)

    def losses(self, model: Any, rows: Any, key: Any) -> Any:
        self.traces.append("losses")
        return jnp.square(model(rows.inputs) - rows.targets).sum(axis=1)

    def loss(self, model: Any, batch: Any, key: Any) -> Any:
        loss, metrics = super().loss(model, batch, key)
        largest = batch.targets.max()
        loss = eqx.error_if(loss, largest >= FAILING, "the backward solve failed")
        return jnp.where(largest >= NOT_FINITE, jnp.nan, loss), metrics

    def predict(self, model: Any, inputs: Any) -> Any:
        return model(inputs)


class Recorder(Silent):
    def __init__(self):
        self.rows: list[dict[str, Any]] = []

    def epoch(self, row: dict[str, Any]) -> None:
        self.rows.append(row)


def make_rows(rows: int = ROWS) -> Rows:
    """Equal rows, so that the gradient of a step does not depend on which rows are in its mini-batch."""
    return Rows(np.full((rows, 2), [1.0, -0.5]), np.full((rows, 1), 3.0), np.ones(rows))


def train(
    rows: Rows, *, epochs: int = EPOCHS, progress: Silent | None = None, optimizer: OptimizerConfig = OPTIMIZER
) -> Ensemble:
    loop = LoopConfig(epochs=epochs, batch_size=-(-len(rows.weights) // STEPS_PER_EPOCH))
    config = EnsembleConfig(1, None, loop, optimizer)
    return train_ensemble(LeastSquares(SolverConfig(), 2, 1), rows, config, progress or Silent(), START)


def adamw(config: OptimizerConfig) -> np.ndarray:
    """Weight and bias after the steps of AdamW, with gradients clipped by their norm."""
    inputs, params, mean, square = np.array([1.0, -0.5, 1.0]), START[0].astype(float), np.zeros(3), np.zeros(3)
    for step in range(1, EPOCHS * STEPS_PER_EPOCH + 1):
        gradient = 2 * (inputs @ params - 3.0) * inputs
        gradient *= min(1, config.clip / np.linalg.norm(gradient))
        mean, square = 0.9 * mean + 0.1 * gradient, 0.999 * square + 0.001 * gradient**2
        update = mean / (1 - 0.9**step) / (np.sqrt(square / (1 - 0.999**step)) + 1e-8)
        params = params - config.learning_rate * (update + config.weight_decay * params)
    return params


def test_optimizer_is_adamw_with_weight_decay_and_clipped_gradients():
    trained = train(make_rows()).model(0)
    assert isinstance(trained, Linear)
    params = np.append(trained.weight.ravel(), trained.bias)
    np.testing.assert_allclose(params, adamw(OPTIMIZER), rtol=1e-4)
    for other in ({"learning_rate": 0.04}, {"weight_decay": 0.0}, {"clip": 1.0}):
        assert np.abs(adamw(replace(OPTIMIZER, **other)) - params).max() > 1e-2


def test_training_ends_when_too_many_steps_in_a_row_were_skipped():
    rows = make_rows()
    diverged = train(rows._replace(targets=rows.targets + NOT_FINITE), epochs=20)
    assert diverged.diverged
    assert len(diverged.losses) == -(-MAX_SKIPPED_STEPS // STEPS_PER_EPOCH)


def test_single_skipped_steps_do_not_end_training():
    rows, recorder = make_rows(), Recorder()
    rows.targets[7] = NOT_FINITE
    trained = train(rows, epochs=12, progress=recorder)
    assert not trained.diverged
    assert [row["skipped"] for row in recorder.rows] == list(range(1, 13))
    assert trained.losses[-1] < trained.losses[0]


def test_failed_backward_solve_ends_training_with_the_best_weights_so_far():
    rows = make_rows()
    failed = train(rows._replace(targets=rows.targets + FAILING))
    assert failed.diverged
    assert np.isnan(failed.losses).tolist() == [True]
    np.testing.assert_array_equal(failed.params, START)


def test_equal_configs_share_a_compiled_program():
    train(make_rows())
    traces = len(LeastSquares.traces)
    assert traces > 0
    train(make_rows(ROWS + 1), epochs=EPOCHS + 1)
    assert len(LeastSquares.traces) == traces


def test_training_ends_when_the_loss_has_not_improved_for_the_patience():
    loop = LoopConfig(epochs=30, batch_size=ROWS // STEPS_PER_EPOCH, patience=3)
    optimizer = replace(OPTIMIZER, learning_rate=10.0, weight_decay=0.0)  # each step is too long: nothing improves
    config = EnsembleConfig(1, None, loop, optimizer)
    trained = train_ensemble(LeastSquares(SolverConfig(), 2, 1), make_rows(), config, Silent(), START)
    assert len(trained.losses) == np.argmin(trained.losses) + 1 + 3


def test_single_mini_batches_share_few_sizes_and_several_are_hardly_padded():
    one, several = (make_batches(np.arange(steps * 199), 199, -1) for steps in (1, 2))
    assert one.shape == (1, 256)
    assert several.shape == (2, 200)
    for batches in (one, several):
        assert sorted(batches[batches >= 0]) == list(range(len(batches) * 199))


def test_rates_are_no_part_of_a_compiled_program_and_have_their_effect():
    plain = train(make_rows())
    traces = len(LeastSquares.traces)
    faster = train(make_rows(), optimizer=replace(OPTIMIZER, learning_rate=0.1))
    free = train(make_rows(), optimizer=replace(OPTIMIZER, weight_decay=0.0))
    assert len(LeastSquares.traces) == traces
    assert faster.best_loss < plain.best_loss
    assert np.linalg.norm(free.params) > np.linalg.norm(plain.params)


def test_groups_of_members_are_of_one_size_and_no_more_than_there_are_cores():
    assert [count_groups(10, cores, work=10**6) for cores in (1, 2, 4, 8, 64)] == [1, 2, 2, 5, 10]
    assert count_groups(5, 2, work=10**6) == 1


def test_members_with_little_work_are_one_group():
    assert [count_groups(10, 2, work=rows * 857) for rows in (135, 1000)] == [1, 2]


def test_workers_of_joblib_train_in_as_many_threads_as_they_are_given():
    given = lambda threads: count_threads({"OMP_NUM_THREADS": threads}, cores=4)
    assert [given(threads) for threads in ("1", "2", "8", "2,1", "", "dynamic")] == [1, 2, 4, 2, 4, 4]
    assert count_threads({}, cores=4) == 4


def test_a_process_with_one_thread_trains_no_groups_in_others(monkeypatch):
    monkeypatch.setattr(_ensemble, "_count_cores", lambda: 2)
    monkeypatch.setattr(_ensemble, "_WORK_OF_A_GROUP", 0)
    threads = {}
    for given in ("1", "2"):
        monkeypatch.setenv("OMP_NUM_THREADS", given)
        used = threads[given] = set()
        monkeypatch.setattr(
            _ensemble.jax, "block_until_ready", lambda tree, used=used: used.add(threading.get_ident()) or tree
        )
        train_ensemble(
            LeastSquares(SolverConfig(), 2, 1),
            make_rows(),
            EnsembleConfig(2, None, LoopConfig(epochs=EPOCHS, batch_size=ROWS), OPTIMIZER),
            Silent(),
        )
    assert threads["1"] == {threading.get_ident()}
    assert len(threads["2"]) > 1


def test_members_that_are_trained_at_the_same_time_are_what_they_are_one_after_the_other(monkeypatch):
    rows = Rows(np.random.default_rng(0).normal(size=(ROWS, 2)), np.ones((ROWS, 1)), np.ones(ROWS))
    loop = LoopConfig(epochs=EPOCHS, batch_size=ROWS // STEPS_PER_EPOCH)
    config = EnsembleConfig(4, 0.25, loop, OPTIMIZER)
    monkeypatch.setattr(_ensemble, "_WORK_OF_A_GROUP", 0)
    trained = {}
    for cores in (1, 4):
        monkeypatch.setattr(_ensemble, "_count_cores", lambda cores=cores: cores)
        recorder = Recorder()
        trained[cores] = train_ensemble(LeastSquares(SolverConfig(), 2, 1), rows, config, recorder), recorder.rows
    (alone, told), (together, told_together) = trained.values()
    np.testing.assert_array_equal(together.params, alone.params)
    assert len(np.unique(alone.params, axis=0)) == 4
    assert (together.losses, together.best_loss) == (alone.losses, alone.best_loss)
    assert [row["loss"] for row in told_together] == [row["loss"] for row in told]
