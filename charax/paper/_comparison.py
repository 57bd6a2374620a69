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


def record_curves(trained: Mapping[str, Sequence[MethodResult]], *metrics: str) -> list[dict[str, Any]]:
    """What `plot_dynamics` shows, as it is stored: validation metrics after every epoch, per seed."""
    return [
        {"training": training, "dataset": one.dataset, "method": one.method}
        | {f"validation_{metric}": one.learning_curves(metric) for metric in metrics}
        for training, results in trained.items()
        for one in results
    ]


_LABELS = {"accuracy": "accuracy", "nll": "NLL, nats", "bits_per_dim": "bits per dimension", "nfe": "evaluations"}


def plot_dynamics(
    dynamics: Sequence[Mapping[str, Any]], path: Path, *, metric: str = "accuracy", steps_per_epoch: int | None = None
) -> Path:
    """A validation metric over the epochs: a row of panels for each way of training, a column for each data set.

    The line is the mean over seeds, the band spans the worst to the best. A data set with one epoch has no curve: it
    is left out if others have more. Epochs of a given number of steps are shown as steps.
    """
    curves = lambda row: row[f"validation_{metric}"]
    several = [row for row in dynamics if len(curves(row)[0]) > 1]
    shown = several or list(dynamics)
    trainings = list(dict.fromkeys(row["training"] for row in shown)) or [""]
    datasets = list(dict.fromkeys(row["dataset"] for row in shown)) or [""]
    spread = ", mean and range over seeds" if any(len(curves(row)) > 1 for row in shown) else ""
    width, height = max(4.6, 1.2 + 2.8 * len(datasets)), 0.9 + 2.2 * len(trainings)
    with plotting.save_figure(path, width=width, height=height) as figure:
        axes = figure.subplots(len(trainings), len(datasets), squeeze=False, sharex="col", sharey="col")
        for line, training in zip(axes, trainings, strict=True):
            for axis, dataset in zip(line, datasets, strict=True):
                for row in (one for one in shown if (one["training"], one["dataset"]) == (training, dataset)):
                    plot_curve(
                        axis, curves(row), plotting.method_color(row["method"]), row["method"], steps_per_epoch or 1
                    )
                axis.set_title(f"{dataset}, {training}" if training else dataset)
                axis.xaxis.get_major_locator().set_params(integer=True)
            line[0].set_ylabel(f"validation {_LABELS[metric]}")
        for axis in axes[-1]:
            axis.set_xlabel("epoch" if steps_per_epoch is None else "training step")
        axes[0, -1].legend()
        figure.suptitle(f"Learning curves on validation data{spread}", fontsize="medium")
    return path


def plot_curve(
    axis: Any, curves: Sequence[Sequence[float | None]], color: str, label: str, steps_per_epoch: int = 1
) -> None:
    """A metric over the epochs: the mean over seeds, and the band of all seeds."""
    columns = by_epoch(curves)
    epochs = range(steps_per_epoch, steps_per_epoch * (1 + len(columns)), steps_per_epoch)
    axis.plot(epochs, [statistics.mean(each) for each in columns], "o-", markersize=3, color=color, label=label)
    if len(curves) > 1:
        lower, upper = [min(each) for each in columns], [max(each) for each in columns]
        axis.fill_between(epochs, lower, upper, color=color, alpha=0.15, linewidth=0)
