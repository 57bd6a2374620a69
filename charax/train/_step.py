"""One step of training: gradient, clipping, AdamW, moving average; and a scan over the steps of an epoch."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax import lax
from jaxtyping import Array, Bool, Float, Int, PyTree, UInt32

from charax.nn import split_key
from charax.train._batches import Batch
from charax.train._checks import fill
from charax.train._config import STANDARD_OPTIMIZER, OptimizerConfig
from charax.train._parameters import Unflatten, flatten_model
from charax.train._precision import widen
from charax.train._task import Objective

MAX_SKIPPED_STEPS = 10
"""Training has diverged when this many steps in a row were skipped."""


class TrainState(eqx.Module):
    """Everything that changes from step to step, and so everything that a checkpoint must hold."""

    params: Float[Array, "parameters"]
    optimizer: PyTree
    average: Float[Array, "parameters"] | None
    """Exponential moving average of the parameters."""
    key: UInt32[Array, "words"]
    """The random state; step i draws from this and i."""
    step: Int[Array, ""]
    skipped: Int[Array, ""]
    streak: Int[Array, ""]
    """Steps in a row that were skipped."""
    sums: dict[str, Float[Array, ""]]
    """Metrics of this epoch, summed over the `counted` steps that were not skipped."""
    counted: Int[Array, ""]

    @property
    def evaluated(self) -> Float[Array, "parameters"]:
        """The parameters to evaluate."""
        return self.params if self.average is None else self.average

    @property
    def has_diverged(self) -> Bool[Array | np.ndarray, "*members"]:
        """Whether too many steps in a row were skipped: the one rule for the loop and for the estimators."""
        return self.streak >= MAX_SKIPPED_STEPS

    def start_epoch(self) -> "TrainState":
        """Reset the metrics of the epoch."""
        zero = lambda leaf: jnp.zeros_like(leaf)
        return eqx.tree_at(
            lambda state: (state.sums, state.counted), self, (jax.tree.map(zero, self.sums), zero(self.counted))
        )

    def skip(self) -> "TrainState":
        """The state after a step that changed nothing."""
        return eqx.tree_at(
            lambda state: (state.step, state.skipped, state.streak),
            self,
            (self.step + 1, self.skipped + 1, self.streak + 1),
        )


class StepMetrics(NamedTuple):
    """What is reported about one step."""

    loss: Float[Array, "*steps"]
    metrics: dict[str, Float[Array, "*steps"]]
    streak: Int[Array, "*steps"]


Gradient = Callable[..., tuple[tuple[Float[Array, ""], dict[str, Float[Array, ""]]], Float[Array, "parameters"]]]
"""A function of the parameters, the samples and a random key: the loss with its metrics, and the gradient."""
Epoch = Callable[[TrainState, Batch, Int[Array, "steps batch"] | None], tuple[TrainState, StepMetrics]]
"""A function of the state, the data, and the rows of each step; without rows, the data are the batch of one step."""


def make_optimizer(config: OptimizerConfig, *, epochs: int, steps_per_epoch: int) -> optax.GradientTransformation:
    """AdamW after clipping by the global norm, with the chosen schedule."""
    config = fill(config, STANDARD_OPTIMIZER)
    assert config.learning_rate is not None
    assert config.weight_decay is not None
    rate, steps = config.learning_rate, epochs * steps_per_epoch
    match config.schedule:
        case "paper":
            schedule = optax.exponential_decay(rate, 5 * steps_per_epoch, 0.9, staircase=True)
        case "cosine":
            schedule = optax.warmup_cosine_decay_schedule(rate / 100, rate, max(1, steps // 10), max(2, steps))
        case "warmup":
            schedule = optax.linear_schedule(rate / 1_000, rate, 1_000)
        case "constant":
            schedule = rate
        case unknown:
            raise ValueError(f"unknown schedule {unknown!r}; choose from cosine, paper, warmup, constant")
    return clipped_adamw(schedule, config.weight_decay, config.clip)


def clipped_adamw(
    learning_rate: optax.ScalarOrSchedule, weight_decay: Float[Array, ""] | float | int, clip: float
) -> optax.GradientTransformation:
    """AdamW after clipping by the global norm. Its rates may be arguments of a compiled function."""
    return optax.chain(optax.clip_by_global_norm(clip), optax.adamw(learning_rate, weight_decay=weight_decay))  # pyright: ignore[reportArgumentType]


def make_epoch(
    objective: Objective,
    unflatten: Unflatten,
    optimizer: optax.GradientTransformation,
    ema: float | None,
    average: Callable[[Gradient], Gradient] | None = None,
) -> Epoch:
    """The one function that trains, for `jit`: the loop calls it for a step at a time, the estimators `vmap` it.

    With `average`, devices compute the loss and its gradient for their own samples, as `Devices.average` has it.
    """
    step = _make_step(objective, unflatten, optimizer, ema, average)

    def epoch(
        state: TrainState, data: Batch, order: Int[Array, "steps batch"] | None
    ) -> tuple[TrainState, StepMetrics]:
        take = lambda rows: jax.tree.map(lambda leaf: jnp.take(leaf, rows, axis=0, mode="clip"), data)
        if order is None or order.shape[0] == 1:  # without a loop, in which some operations are slower
            state, metrics = step(state, data if order is None else take(order[0]))
            return state, jax.tree.map(lambda leaf: leaf[None], metrics)
        return lax.scan(lambda state, rows: step(state, take(rows)), state, order)

    return epoch


def _make_step(
    objective: Objective,
    unflatten: Unflatten,
    optimizer: optax.GradientTransformation,
    ema: float | None,
    average: Callable[[Gradient], Gradient] | None,
) -> Callable[[TrainState, Batch], tuple[TrainState, StepMetrics]]:
    loss_of = lambda params, batch, key: objective.loss(unflatten(params), batch, key)
    differentiate: Gradient = jax.value_and_grad(loss_of, has_aux=True)
    if average is not None:
        differentiate = average(differentiate)

    def step(state: TrainState, batch: Batch) -> tuple[TrainState, StepMetrics]:
        key = jax.random.fold_in(jax.random.wrap_key_data(state.key), state.step)
        (loss, metrics), gradient = differentiate(state.params, objective.augment(widen(batch), key), key)
        # The loop reads the streak late, so that no step waits for it: what runs meanwhile must change nothing.
        good = jnp.isfinite(loss) & jnp.isfinite(gradient).all() & (metrics["failed"] == 0) & ~state.has_diverged
        updates, optimizer_state = optimizer.update(gradient, state.optimizer, state.params)
        params = state.params + jnp.asarray(updates)
        average = state.average
        if ema is not None and state.average is not None:
            # Early on, an average with a long memory would still be the initial weights.
            decay = jnp.minimum(ema, (1 + state.step) / (10 + state.step))
            average = decay * state.average + (1 - decay) * params
        keep = lambda new, old: jax.tree.map(lambda a, b: jnp.where(good, a, b), new, old)
        reported = {"loss": loss, **metrics}
        streak = jnp.where(good, 0, state.streak + 1)
        new = TrainState(
            params=keep(params, state.params),
            optimizer=keep(optimizer_state, state.optimizer),
            average=keep(average, state.average),
            key=state.key,
            step=state.step + 1,
            skipped=state.skipped + ~good,
            streak=streak,
            sums=keep({name: state.sums[name] + value for name, value in reported.items()}, state.sums),
            counted=state.counted + good,
        )
        return new, StepMetrics(loss, metrics, streak)

    return step


def initial_state(
    objective: Objective, batch: Batch, optimizer: optax.GradientTransformation, *, seed: int, ema: float | None
) -> tuple[TrainState, Unflatten]:
    """The state before the first step, and the model as a function of its parameters."""
    model_key, step_key = split_key(jax.random.key(seed))
    params, unflatten = flatten_model(objective.build(model_key))
    loss_of = lambda params, batch, key: objective.loss(unflatten(params), widen(batch), key)
    _, metrics = jax.eval_shape(loss_of, params, batch, step_key)
    start = jax.jit(partial(start_state, optimizer, metrics=tuple(metrics), ema=ema))
    return start(params, jax.random.key_data(step_key)), unflatten


def start_state(
    optimizer: optax.GradientTransformation,
    params: Float[Array, "parameters"],
    key: UInt32[Array, "words"],
    *,
    metrics: Sequence[str],
    ema: float | None,
) -> TrainState:
    """The state before the first step, for `jit`: one small program instead of one for every kind of array, whose
    results share no buffers, which could not be donated to the next step."""
    number = lambda: jnp.zeros((), int)
    return TrainState(
        params=params,
        optimizer=optimizer.init(params),
        average=None if ema is None else params,
        key=key,
        step=number(),
        skipped=number(),
        streak=number(),
        sums={name: jnp.zeros(()) for name in ("loss", *metrics)},
        counted=number(),
    )
