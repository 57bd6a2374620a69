"""Members of an estimator, trained side by side in one compiled program, with the step of the training loop."""

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float, Float32, Int

from charax.estimators._objectives import AbstractObjective, weighted_mean
from charax.estimators._rows import Batch, Rows, hold_out, round_up, share_out
from charax.solve import SolveError
from charax.train import OptimizerConfig, flatten_model
from charax.train._parameters import Rebuild
from charax.train._progress import AbstractProgress
from charax.train._step import GIVE_UP_AFTER, State, initial_state, make_optimizer, make_step

_AT_ONCE = 256
"""Rows that are asked about at once: always as many, so that an answer does not depend on the other questions."""


@dataclass(frozen=True)
class Plan:
    """How to train."""

    members: int
    epochs: int
    batch_size: int
    validation_fraction: float | None
    """None to train on everything, and to choose the weights by the loss of that."""
    patience: int
    optimizer: OptimizerConfig
    seed: int
    progress: AbstractProgress


class Course(NamedTuple):
    """Where the training of a member is."""

    state: State
    best: Float[Array, "*members parameters"]
    best_loss: Float[Array, "*members"]
    stale: Int[Array, "*members"]
    """Epochs since the best."""


@dataclass(frozen=True)
class Trained:
    """The weights that validation chose, and how it went. Nothing in it is JAX's, so that it can be pickled."""

    objective: AbstractObjective
    parameters: Float32[np.ndarray, "members parameters"]
    losses: list[float]
    """The mean validation loss of the members after every epoch."""
    best_loss: float
    diverged: bool

    def model(self, member: int) -> eqx.Module:
        """One of the models."""
        return _model(self.objective).rebuild(jnp.asarray(self.parameters[member]))

    def respond(self, inputs: Float32[np.ndarray, "rows features"]) -> Any:
        """What every member says of rows: arrays with the members in their first axis and the rows in the second."""
        answer, parts = _model(self.objective).respond, []
        for start in range(0, len(inputs), _AT_ONCE):
            part = inputs[start : start + _AT_ONCE]
            filled = np.concatenate([part, np.zeros((_AT_ONCE - len(part), *part.shape[1:]), np.float32)])
            parts.append(answer(self.parameters, filled))
        answers = jax.tree.map(lambda *leaves: np.concatenate(leaves, axis=1)[:, : len(inputs)], *parts)
        for leaf in jax.tree.leaves(answers):
            good = np.isfinite(leaf).all(axis=(0, *range(2, leaf.ndim)))
            if not good.all():
                raise SolveError(
                    f"the solve failed for {(~good).sum()} rows, the first is number {np.argmin(good)}: it may be far "
                    "from what the model learned from; check its scale, or raise steps"
                )
        return answers


def train_members(
    objective: AbstractObjective,
    rows: Rows,
    plan: Plan,
    before: Float32[np.ndarray, "members parameters"] | None = None,
) -> Trained:
    """Train every member until validation says that none of them improves; from `before` if it is given."""
    generator = np.random.default_rng(plan.seed)
    everything, nothing = np.arange(len(rows.weights)), len(rows.weights)
    splits = [(everything, everything)] * plan.members
    if plan.validation_fraction is not None:
        held = hold_out(rows, plan.validation_fraction, plan.members, generator)
        splits = held if all(len(train) and len(validate) for train, validate in held) else splits
    size = round_up(max(len(validate) for _, validate in splits))
    validate = np.stack([np.pad(held, (0, size - len(held)), constant_values=nothing) for _, held in splits])
    orders = lambda: np.stack(
        [share_out(generator.permutation(train), plan.batch_size, nothing) for train in _equally_many(splits, nothing)]
    )
    order = orders()
    program = _program(objective, plan.optimizer, plan.epochs, order.shape[1])
    filled = rows.fill_up()
    course = _start(program, objective, plan, before)
    losses, diverged, began = [], False, time.monotonic()
    plan.progress.start(plan.epochs, order.shape[1], plan.batch_size)
    while len(losses) < plan.epochs and not diverged and int(course.stale.min()) < plan.patience:
        try:
            course, loss = jax.block_until_ready(program.epoch(course, filled, order, validate))
        except (jax.errors.JaxRuntimeError, ValueError) as error:  # JAX raises the latter if it did not run ahead
            if "EquinoxRuntimeError" not in str(error):  # anything but a solve that failed on the way back
                raise
            losses.append(math.nan)
            diverged = True
            break
        diverged = bool((course.state.streak >= GIVE_UP_AFTER).any())
        losses.append(float(loss.mean()))
        trained = float((course.state.sums["loss"] / course.state.counted).mean())
        plan.progress.epoch(
            {
                "epoch": len(losses),
                "loss": trained,
                "validation_loss": losses[-1],
                "skipped": int(course.state.skipped.sum()),
                "seconds": time.monotonic() - began,
            }
        )
        order = orders()
    plan.progress.stop()
    return Trained(objective, np.asarray(course.best), losses, float(course.best_loss.mean()), diverged)


