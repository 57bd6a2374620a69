"""Confidence intervals of the metrics of a run, by the bootstrap over the test split."""

from typing import NamedTuple

import equinox as eqx
import jax
import numpy as np
from jaxtyping import Array

from charax.train import BATCH_SIZE, AbstractTask, Batch, Run, count_samples, padded_batches

_RESAMPLES = 400


class Interval(NamedTuple):
    """A metric and its 95% confidence interval.

    ```python
    from charax.report import Interval

    assert Interval(0.98, 0.97, 0.99).lower == 0.97
    ```
    """

    value: float | None
    """The metric on the test split."""
    lower: float | None
    """Lower end of the interval; None if the metric does not vary with the test samples."""
    upper: float | None
    """Upper end of the interval."""


def metric_intervals(run: Run, *, seed: int = 0) -> dict[str, Interval]:
    """Compute 95% confidence intervals of the metrics that a run is summarized by.

    The samples of the test split are drawn again with replacement, and the summary is computed from the metrics of what
    was drawn. This is how much the metrics would vary with other test samples, not with other seeds of the training.

    Args:
        run: A finished run.
        seed: Seed of the resampling.

    Returns:
        The metrics by name.

    ```python
    import tempfile

    import charax
    from charax.report import metric_intervals

    config = charax.ClassificationConfig(preset="dense", width=4, loop=charax.LoopConfig(epochs=1))
    with tempfile.TemporaryDirectory() as folder:
        run = charax.train.train(config, folder)
        accuracy = metric_intervals(run)["accuracy"]
    assert accuracy.lower < accuracy.value < accuracy.upper
    ```
    """
    task, model = run.trained
    split, size = run.splits.test, run.config.loop.batch_size or BATCH_SIZE
    count = count_samples(split)
    parts = []
    for rows in padded_batches(count, min(size, count)):
        batch = jax.tree.map(lambda leaf, rows=rows: leaf[rows], split)
        parts.append({name: np.asarray(value) for name, value in _metrics(task, model, batch).items()})
    names = list(parts[0])
    values = np.stack([np.concatenate([part[name] for part in parts])[:count] for name in names], axis=1)
    chosen = np.random.default_rng(seed).multinomial(count, np.full(count, 1 / count), size=_RESAMPLES)
    means = chosen @ values.astype(np.float64) / count
    drawn = [
        task.summary(run.best_epoch, {f"test_{name}": _finite(value) for name, value in zip(names, row, strict=True)})
        for row in means
    ]
    intervals = {}
    for name, value in task.summary(run.best_epoch, run.history[-1]).items():
        if isinstance(value, str | list):
            continue  # about the model, such as its equation or objective
        if name not in drawn[0]:  # no mean over samples, such as the time of the first shock
            intervals[name] = Interval(value, None, None)
            continue
        found = np.asarray([each[name] for each in drawn if each[name] is not None], float)
        ends = np.quantile(found, [0.025, 0.975]) if found.size else None
        if name.startswith("validation_") or ends is None:
            intervals[name] = Interval(value, None, None)
        else:
            intervals[name] = Interval(value, float(ends[0]), float(ends[1]))
    return intervals


@eqx.filter_jit
def _metrics(task: AbstractTask, model: eqx.Module, batch: Batch) -> dict[str, Array]:
    return task.metrics(model, batch)


def _finite(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None
