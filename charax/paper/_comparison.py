"""Train several methods on the same data, with the same number of parameters, over several seeds."""

import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from charax import plotting, train
from charax.tasks import ClassificationConfig
from charax.train import AbstractConfig, Sweep


class MethodResult(NamedTuple):
    """One method on one data set, over seeds."""

    dataset: str
    """Name of the data."""
    method: str
    """Name of the method."""
    runs: "list[train.Run]"
    """One run per seed."""

    def row(self, metric: str = "accuracy") -> dict[str, Any]:
        """Average a metric over the seeds.

        Args:
            metric: Name of the metric.

        Returns:
            A flat row; the standard deviation of one seed is None, and so is a mean of what is not finite.
        """
        summaries = [run.summary() for run in self.runs]
        mean, sd = average([summary[metric] for summary in summaries])
        return {
            "dataset": self.dataset,
            "method": self.method,
            "parameters": summaries[0]["parameters"],
            f"{metric}_mean": mean,
            f"{metric}_sd": sd,
            "nfe": average([summary["nfe"] for summary in summaries])[0],
            "seconds": sum(summary["seconds"] for summary in summaries),
        }

    def learning_curves(self, metric: str = "accuracy") -> list[list[float | None]]:
        """Collect a validation metric.

        Args:
            metric: Name of the metric.

        Returns:
            Its value after every epoch, per seed; None where it was not finite.
        """
        return [[row[f"validation_{metric}"] for row in run.epochs] for run in self.runs]


def average(values: Sequence[float | None]) -> tuple[float | None, float | None]:
    """The mean and the standard deviation over seeds; None if one of them was not finite."""
    numbers = [value for value in values if value is not None]
    return train.mean_and_sd(numbers) if len(numbers) == len(values) else (None, None)


def by_epoch(curves: Sequence[Sequence[float | None]]) -> list[list[float]]:
    """The values of all seeds after each epoch that all of them have; NaN leaves a gap in a line."""
    return [[math.nan if value is None else value for value in column] for column in zip(*curves, strict=False)]


def compare(cases: Sequence[tuple[AbstractConfig, Path]], *, seeds: int, sweep: Sweep) -> list[MethodResult]:
    """Train each config, in the folder beside it, with the seeds 0, 1, …; what is there already is not repeated."""
    runs = sweep.run_groups([train.seed_jobs(config, folder, range(seeds)) for config, folder in cases])
    return [MethodResult(config.data, config.method, group) for (config, _), group in zip(cases, runs, strict=True)]


def plot_first_runs(results: Sequence[MethodResult]) -> None:
    """Plot the first run of every method into its own folder."""
    for result in results:
        result.runs[0].plot()


def match_width(
    config: ClassificationConfig, shape: tuple[int, ...], classes: int, *, target: int
) -> ClassificationConfig:
    """The same config with the width that brings the number of parameters closest to `target`, from below.

    ```python
    from charax.paper._comparison import match_width
    from charax.tasks import ClassificationConfig

    matched = match_width(ClassificationConfig(method="node"), (8, 8, 1), 10, target=20_093)
    assert matched.width > 24  # one network instead of two and a velocity
    ```
    """
    count = lambda width: count_parameters(replace(config, width=width), shape, classes)
    return replace(config, width=largest_width(count, target))


def count_parameters(config: ClassificationConfig, shape: tuple[int, ...], classes: int) -> int:
    """The number of parameters of a classifier, which is not built for that."""
    return config.design(shape).architecture.count(shape, classes)


def largest_width(count: Callable[[int], int], target: int) -> int:
    """The largest width whose `count` of parameters is not above `target`.

    ```python
    from charax.paper._comparison import largest_width

    assert largest_width(lambda width: width**2, 10) == 3
    ```
    """
    low, high = 1, 2
    while count(high) <= target:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if count(middle) <= target else (low, middle)
    return low


def plot_dynamics(dynamics: Mapping[str, Sequence[MethodResult]], path: Path, *, metric: str = "accuracy") -> Path:
    """A validation metric over the epochs: a row of panels for each way of training, a column for each data set.

    Red is NODE and blue is C-NODE; the line is the mean over seeds, the band spans the worst to the best. A data set
    with one epoch has no curve: it is left out if others have more.
    """
    several = lambda result: len(result.learning_curves(metric)[0]) > 1
    some = any(several(result) for results in dynamics.values() for result in results)
    kept = {name: [one for one in results if several(one) or not some] for name, results in dynamics.items()}
    shown = {name: results for name, results in kept.items() if results}
    datasets = list(dict.fromkeys(one.dataset for results in shown.values() for one in results))
    rows, columns = max(1, len(shown)), max(1, len(datasets))
    with plotting.save_figure(path, width=1.2 + 2.8 * columns, height=0.6 + 2.2 * rows) as figure:
        axes = figure.subplots(rows, columns, squeeze=False, sharex="col", sharey="col")
        for row, (name, results) in zip(axes, shown.items(), strict=False):
            for axis, dataset in zip(row, datasets, strict=True):
                for result in (one for one in results if one.dataset == dataset):
                    _plot_curve(axis, result, metric)
                axis.set_title(f"{dataset}, {name}" if name else dataset)
                axis.xaxis.get_major_locator().set_params(integer=True)
            row[0].set_ylabel(f"validation {metric.replace('_', ' ')}")
        for axis in axes[-1]:
            axis.set_xlabel("epoch")
        axes[0, -1].legend()
    return path


def _plot_curve(axis, result: MethodResult, metric: str) -> None:
    curves = result.learning_curves(metric)
    columns = by_epoch(curves)
    epochs = range(1, 1 + len(columns))
    colour = {"node": plotting.NODE, "c-node": plotting.C_NODE}[result.method]
    axis.plot(
        epochs, [statistics.mean(each) for each in columns], "o-", markersize=3, color=colour, label=result.method
    )
    if len(curves) > 1:
        lower, upper = [min(each) for each in columns], [max(each) for each in columns]
        axis.fill_between(epochs, lower, upper, color=colour, alpha=0.15, linewidth=0)
