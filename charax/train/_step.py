"""One step of training: gradient, clipping, AdamW, moving average, and what happens when something is not finite."""

from collections.abc import Callable
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, Int, PyTree, UInt32

from charax.train._config import OptimizerConfig
from charax.train._parameters import Rebuild, flatten_model
from charax.train._task import Batch, Objective

GIVE_UP_AFTER = 10
"""Skipped steps in a row after which a run stops."""


class State(eqx.Module):
    """Everything that changes from step to step, and so everything that a checkpoint must hold."""

    params: Float[Array, "parameters"]
    optimizer: PyTree
    average: Float[Array, "parameters"] | None
    """The moving average of the parameters."""
    key: UInt32[Array, "words"]
    """The random state; step i draws from this and i."""
    step: Int[Array, ""]
    skipped: Int[Array, ""]
    streak: Int[Array, ""]
    """Skipped steps in a row up to now."""
    sums: dict[str, Float[Array, ""]]
    """Metrics of this epoch, added up over the `counted` steps that were not skipped."""
    counted: Int[Array, ""]

    @property
    def evaluated(self) -> Float[Array, "parameters"]:
        """The parameters to evaluate."""
        return self.params if self.average is None else self.average

    def start_epoch(self) -> "State":
        """Forget the metrics of the epoch before."""
        zero = lambda leaf: jnp.zeros_like(leaf)
        return eqx.tree_at(
            lambda state: (state.sums, state.counted), self, (jax.tree.map(zero, self.sums), zero(self.counted))
        )

    def skip(self) -> "State":
        """As after a step that changed nothing."""
        return eqx.tree_at(
            lambda state: (state.step, state.skipped, state.streak),
            self,
            (self.step + 1, self.skipped + 1, self.streak + 1),
        )


class Report(NamedTuple):
    """What is told about one step. It is not needed to go on."""

    loss: Float[Array, ""]
    metrics: dict[str, Float[Array, ""]]
    streak: Int[Array, ""]


def make_optimizer(settings: OptimizerConfig, *, epochs: int, steps_per_epoch: int) -> optax.GradientTransformation:
    """AdamW behind clipping by the global norm, with the chosen schedule."""
    rate, steps = settings.learning_rate, epochs * steps_per_epoch
    match settings.schedule:
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
    return optax.chain(
        optax.clip_by_global_norm(settings.clip), optax.adamw(schedule, weight_decay=settings.weight_decay)
    )


def make_step(
    task: Objective, rebuild: Rebuild, optimizer: optax.GradientTransformation, ema: float | None
) -> Callable[[State, Batch], tuple[State, Report]]:
    """The step as a function for `jit`; `rebuild` makes the model from its parameters."""

    def step(state: State, batch: Batch) -> tuple[State, Report]:
        key = jax.random.fold_in(jax.random.wrap_key_data(state.key), state.step)
        loss_of = lambda params: task.loss(rebuild(params), batch, key)
        (loss, metrics), gradient = jax.value_and_grad(loss_of, has_aux=True)(state.params)
        # The loop reads the streak late, so that no step waits for it: what runs meanwhile must change nothing.
        good = (
            jnp.isfinite(loss)
            & jnp.isfinite(gradient).all()
            & (metrics["failed"] == 0)
            & (state.streak < GIVE_UP_AFTER)
        )
        updates, optimiser_state = optimizer.update(gradient, state.optimizer, state.params)
        params = state.params + jnp.asarray(updates)
        average = state.average
        if ema is not None and state.average is not None:
            # Early on, an average with a long memory would still be the initial weights.
            decay = jnp.minimum(ema, (1 + state.step) / (10 + state.step))
            average = decay * state.average + (1 - decay) * params
        keep = lambda new, old: jax.tree.map(lambda a, b: jnp.where(good, a, b), new, old)
        told = {"loss": loss, **metrics}
        streak = jnp.where(good, 0, state.streak + 1)
        new = State(
            params=keep(params, state.params),
            optimizer=keep(optimiser_state, state.optimizer),
            average=keep(average, state.average),
            key=state.key,
            step=state.step + 1,
            skipped=state.skipped + ~good,
            streak=streak,
            sums=keep({name: state.sums[name] + value for name, value in told.items()}, state.sums),
            counted=state.counted + good,
        )
        return new, Report(loss, metrics, streak)

    return step


def initial_state(
    task: Objective, batch: Batch, optimizer: optax.GradientTransformation, *, seed: int, ema: float | None
) -> tuple[State, Rebuild]:
    """The state before the first step, and the model as a function of its parameters."""
    model_key, step_key = jax.random.split(jax.random.key(seed))
    params, rebuild = flatten_model(task.build(model_key))
    loss_of = lambda params, batch, key: task.loss(rebuild(params), batch, key)
    _, metrics = jax.eval_shape(loss_of, params, batch, step_key)
    number = lambda: jnp.zeros((), int)
    state = State(
        params=params,
        optimizer=optimizer.init(params),
        average=None if ema is None else params,
        key=jax.random.key_data(step_key),
        step=number(),
        skipped=number(),
        streak=number(),
        sums={name: jnp.zeros(()) for name in ("loss", *metrics)},
        counted=number(),
    )
    # Buffers that two parts of the state share could not be given away to the next step.
    return jax.tree.map(lambda leaf: jnp.array(leaf, copy=True), state), rebuild