def _equally_many(splits: list[tuple[np.ndarray, np.ndarray]], nothing: int) -> list[np.ndarray]:
    most = max(len(train) for train, _ in splits)
    return [np.pad(train, (0, most - len(train)), constant_values=nothing) for train, _ in splits]


class _Model(NamedTuple):
    rebuild: Rebuild
    respond: Callable[..., Any]


class _Program(NamedTuple):
    template: State
    epoch: Callable[..., tuple[Course, Array]]


@lru_cache(maxsize=128)
def _model(objective: AbstractObjective) -> _Model:
    _, rebuild = flatten_model(objective.build(jax.random.key(0)))
    respond = lambda params, inputs: objective.respond(rebuild(params), inputs)
    return _Model(rebuild, jax.jit(jax.vmap(respond, in_axes=(0, None))))


@lru_cache(maxsize=128)
def _program(objective: AbstractObjective, optimizer: OptimizerConfig, epochs: int, steps: int) -> _Program:
    rebuild = _model(objective).rebuild
    transform = make_optimizer(optimizer, epochs=epochs, steps_per_epoch=steps)
    step = make_step(objective, rebuild, transform, optimizer.ema)

    def run_epoch(course: Course, rows: Batch, order: Int[Array, "steps batch"], held: Int[Array, "held"]):
        take = lambda which: jax.tree.map(lambda leaf: leaf[which], rows)
        state, _ = lax.scan(lambda state, which: (step(state, take(which))[0], None), course.state.start_epoch(), order)
        key = jax.random.wrap_key_data(state.key)
        validation = take(held)
        loss = weighted_mean(objective.measure(rebuild(state.evaluated), validation, key), validation.weights)
        better = loss < course.best_loss
        best = jnp.where(better, state.evaluated, course.best)
        course = Course(state, best, jnp.where(better, loss, course.best_loss), jnp.where(better, 0, course.stale + 1))
        return course, loss

    batch = Batch(jnp.zeros((1, objective.features)), jnp.zeros((1, objective.outputs)), jnp.ones(1))
    template, _ = initial_state(objective, batch, transform, seed=0, ema=optimizer.ema)
    return _Program(template, jax.jit(jax.vmap(run_epoch, in_axes=(0, None, 0, 0))))


def _start(program: _Program, objective: AbstractObjective, plan: Plan, before: np.ndarray | None) -> Course:
    keys = [jax.random.split(key) for key in jax.random.split(jax.random.key(plan.seed), plan.members)]
    drawn = lambda: np.stack([np.asarray(flatten_model(objective.build(build))[0]) for build, _ in keys])
    params = jnp.asarray(drawn() if before is None else before)
    states = jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (plan.members, *leaf.shape)), program.template)
    states = eqx.tree_at(
        lambda state: (state.params, state.key),
        states,
        (params, jnp.stack([jax.random.key_data(step) for _, step in keys])),
    )
    if states.average is not None:
        states = eqx.tree_at(lambda state: state.average, states, params)
    nothing = jnp.zeros(plan.members)
    return Course(states, params, nothing + jnp.inf, nothing.astype(int))
