"""An ensemble of models, trained in parallel by one compiled program: the epoch of the training engine under `vmap`."""

import math
import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Float32, Int, UInt32

from charax.estimators._objectives import AbstractObjective, weighted_mean
from charax.estimators._rows import Batch, Rows, make_batches, padded_size, validation_splits
from charax.nn import split_key
from charax.solve import SolveError
from charax.train import (
    AbstractProgress,
    LoopConfig,
    OptimizerConfig,
    flatten_model,
    quick_compilation,
    small_products,
)
from charax.train._config import BATCH_SIZE, EPOCHS
from charax.train._failure import catch_failed_solve
from charax.train._parameters import Unflatten
from charax.train._step import TrainState, clipped_adamw, make_epoch, start_state

_PREDICTION_BATCH = 256
"""Rows per call of the compiled prediction: always the same number, so that no prediction depends on how many rows
there are."""
_WORK_OF_A_GROUP = 300_000
"""Rows times parameters of a member, above which groups of members in several threads are faster than one: measured
on two cores, for 10 members and 50 to 600 rows."""


@dataclass(frozen=True)
class EnsembleConfig:
    """How to train an ensemble."""

    members: int
    validation_fraction: float | None
    """None to train on all rows, and to select the weights by their loss."""
    loop: LoopConfig
    optimizer: OptimizerConfig
    """With a learning rate and a weight decay, which are constant."""
    passes: int = 1
    """Passes over the rows in an epoch of the loop, that is between two evaluations."""


@dataclass(frozen=True)
class Ensemble:
    """The selected weights of every member, and the learning curve. It holds no JAX objects, so it can be pickled."""

    objective: AbstractObjective
    params: Float32[np.ndarray, "members parameters"]
    losses: list[float]
    """The validation loss after each epoch, averaged over the members."""
    best_loss: float
    diverged: bool

    def model(self, member: int) -> eqx.Module:
        """One of the models."""
        return _model(self.objective).unflatten(jnp.asarray(self.params[member]))

    def predict(self, inputs: Float32[np.ndarray, "rows features"]) -> Any:
        """The predictions of every member: arrays with the members in their first axis and the rows in the second."""
        predict, parts = _model(self.objective).predict, []
        for start in range(0, len(inputs), _PREDICTION_BATCH):
            part = inputs[start : start + _PREDICTION_BATCH]
            padding = np.zeros((_PREDICTION_BATCH - len(part), *part.shape[1:]), np.float32)
            parts.append(predict(self.params, np.concatenate([part, padding])))
        predictions = jax.tree.map(lambda *leaves: np.concatenate(leaves, axis=1)[:, : len(inputs)], *parts)
        for leaf in jax.tree.leaves(predictions):
            is_finite = np.isfinite(leaf).all(axis=(0, *range(2, leaf.ndim)))
            if not is_finite.all():
                raise SolveError(
                    f"the solve failed for {(~is_finite).sum()} rows, the first is row {np.argmin(is_finite)}: it may "
                    "be far from the training data; check its scale, or raise steps"
                )
        return predictions


class _MemberState(NamedTuple):
    train: TrainState
    best_params: Float[Array, "*members parameters"]
    best_loss: Float[Array, "*members"]
    epochs_since_best: Int[Array, "*members"]


