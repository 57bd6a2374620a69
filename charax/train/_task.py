"""What the training engine asks of a task."""

import csv
import dataclasses
from abc import abstractmethod
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, runtime_checkable

import equinox as eqx
import jax
import numpy as np
from jaxtyping import Array, Bool, Float, Float32, Int, PRNGKeyArray, PyTree

from charax.data import check_limit
from charax.plotting import Section
from charax.solve import Solver
from charax.train._config import Splits

if TYPE_CHECKING:
    from charax.train._programs import Program

Batch = PyTree
"""Arrays with the samples in their first axis."""


class Predictions(NamedTuple):
    """Predictions for new inputs, as a table of text."""

    columns: list[str]
    """Names of the columns."""
    rows: list[list[str]]
    """One row per input."""
    shown: int = 8
    """How many of the first columns fit on a terminal."""
    failed: int = 0
    """Rows without an answer; their column `status` says why."""
    inputs: int = 1
    """How many of the first columns describe the input."""
    meanings: tuple[str, ...] = ()
    """What the columns are, one line for each kind of column."""

    def keep(self, names: Sequence[str], cells: Sequence[Sequence[str]]) -> "Predictions":
        """Put columns of the user before the predictions.

        A column of the predictions that has the name of one of them is called `predicted NAME`.

        Args:
            names: The names of the columns.
            cells: One row of texts per input.

        Returns:
            The table with these columns.

        Raises:
            ValueError: If there is another number of rows.
        """
        if len(cells) != len(self.rows):
            raise ValueError(
                f"columns can be kept only where every row has one prediction: there are {len(cells)} rows and "
                f"{len(self.rows)} predictions"
            )
        inputs = self.columns[: self.inputs]
        kept = [i for i, name in enumerate(names) if name not in inputs]
        chosen = [names[i] for i in kept]
        columns = [*inputs, *(f"predicted {name}" if name in chosen else name for name in self.columns[self.inputs :])]
        rows = [[*(cell[i] for i in kept), *row] for cell, row in zip(cells, self.rows, strict=True)]
        meanings = (*self.meanings, *((f"{', '.join(chosen)}: as in the inputs",) if chosen else ()))
        return self._replace(columns=[*chosen, *columns], rows=rows, shown=self.shown + len(chosen), meanings=meanings)

    def write(self, path: Path) -> None:
        """Write a CSV file with a header. An existing file is replaced only when the new one is complete.

        Args:
            path: The file.
        """
        path.parent.mkdir(parents=True, exist_ok=True)
        part = path.with_name(path.name + ".part")
        with part.open("w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(self.columns)
            writer.writerows(self.rows)
        part.replace(path)


class GeneratedSamples(NamedTuple):
    """Samples from a learned density, in the units of the data."""

    values: Float32[np.ndarray, "n *shape"]
    """The samples."""
    max_value: float | None
    """The value of a fully bright pixel, if they are images."""
    classes: list[str] | None = None
    """The class of each sample, if the density is conditional."""


@runtime_checkable
class Objective(Protocol):
    """What a step of training needs: a model and its loss. Every task is an objective."""

    def build(self, key: PRNGKeyArray) -> eqx.Module:
        """Initialize a model.

        Args:
            key: Random key of the initial weights.

        Returns:
            The model.
        """
        ...

    def loss(
        self, model: eqx.Module, batch: Batch, key: PRNGKeyArray
    ) -> tuple[Float[Array, ""], dict[str, Float[Array, ""]]]:
        """Compute the loss of a mini-batch.

        Args:
            model: The model.
            batch: The mini-batch.
            key: Random key of this step.

        Returns:
            The loss, and metrics to report with it, among them `failed`: 1 if a solve failed, else 0.
        """
        ...


class AbstractTask(eqx.Module):
    """A kind of learning. Classification, densities, PDEs and series differ in nothing else that the engine can see.

    A task has no parameters. It is everything about a trained model that is not learned, and is built from the run's
    config and the description of its data (`AbstractConfig.build_task`).
    """

    solver: eqx.AbstractVar[Solver]

    @property
    @abstractmethod
    def monitor(self) -> str:
        """The validation metric that selects the best weights."""

    @property
    @abstractmethod
    def higher_is_better(self) -> bool:
        """Whether larger values of that metric are better."""

    @abstractmethod
    def build(self, key: PRNGKeyArray) -> eqx.Module:
        """Initialize a model.

        Args:
            key: Random key of the initial weights.

        Returns:
            The model.
        """

    @abstractmethod
    def loss(
        self, model: eqx.Module, batch: Batch, key: PRNGKeyArray
    ) -> tuple[Float[Array, ""], dict[str, Float[Array, ""]]]:
        """Compute the loss of a mini-batch.

        Args:
            model: The model.
            batch: The mini-batch.
            key: Random key of this step.

        Returns:
            The loss, and metrics to report with it, among them `failed`: 1 if a solve failed, else 0.
        """

    @property
    def stages(self) -> tuple[tuple[float, "AbstractTask"], ...]:
        """The stages of training: the fraction of the epochs after which each begins, and the task whose loss it
        minimizes. All of them train the same model and report the same metrics."""
        return ((0.0, self),)

    def prepare_epoch(
        self, train: Batch, order: Int[np.ndarray, "steps batch"], generator: np.random.Generator
    ) -> Batch:
        """Prepare the training split for one epoch: what a step needs and cannot compute, such as a coupling.

        Args:
            train: The training split.
            order: The rows of each mini-batch of the epoch.
            generator: The random numbers of the epoch.

        Returns:
            The split to train on, with the samples in the same rows; `train` itself if there is nothing to do.
        """
        return train

    @abstractmethod
    def metrics(self, model: eqx.Module, batch: Batch) -> dict[str, Float[Array, "batch"]]:
        """Compute the metrics of every sample; the engine averages them over a whole split.

        Args:
            model: The model.
            batch: Some samples.

        Returns:
            The metrics by name, `loss` among them.
        """

    @abstractmethod
    def summary(self, best: dict[str, Any], test: dict[str, Any]) -> dict[str, Any]:
        """Select the metrics that a run is summarized by.

        Args:
            best: The row of the best epoch.
            test: The row of the test split.

        Returns:
            A few of them, by the names that `--json` prints.
        """

    def refine(
        self, model: eqx.Module, splits: Splits, say: Callable[[str], None]
    ) -> tuple[eqx.Module, dict[str, Any]]:
        """Improve a trained model by other means than gradient descent, before the test split is evaluated.

        Args:
            model: The model with the best weights.
            splits: The data; the test split must not be used.
            say: Where to report each stage; it raises if the run is to stop there.

        Returns:
            The model, with the same structure, and what to store about it next to the metrics of the test split.
        """
        return model, {}

    def problem(self, model: eqx.Module) -> Any:
        """Make a `charax.pde` problem of a learned equation.

        Args:
            model: The trained model.

        Returns:
            The problem.

        Raises:
            ValueError: If this model has not learned an equation.
        """
        raise ValueError("this model has not learned an equation: train it with charax train pde --method equation")

    @property
    def conditional_classes(self) -> tuple[str, ...]:
        """The classes that the model is conditioned on; empty if it is not conditional."""
        return ()

    def predict(
        self, model: eqx.Module, inputs: Path, *, strict: bool = False, class_name: str | None = None
    ) -> Predictions:
        """Predict for the inputs in a file or folder.

        Args:
            model: The trained model.
            inputs: The file or folder.
            strict: Raise if one of the rows has no answer, instead of marking it.
            class_name: The class to condition on, if the model is conditional.

        Returns:
            A table with one row per input.

        Raises:
            ValueError: If the inputs cannot be used, or this task has no predictions.
            RuntimeError: With `strict`, if a row has no answer.
        """
        raise ValueError(f"a model of this task has no predictions, so {inputs} was not read")

    def evaluation_details(self, model: eqx.Module, split: Batch) -> dict[str, Any]:
        """Describe how good a model is on some samples, beyond the means of its metrics.

        Args:
            model: The trained model.
            split: The samples.

        Returns:
            Numbers, and tables as lists of flat dictionaries, by the names that `--json` prints.
        """
        return {}

    def sample(
        self,
        model: eqx.Module,
        n: int,
        *,
        seed: int = 0,
        temperature: float = 1.0,
        class_name: str | None = None,
        context: Path | None = None,
    ) -> GeneratedSamples:
        """Draw samples from a learned density.

        Args:
            model: The trained model.
            n: Number of samples.
            seed: Seed of the samples.
            temperature: Multiplies the standard deviation of the base distribution.
            class_name: The class to sample from, if the density is conditional; all of them in turn if left out.
            context: A table with the columns that the density is conditioned on, if there are any. Its rows are taken
                in turn.

        Returns:
            The samples, in the units of the data.

        Raises:
            ValueError: If this model is not a density, or the context does not suit it.
        """
        raise ValueError("this model is not a density, so nothing can be sampled from it")

    def programs(self, model: eqx.Module) -> dict[str, "Program"]:
        """What `charax export` writes: functions of raw inputs, with the trained model and its solver inside.

        Args:
            model: The trained model.

        Returns:
            The programs by name.

        Raises:
            ValueError: If a model of this task cannot be exported.
        """
        raise ValueError("models of this task cannot be exported yet: use charax predict, or charax.load_model")

    def plot(self, model: eqx.Module, splits: Splits, folder: Path, *, data: str) -> list[Path]:
        """Plot whatever there is to see of a trained model, besides its learning curves.

        Args:
            model: The trained model.
            splits: The data of the run.
            folder: Folder of the figures.
            data: The name or path of the data, as the config has it.

        Returns:
            The files.
        """
        return []

    def report(self, model: eqx.Module, splits: Splits, *, data: str) -> list[Section]:
        """Show whatever there is to see of a trained model with figures that move, for `charax report`.

        Args:
            model: The trained model.
            splits: The data of the run.
            data: The name or path of the data, as the config has it.

        Returns:
            The sections. Settings, metrics and learning curves are in every report already.
        """
        return []


def mark_failures(
    table: Predictions,
    failed: Bool[np.ndarray, "rows"],
    *,
    inputs: int,
    names: Sequence[str],
    reason: str,
    strict: bool,
) -> Predictions:
    """Leave the answers of failed rows empty, and say why in a column `status`.

    Args:
        table: The answers of all rows.
        failed: Which rows have no answer.
        inputs: The first columns, which describe the input and are kept.
        names: What an error calls each row.
        reason: Why a row has no answer, and what to do.
        strict: Raise instead.

    Returns:
        The table; without a column `status` if no row failed.

    Raises:
        RuntimeError: With `strict`, if a row failed.
    """
    count = int(failed.sum())
    if not count:
        return table
    if strict:
        raise RuntimeError(f"{names[int(np.argmax(failed))]}: {reason}")
    rows = [
        [*row[:inputs], *[""] * (len(row) - inputs), reason] if bad else [*row, "ok"]
        for row, bad in zip(table.rows, failed, strict=True)
    ]
    meanings = (*table.meanings, "status: ok, or why the row has no answer")
    return table._replace(columns=[*table.columns, "status"], rows=rows, failed=count, meanings=meanings)


def count_samples(split: Batch) -> int:
    """Count the samples of a split.

    Args:
        split: Arrays with the samples in their first axis.

    Returns:
        The number of samples.

    Raises:
        ValueError: If the arrays disagree, or are empty.
    """
    sizes = {np.shape(leaf)[0] for leaf in jax.tree.leaves(split)}
    if len(sizes) != 1 or 0 in sizes:
        raise ValueError(f"the arrays of a split must have the same number of samples, above 0, got {sorted(sizes)}")
    return sizes.pop()


def padded_batches(count: int, batch_size: int) -> Int[np.ndarray, "batches batch_size"]:
    """Split rows into mini-batches of one size, so that one compiled shape serves all.

    Args:
        count: Number of rows.
        batch_size: Rows per mini-batch.

    Returns:
        Row indices per mini-batch; the last one is filled up with rows from the beginning.
    """
    return (np.arange(-(-count // batch_size) * batch_size) % count).reshape(-1, batch_size)


def solve_in_batches(
    solve: Callable[[Int[np.ndarray, "batch_size"], Solver], tuple[Array, ...]],
    count: int,
    solver: Solver,
    *,
    batch_size: int = 256,
) -> tuple[np.ndarray, ...]:
    """Solve for every row, with one compiled shape.

    One row that fails takes its whole mini-batch with it. Such a mini-batch is solved again with steps of its own for
    every row, so that only the rows that fail have no answer.

    Args:
        solve: A function of (rows, solver) that returns one or more arrays, the first of them NaN where there is no
            answer.
        count: Number of rows.
        solver: How to integrate.
        batch_size: Maximum number of rows per solve.

    Returns:
        The arrays for all rows.
    """
    parts = []
    for rows in padded_batches(count, min(batch_size, count)):
        answer = solve(rows, solver)
        if len(rows) > 1 and not np.isfinite(answer[0]).any():
            answer = solve(rows, dataclasses.replace(solver, per_sample=True))
        parts.append([np.asarray(each) for each in answer])
    return tuple(np.concatenate(pieces)[:count] for pieces in zip(*parts, strict=True))


def repeat_rows(count: int, at_least: int) -> np.ndarray:
    """Repeat all rows of a small data set, so that an epoch has enough steps.

    Args:
        count: Number of rows.
        at_least: Rows that an epoch needs.

    Returns:
        Row indices: all rows, as often as needed.

    Raises:
        ValueError: If that is more than the limit of lines.
    """
    check_limit("lines", at_least, "an epoch of many mini-batches", "repeats rows to")
    return np.tile(np.arange(count), -(-at_least // count))
