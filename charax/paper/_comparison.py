"""Train several methods on the same data, with the same number of parameters, over several seeds."""

import statistics
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import equinox as eqx
import jax

from charax.models import find_design
from charax.nn import count_parameters
from charax.tasks.classification import ClassificationConfig
from charax.tasks.density import DensityConfig
from charax.train import AbstractProgress, Run, spread, train_seeds


class Compared(NamedTuple):
    """One method on one data set, over seeds."""

    dataset: str
    method: str
    runs: list[Run]

    def row(self, metric: str = "accuracy") -> dict[str, Any]:
        """Mean and spread of a metric over the seeds; the spread of one seed is not known."""
        summaries = [run.summary() for run in self.runs]
        mean, sd = spread([summary[metric] for summary in summaries])
        return {
            "dataset": self.dataset,
            "method": self.method,
            "parameters": summaries[0]["parameters"],
            f"{metric}_mean": mean,
            f"{metric}_sd": sd,
            "nfe": statistics.mean(summary["nfe"] for summary in summaries),
            "seconds": sum(summary["seconds"] for summary in summaries),
        }

    def courses(self, metric: str = "accuracy") -> list[list[float]]:
        """A validation metric after every epoch, seed by seed."""
        return [[row[f"validation_{metric}"] for row in run.history if "epoch" in row] for run in self.runs]


def compare(
    settings: Sequence[ClassificationConfig] | Sequence[DensityConfig],
    *,
    seeds: int,
    folder: Path,
    progress: AbstractProgress,
) -> list[Compared]:
    """Train each of `settings` with seeds 0, 1, …; runs that are in the folder already are not made again."""
    return [
        Compared(one.data, one.method, train_seeds(one, seeds=seeds, folder=folder, progress=progress))
        for one in settings
    ]


def match_width(
    settings: ClassificationConfig, shape: tuple[int, ...], classes: int, *, target: int
) -> ClassificationConfig:
    """The same settings with the width that brings the parameters closest to `target`, from below.

    ```python
    from charax.paper._comparison import match_width
    from charax.tasks.classification import ClassificationConfig

    matched = match_width(ClassificationConfig(method="node"), (8, 8, 1), 10, target=20_093)
    assert matched.width > 24  # one network has to make up for two and a velocity
    ```
    """

    count = lambda width: count_architecture(replace(settings, width=width), shape, classes)
    return replace(settings, width=largest_width(count, target))


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


def count_architecture(settings: ClassificationConfig, shape: tuple[int, ...], classes: int) -> int:
    """The parameters of the model that settings stand for, without making it."""
    design = find_design(
        settings.preset,
        settings.method,
        shape,
        dataset=settings.data,
        width=settings.width,
        augment_dim=settings.augment_dim,
        characteristic_dim=settings.characteristic_dim,
        jacobian=settings.jacobian,
    )
    return count_parameters(eqx.filter_eval_shape(design.architecture.build, shape, classes, key=jax.random.key(0)))