def train_ensemble(
    objective: AbstractObjective,
    rows: Rows,
    config: EnsembleConfig,
    progress: AbstractProgress,
    initial_params: Float32[np.ndarray, "members parameters"] | None = None,
) -> Ensemble:
    """Train all members until none of them improves any more, from new weights unless `initial_params` are given."""
    loop, generator, padding = config.loop, np.random.default_rng(config.loop.seed), len(rows.weights)
    splits = _split(rows, config, generator)
    train = _stack([train for train, _ in splits], max(len(train) for train, _ in splits), padding)
    most = max(len(validation) for _, validation in splits)
    validation = _stack([validation for _, validation in splits], padded_size(most), padding)
    epochs, batch_size = loop.epochs or EPOCHS, loop.batch_size or BATCH_SIZE
    steps = config.passes * -(-train.shape[1] // batch_size)
    program = _program(objective, config.optimizer.clip, config.optimizer.ema)
    rates = _Rates(np.float32(config.optimizer.learning_rate), np.float32(config.optimizer.weight_decay))
    data = rows.pad()
    groups = _initial_groups(program, objective, config, initial_params, rows=train.shape[1])
    patience = epochs if loop.patience is None else loop.patience
    threads = min(len(groups), count_threads(os.environ, _count_cores()))
    losses, diverged, since_best, began = [], False, 0, time.monotonic()
    progress.start(epochs, steps, batch_size)
    try:
        with ThreadPoolExecutor(threads) as pool:
            while len(losses) < epochs and not diverged and since_best < patience:
                one_pass = lambda rows: make_batches(generator.permutation(rows), batch_size, padding)
                order = np.stack([np.concatenate([one_pass(rows) for _ in range(config.passes)]) for rows in train])
                # What is to be compiled is compiled once, for the first group.
                at_once = pool.map if losses and threads > 1 else map
                result = catch_failed_solve(_train_epoch, program, groups, order, validation, data, rates, at_once)
                if result is None:
                    losses.append(math.nan)
                    diverged = True
                    break
                groups = [group for group, _ in result]
                # To the host, where nothing is compiled for a mean.
                now, loss, stale = _join(
                    [jax.device_get((group.train, loss, group.epochs_since_best)) for group, loss in result]
                )
                diverged, since_best = bool(now.has_diverged.any()), stale.min()
                losses.append(float(loss.mean()))
                progress.epoch(
                    {
                        "epoch": len(losses),
                        "loss": float((now.sums["loss"] / np.maximum(now.counted, 1)).mean()),
                        "validation_loss": losses[-1],
                        "skipped": int(now.skipped.sum()),
                        "seconds": time.monotonic() - began,
                    }
                )
    finally:
        progress.stop()
    best_params, best_loss = _join([jax.device_get((group.best_params, group.best_loss)) for group in groups])
    return Ensemble(objective, best_params, losses, float(best_loss.mean()), diverged)


def _train_epoch(
    program: "_Program",
    groups: Sequence[_MemberState],
    order: Int[np.ndarray, "members steps batch"],
    validation: Int[np.ndarray, "members validation"],
    data: Batch,
    rates: "_Rates",
    at_once: Callable[..., Iterable[Any]],
) -> list[tuple[_MemberState, Float[Array, "group"]]]:
    """One epoch of each group of members."""
    run = lambda group, *own: jax.block_until_ready(program.epoch(group, data, *own, rates))
    return list(at_once(run, groups, *(np.split(each, len(groups)) for each in (order, validation))))


def _join(groups: Sequence[Any]) -> Any:
    """Arrays of groups of members, as those of all members."""
    return jax.tree.map(lambda *leaves: np.concatenate(leaves), *groups)


def _split(
    rows: Rows, config: EnsembleConfig, generator: np.random.Generator
) -> list[tuple[Int[np.ndarray, "train"], Int[np.ndarray, "validation"]]]:
    """The training and the validation rows of each member; all rows for both if there are too few to split."""
    everything = np.arange(len(rows.weights))
    if config.validation_fraction is not None:
        splits = validation_splits(rows, config.validation_fraction, config.members, generator)
        if all(len(train) and len(validation) for train, validation in splits):
            return splits
    return [(everything, everything)] * config.members


def _stack(members: list[np.ndarray], size: int, padding: int) -> Int[np.ndarray, "members size"]:
    return np.stack([np.pad(rows, (0, size - len(rows)), constant_values=padding) for rows in members])


class _Model(NamedTuple):
    unflatten: Unflatten
    predict: Callable[..., Any]


class _Program(NamedTuple):
    start: Callable[..., _MemberState]
    epoch: Callable[..., tuple[_MemberState, Float[Array, "members"]]]


@lru_cache(maxsize=128)
def _model(objective: AbstractObjective) -> _Model:
    _, unflatten = flatten_model(objective.build(jax.random.key(0)))
    predict = lambda params, inputs: objective.predict(unflatten(params), inputs)
    return _Model(
        unflatten, jax.jit(jax.vmap(predict, in_axes=(0, None)), compiler_options=objective.prediction_options)
    )


class _Rates(NamedTuple):
    """Arguments of a program, so that one serves all candidates of a search over them."""

    learning_rate: Any
    weight_decay: Any


@lru_cache(maxsize=128)
def _program(objective: AbstractObjective, clip: float, ema: float | None) -> _Program:
    unflatten = _model(objective).unflatten

    def epoch(
        member: _MemberState,
        data: Batch,
        order: Int[Array, "steps batch"],
        validation: Int[Array, "validation"],
        rates: _Rates,
    ) -> tuple[_MemberState, Float[Array, ""]]:
        train_epoch = make_epoch(objective, unflatten, clipped_adamw(*rates, clip), ema)
        state, _ = train_epoch(member.train.start_epoch(), data, order)
        rows = jax.tree.map(lambda leaf: leaf[validation], data)
        losses = objective.losses(unflatten(state.evaluated), rows, jax.random.wrap_key_data(state.key))
        loss = weighted_mean(losses, rows.weights)
        improved = loss < member.best_loss
        return _MemberState(
            state,
            best_params=jnp.where(improved, state.evaluated, member.best_params),
            best_loss=jnp.where(improved, loss, member.best_loss),
            epochs_since_best=jnp.where(improved, 0, member.epochs_since_best + 1),
        ), loss

    def start(params: Float[Array, "parameters"], key: UInt32[Array, "words"]) -> _MemberState:
        state = start_state(clipped_adamw(0.0, 0.0, clip), params, key, metrics=("failed",), ema=ema)
        return _MemberState(state, params, jnp.full((), jnp.inf, params.dtype), jnp.zeros((), int))

    return _Program(
        jax.jit(jax.vmap(start)),
        jax.jit(
            jax.vmap(epoch, in_axes=(0, None, 0, 0, None)),
            compiler_options={**quick_compilation(), **small_products()},
        ),
    )


def _initial_groups(
    program: _Program, objective: AbstractObjective, config: EnsembleConfig, params: np.ndarray | None, *, rows: int
) -> list[_MemberState]:
    """The members before training, in groups that are trained at the same time."""
    keys = [split_key(key) for key in split_key(jax.random.key(config.loop.seed), config.members)]
    if params is None:
        params = np.stack([np.asarray(flatten_model(objective.build(model_key))[0]) for model_key, _ in keys])
    words = np.stack([jax.random.key_data(step_key) for _, step_key in keys])
    groups = count_groups(config.members, _count_cores(), work=rows * params.shape[1])
    return [program.start(*each) for each in zip(np.split(params, groups), np.split(words, groups), strict=True)]


def count_groups(members: int, cores: int, *, work: int) -> int:
    """As many groups as there are cores, or fewer, so that all have equally many members.

    XLA computes products of some tens of columns on one core, and members need nothing of each other. But threads have
    to wait for each other after every epoch: where it has little work (rows times parameters of a member), two take as
    long as one, and more CPU time, which other processes may need.
    """
    if work < _WORK_OF_A_GROUP:
        return 1
    return max(groups for groups in range(1, min(members, cores) + 1) if members % groups == 0)


def count_threads(environment: Mapping[str, str], cores: int) -> int:
    """How many groups are trained at the same time: OMP_NUM_THREADS, by which joblib shares cores among its workers.

    Groups that take turns in one thread are the same compiled program, with the same results.
    """
    threads = environment.get("OMP_NUM_THREADS", "").partition(",")[0].strip()  # a list is for nested threads
    return min(cores, max(int(threads), 1)) if threads.isdecimal() else cores


def _count_cores() -> int:
    if jax.default_backend() != "cpu":
        return 1
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
