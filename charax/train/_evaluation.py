"""Exact means of metrics over a whole split, with one compiled shape."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from charax.train._batches import Batch, count_samples, padded_batches
from charax.train._devices import Devices
from charax.train._feed import read_batches
from charax.train._parameters import Unflatten
from charax.train._precision import widen
from charax.train._processes import compile_together
from charax.train._task import AbstractTask

Evaluate = Callable[[Float[Array, "parameters"], Batch], dict[str, float]]


def make_evaluation(task: AbstractTask, unflatten: Unflatten, batch_size: int, devices: Devices) -> Evaluate:
    """A function of (parameters, split) that returns the mean of each metric over the split.

    The last mini-batch is filled up with samples from the beginning, which keep a shared step size realistic, and
    which have weight zero.
    """

    def sum_metrics(params, batch, weights):
        values = task.metrics(unflatten(params), widen(batch))
        return {name: jnp.where(weights > 0, value, 0).sum() for name, value in values.items()}

    sums = compile_together(jax.jit(sum_metrics, compiler_options=dict(task.compiler_options) or None))

    def evaluate(params: Float[Array, "parameters"], split: Batch) -> dict[str, float]:
        samples = count_samples(split)
        totals: dict[str, float] = {}
        order = padded_batches(samples, batch_size)
        for number, samples_read in enumerate(read_batches(devices, split, order)):
            weights = (number * batch_size + np.arange(batch_size) < samples).astype(np.float32)
            weights = devices.take(weights, np.arange(batch_size))
            for name, value in sums(params, samples_read, weights).items():
                totals[name] = totals.get(name, 0.0) + float(value)
        return {name: total / samples for name, total in totals.items()}

    return evaluate
