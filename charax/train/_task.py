"""What the training loop asks of a task."""

import csv
from abc import abstractmethod
from pathlib import Path
from typing import Any, NamedTuple, Protocol, runtime_checkable

import equinox as eqx
import jax
import numpy as np
from jaxtyping import Array, Float, Float32, PRNGKeyArray, PyTree

from charax.solve import Solver
from charax.train._config import LoopConfig, OptimizerConfig

Batch = PyTree
"""Arrays with the samples in their first axis."""


class Predictions(NamedTuple):
    """What a model says about new inputs: a table."""

    columns: list[str]
    rows: list[list[str]]
    shown: int = 8
    """How many of the columns, from the first, are worth a place on a terminal."""

    def write(self, path: Path) -> None:
        """Write a CSV file with a header; a file that was there stays until the new one is whole."""
        path.parent.mkdir(parents=True, exist_ok=True)
        part = path.with_name(path.name + ".part")
        with part.open("w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(self.columns)
            writer.writerows(self.rows)
        part.replace(path)


class Samples(NamedTuple):
    """New data, in the units of that from which a model learned."""

    values: Float32[np.ndarray, "n *shape"]
    white: float | None
    """The value of a fully bright pixel, if they are images."""


@runtime_checkable
class Objective(Protocol):
    """What a step of training asks: a model, and its loss. Every task is one."""

    def build(self, key: PRNGKeyArray) -> eqx.Module:
        """A new model."""
        ...

    def loss(
        self, model: eqx.Module, batch: Batch, key: PRNGKeyArray
    ) -> tuple[Float[Array, ""], dict[str, Float[Array, ""]]]:
        """The loss of a training batch, and what to report with it: `failed` (1 if a solve failed, else 0) and more."""
        ...


class AbstractTask(eqx.Module):
    """A kind of learning: classification, flows, PDEs and series differ in nothing else that the loop can see.

    A task has no parameters. It is everything about a trained model that is not learned, so it is also
    what is stored beside the weights: `from_json(to_json())` is the same task.
    """

    solver: eqx.AbstractVar[Solver]

    @property
    @abstractmethod
    def name(self) -> str:
        """What the task is called in files."""

    @property
    @abstractmethod
    def chosen_by(self) -> str:
        """The validation metric that chooses the best weights."""

    @property
    @abstractmethod
    def higher_is_better(self) -> bool:
        """Whether more of that metric is better."""

    @abstractmethod
    def build(self, key: PRNGKeyArray) -> eqx.Module:
        """A new model."""

    @abstractmethod
    def loss(
        self, model: eqx.Module, batch: Batch, key: PRNGKeyArray
    ) -> tuple[Float[Array, ""], dict[str, Float[Array, ""]]]:
        """The loss of a training batch, and what to report with it: `failed` (1 if a solve failed, else 0) and more."""

    @abstractmethod
    def measure(self, model: eqx.Module, batch: Batch) -> dict[str, Float[Array, "batch"]]:
        """Metrics of every sample, `loss` among them; the loop takes their mean over a whole split."""

    @abstractmethod
    def summarise(self, best: dict[str, Any], test: dict[str, Any]) -> dict[str, Any]:
        """What to tell of a run first, from its best epoch's metrics and those of the test part."""

    def predict(self, model: eqx.Module, inputs: Path) -> Predictions:
        """What the model says about the inputs in a file or folder."""
        raise ValueError(f"a model of kind {self.name} has nothing to predict for {inputs}")

    def sample(self, model: eqx.Module, n: int, *, seed: int = 0, temperature: float = 1.0) -> Samples:
        """New samples from what the model learned."""
        raise ValueError(f"a model of kind {self.name} is no density, so nothing can be sampled from it")

    @abstractmethod
    def to_json(self) -> dict[str, Any]:
        """Everything that is needed to build the model again, as plain JSON."""

    @classmethod
    @abstractmethod
    def from_json(cls, stored: dict[str, Any]) -> "AbstractTask":
        """The inverse of `to_json`."""


class Problem(NamedTuple):
    """A task and its data. `test` is not looked at before the end."""

    task: AbstractTask
    train: Batch
    validation: Batch
    test: Batch


@runtime_checkable
class Settings(Protocol):
    """Everything that can be set about a run of one kind: the flags of `charax train KIND`, and its `config.json`."""

    @property
    def loop(self) -> LoopConfig: ...

    @property
    def optimizer(self) -> OptimizerConfig: ...

    @property
    def label(self) -> str:
        """A short name for a run with these settings."""
        ...

    def prepare(self) -> Problem:
        """Load the data and say what is to be learned from it."""
        ...

    def located(self) -> "Settings":
        """The same with paths that do not depend on the working folder."""
        ...


def count_samples(split: Batch) -> int:
    """The number of samples in a split."""
    sizes = {np.shape(leaf)[0] for leaf in jax.tree.leaves(split)}
    if len(sizes) != 1 or 0 in sizes:
        raise ValueError(f"the arrays of a split must have the same number of samples, above 0, got {sorted(sizes)}")
    return sizes.pop()
