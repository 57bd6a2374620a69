"""Every field of `OptimizerConfig` and `LoopConfig` does what its docstring says."""

import dataclasses
import math

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from charax.train import LoopConfig, OptimizerConfig, fit
from charax.train._step import MAX_SKIPPED_STEPS, initial_state, make_epoch, make_optimizer

RATE = 0.02
WITHOUT = 1e6
"""A norm that no gradient has."""


def updates_of(config: OptimizerConfig, gradients, *, params: float = 1.0, epochs: int = 20, steps_per_epoch: int = 10):
    """The updates that a sequence of gradients leads to, with parameters that stay where they are."""
    transform = make_optimizer(config, epochs=epochs, steps_per_epoch=steps_per_epoch)
    where = jnp.full(2, params)

    def update(state, gradient):
        updates, state = transform.update(gradient, state, where)
        return state, updates

    return np.asarray(jax.lax.scan(update, transform.init(where), jnp.asarray(gradients, jnp.float32))[1])


def rates_of(schedule, steps: int) -> np.ndarray:
    """The learning rates of a schedule: without gradients, AdamW with weight decay 1 subtracts rate × parameters."""
    config = OptimizerConfig(learning_rate=RATE, weight_decay=1.0, schedule=schedule)
    return -updates_of(config, np.zeros((steps, 2)))[:, 0]


def cosine(n: int) -> float:
    """Linear warm-up over the first 20 of 200 steps, from a hundredth; then half a cosine, to zero."""
    if n < 20:
        return RATE / 100 + (RATE - RATE / 100) * n / 20
    return RATE * (1 + math.cos(math.pi * (n - 20) / 180)) / 2


