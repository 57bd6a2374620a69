"""What the training loop asks of a task."""

from abc import abstractmethod
from typing import Any, NamedTuple

import equinox as eqx
import jax
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray, PyTree

from charax.solve import Solver

Batch = PyTree
"""Arrays with the samples in their first axis."""


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


def count_samples(split: Batch) -> int:
    """The number of samples in a split."""
    sizes = {np.shape(leaf)[0] for leaf in jax.tree.leaves(split)}
    if len(sizes) != 1 or 0 in sizes:
        raise ValueError(f"the arrays of a split must have the same number of samples, above 0, got {sorted(sizes)}")
    return sizes.pop()
