"""Exact means of metrics over a whole split, with one compiled shape."""

from collections.abc import Iterator

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from charax.train._ahead import begin
from charax.train._batches import Batch, count_samples, padded_batches
from charax.train._devices import Devices
from charax.train._feed import is_stored, read_batches
from charax.train._parameters import Unflatten
from charax.train._precision import widen
from charax.train._processes import compile_together
from charax.train._processes import count as count_processes
from charax.train._task import AbstractTask


class Evaluation:
    """A function of (parameters, split) that returns the mean of each metric over the split.

    The last mini-batch is filled up with samples from the beginning, which keep a shared step size realistic, and
    which have weight zero.
    """

    def __init__(self, task: AbstractTask, unflatten: Unflatten, batch_size: int, devices: Devices):
        def sum_metrics(params, batch, weights):
            values = task.metrics(unflatten(params), widen(batch))
            return {name: jnp.where(weights > 0, value, 0).sum() for name, value in values.items()}

        self._program = jax.jit(sum_metrics, compiler_options=dict(task.compiler_options) or None)
        self._sums = compile_together(self._program)
        self._batch_size, self._devices = batch_size, devices

    def compile_ahead(self, params: Float[Array, "parameters"], split: Batch) -> None:
        """Let another thread compile, while this one goes on: to the first steps of training, which take as long.

        Only the compiler runs there. This thread traces the program, with its settings of JAX.
        """
        if count_processes() > 1 or is_stored(split):
            return
        lowered = self._program.lower(params, *next(self._batches(split)))
        compiling = begin(lowered.compile)
        self._sums = lambda *args: compiling.result()(*args)

    def __call__(self, params: Float[Array, "parameters"], split: Batch) -> dict[str, float]:
        totals: dict[str, float] = {}
        for samples, weights in self._batches(split):
            for name, value in self._sums(params, samples, weights).items():
                totals[name] = totals.get(name, 0.0) + float(value)
        return {name: total / count_samples(split) for name, total in totals.items()}

    def _batches(self, split: Batch) -> Iterator[tuple[Batch, Array]]:
        count, rows = count_samples(split), np.arange(self._batch_size)
        batches = read_batches(self._devices, split, padded_batches(count, self._batch_size))
        for number, samples in enumerate(batches):
            weights = (number * self._batch_size + rows < count).astype(np.float32)
            yield samples, self._devices.take(weights, rows)
