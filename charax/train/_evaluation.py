"""Means of metrics over a whole split, exactly, with one compiled shape."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from charax.train._devices import Devices
from charax.train._parameters import Rebuild
from charax.train._task import AbstractTask, Batch, count_samples

Evaluate = Callable[[Float[Array, "parameters"], Batch], dict[str, float]]


def make_evaluation(task: AbstractTask, rebuild: Rebuild, batch_size: int, devices: Devices) -> Evaluate:
    """A function of (parameters, split) that returns the mean of each metric over the split.

    The last batch is filled up with samples from the beginning, which keep a shared step size realistic,
    and they weigh nothing.
    """

    @jax.jit
    def sums(params, batch, weights):
        values = task.measure(rebuild(params), batch)
        return {name: jnp.where(weights > 0, value, 0).sum() for name, value in values.items()}

    def evaluate(params: Float[Array, "parameters"], split: Batch) -> dict[str, float]:
        samples = count_samples(split)
        parts = []
        for start in range(0, samples, batch_size):
            rows = np.arange(start, start + batch_size)
            batch = jax.tree.map(lambda leaf, rows=rows: leaf[rows % samples], split)
            parts.append(sums(params, *devices.share((batch, (rows < samples).astype(np.float32)))))
        return {name: sum(float(part[name]) for part in parts) / samples for name in parts[0]}

    return evaluate