SCHEDULES = {
    "constant": lambda n: RATE,
    "cosine": cosine,
    "paper": lambda n: RATE * 0.9 ** (n // 50),  # 5 epochs of 10 steps
    "warmup": lambda n: RATE / 1000 + (RATE - RATE / 1000) * min(n, 1000) / 1000,
}


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_schedule_has_the_learning_rates_it_says(schedule):
    steps = 1_100 if schedule == "warmup" else 200
    expected = [SCHEDULES[schedule](n) for n in range(steps)]
    np.testing.assert_allclose(rates_of(schedule, steps), expected, rtol=1e-4, atol=1e-8)


def test_a_schedule_that_is_unknown_is_named_with_those_there_are():
    with pytest.raises(ValueError, match="unknown schedule 'linear'; choose from cosine, paper, warmup, constant"):
        make_optimizer(OptimizerConfig(schedule="linear"), epochs=1, steps_per_epoch=1)


@pytest.mark.parametrize("rate", [0.01, 0.1])
def test_learning_rate_is_the_size_of_the_first_update(rate):
    config = OptimizerConfig(learning_rate=rate, weight_decay=0.0, schedule="constant")
    np.testing.assert_allclose(updates_of(config, [[0.3, -0.3]])[0], [-rate, rate], rtol=1e-4)


@pytest.mark.parametrize("decay", [0.0, 0.05, 0.5])
def test_weight_decay_shrinks_parameters_without_passing_through_the_moments(decay):
    config = OptimizerConfig(learning_rate=0.1, weight_decay=decay, schedule="constant")
    np.testing.assert_allclose(updates_of(config, np.zeros((3, 2)), params=4.0), -0.1 * decay * 4.0, rtol=1e-5)


def test_gradients_are_clipped_to_the_global_norm_before_the_moments():
    gradients = np.array([[30.0, 40.0], [0.3, 0.4], [3.0, -4.0]])
    norms = np.linalg.norm(gradients, axis=1, keepdims=True)
    clipped = gradients * np.minimum(1, 2.0 / norms)
    config = OptimizerConfig(learning_rate=0.1, weight_decay=0.0, schedule="constant", clip=2.0)
    wide = dataclasses.replace(config, clip=WITHOUT)
    np.testing.assert_allclose(updates_of(config, gradients), updates_of(wide, clipped), rtol=1e-5)
    assert not np.allclose(updates_of(config, gradients), updates_of(wide, gradients), rtol=0.05)


def test_the_moments_are_those_of_adam():
    gradients = np.random.default_rng(0).normal(size=(5, 2)) * [1.0, 10.0]
    config = OptimizerConfig(learning_rate=0.1, weight_decay=0.0, schedule="constant", clip=WITHOUT)
    mean, square, expected = np.zeros(2), np.zeros(2), []
    for n, gradient in enumerate(gradients, start=1):
        mean, square = 0.9 * mean + 0.1 * gradient, 0.999 * square + 0.001 * gradient**2
        expected.append(-0.1 * (mean / (1 - 0.9**n)) / (np.sqrt(square / (1 - 0.999**n)) + 1e-8))
    np.testing.assert_allclose(updates_of(config, gradients), expected, rtol=1e-4)


def steps_of(line, ema: float | None, order: np.ndarray):
    transform = optax.sgd(0.05)
    batch = jax.tree.map(lambda leaf: leaf[:8], line.splits.train)
    state, unflatten = initial_state(line.task, batch, transform, seed=0, ema=ema)
    return state, jax.jit(make_epoch(line.task, unflatten, transform, ema))


def test_the_average_follows_the_weights_with_its_decay_and_faster_at_first(line):
    state, epoch = steps_of(line, 0.3, np.arange(8))
    average, decays = np.asarray(state.params), []
    for n in range(6):
        state, _ = epoch(state, line.splits.train, np.arange(8)[None] + n)
        decays.append(min(0.3, (1 + n) / (10 + n)))
        average = decays[-1] * average + (1 - decays[-1]) * np.asarray(state.params)
        np.testing.assert_allclose(state.average, average, rtol=1e-5)
    assert decays[0] == 0.1
    assert decays[-1] == 0.3


def test_the_average_is_what_is_evaluated_and_returned(line):
    loop = LoopConfig(epochs=2, batch_size=8)
    config = OptimizerConfig(learning_rate=0.1, weight_decay=0.01, schedule="constant", ema=0.9)
    fitted = fit(*line, loop, config)
    final, none = (fit(*line, loop, dataclasses.replace(config, ema=ema)) for ema in (None, 0.0))
    assert [row["validation_loss"] for row in none.history[:-1]] == [
        row["validation_loss"] for row in final.history[:-1]
    ]
    assert [row["loss"] for row in fitted.history[:-1]] == [row["loss"] for row in final.history[:-1]]
    assert fitted.history[-2]["validation_loss"] != final.history[-2]["validation_loss"]
    evaluated = line.task.metrics(fitted.model, jax.tree.map(jnp.asarray, line.splits.validation))["loss"].mean()
    assert float(evaluated) == pytest.approx(fitted.history[-2]["validation_loss"], rel=1e-5)


def test_no_step_changes_anything_once_training_has_diverged(line):
    state, epoch = steps_of(line, 0.3, np.arange(8))
    diverged = dataclasses.replace(state, streak=jnp.full_like(state.streak, MAX_SKIPPED_STEPS))
    after, _ = epoch(diverged, line.splits.train, np.arange(8)[None])
    np.testing.assert_array_equal(after.params, state.params)
    np.testing.assert_array_equal(after.average, state.average)
    assert after.has_diverged


def test_steps_in_one_scan_are_the_steps_one_by_one(line):
    order = np.random.default_rng(0).permutation(40).reshape(5, 8)
    state, epoch = steps_of(line, None, order)
    together, metrics = epoch(state, line.splits.train, order)
    for rows in order:
        state, _ = epoch(state, line.splits.train, rows[None])
    np.testing.assert_allclose(together.params, state.params, rtol=1e-6)
    assert metrics.loss.shape == (5,)


OTHER = {
    "learning_rate": 0.03,
    "weight_decay": 0.5,
    "schedule": "cosine",
    "clip": 100.0,
    "ema": 0.9,
    "epochs": 3,
    "batch_size": 5,
    "steps_per_epoch": 2,
    "seed": 1,
    "patience": 1,
    "checkpoint_steps": 1,
}
"""Another value of each field."""

BASE = OptimizerConfig(learning_rate=0.3, schedule="constant"), LoopConfig(epochs=4, batch_size=8)


@pytest.fixture(scope="module")
def outcome(tmp_path_factory):
    """Everything that a training leaves, for a change of the config."""
    from tests.train.line_task import LineConfig

    data = LineConfig().load_data()
    validation = data.splits.validation
    # The validation loss soon gets worse, so that patience has something to stop.
    splits = data.splits._replace(validation=validation._replace(y=0.2 * validation.y))
    task = LineConfig().build_task(data.spec)
    found = {}

    def train(field: str | None):
        if field not in found:
            change = lambda config: (
                config
                if field is None or not hasattr(config, field)
                else dataclasses.replace(config, **{field: OTHER[field]})
            )
            optimizer, loop = map(change, BASE)
            folder = tmp_path_factory.mktemp("run") if field in (None, "checkpoint_steps") else None
            fitted = fit(task, splits, loop, optimizer, folder=folder)
            kept = [] if folder is None else sorted(int(path.name) for path in (folder / "checkpoints").iterdir())
            found[field] = fitted, kept
        return found[field]

    return train


@pytest.mark.parametrize("field", [field.name for field in dataclasses.fields(OptimizerConfig)])
def test_every_field_of_the_optimizer_changes_the_weights(outcome, field):
    assert not np.allclose(outcome(None)[0].model.weight, outcome(field)[0].model.weight, atol=1e-4)


LOOP_CHANGES = {
    "epochs": lambda base, other, kept: len(other) == len(base) - 1,
    "batch_size": lambda base, other, kept: (base[0]["step"], other[0]["step"]) == (5, 8),
    "steps_per_epoch": lambda base, other, kept: [row.get("step") for row in other] == [2, 4, 6, 8, None],
    "seed": lambda base, other, kept: base[0]["loss"] != other[0]["loss"],
    "patience": lambda base, other, kept: len(other) - 1 == other[-1]["best_epoch"] + 1 < len(base) - 1,
    "checkpoint_steps": lambda base, other, kept: kept == [18, 19, 20],
}


@pytest.mark.parametrize(
    "field", [field.name for field in dataclasses.fields(LoopConfig) if field.name != "weights"]
)  # which has a test of its own, next to the loop
def test_every_field_of_the_loop_does_what_it_says(outcome, field):
    (base, base_kept), (other, kept) = outcome(None), outcome(field)
    assert base_kept == [10, 15, 20]  # after each of four epochs, the newest three
    assert LOOP_CHANGES[field](base.history, other.history, kept)


@pytest.mark.parametrize(
    ("config", "wrong"),
    [
        *((LoopConfig, {name: 0}) for name in ("epochs", "batch_size", "steps_per_epoch", "patience")),
        (LoopConfig, {"checkpoint_steps": 0}),
        (LoopConfig, {"weights": "first"}),
        *((LoopConfig, {"seed": value}) for value in (-1, 2**63)),
        *((LoopConfig, {name: 2**31}) for name in ("epochs", "batch_size")),
        *(pytest.param(LoopConfig, {name: 10**400}, id=f"huge {name}") for name in ("epochs", "seed", "patience")),
        *((OptimizerConfig, {name: value}) for name in ("learning_rate", "clip") for value in (0.0, -1.0, math.nan)),
        *((OptimizerConfig, {"weight_decay": value}) for value in (-0.1, math.inf)),
        *((OptimizerConfig, {"ema": value}) for value in (-0.1, 1.0, math.nan)),
    ],
    ids=str,
)
def test_a_value_that_makes_no_sense_is_refused_by_name(config, wrong):
    (name,) = wrong
    with pytest.raises(ValueError, match=f"^{name} must"):
        config(**wrong)
