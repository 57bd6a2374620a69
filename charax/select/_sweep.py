"""Train a classifier with every k over several seeds."""

import statistics
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

from charax.models import parse_method
from charax.select._criteria import Criterion, aic, bic, pick
from charax.tasks import ClassificationConfig
from charax.train import Run, Sweep, mean_and_sd, seed_jobs
from charax.train._checkpoints import write_json
from charax.train._json import check_row, read_json

_TRAIN_LOSS = "train-loss.json"


class Candidate(NamedTuple):
    """One k: its runs, and the loss of each on its train split.

    ```python
    from charax.select import Candidate

    candidate = Candidate("digits", k=4, runs=[], train_losses=[0.1, 0.2], samples=1_000)
    assert candidate.k == 4  # `select_dimension` fills in the runs
    ```
    """

    dataset: str
    """Name of the data."""
    k: int
    """Characteristic dimension."""
    runs: list[Run]
    """One run per seed."""
    train_losses: list[float]
    """Loss of the best weights on the train split, without augmentation, per seed."""
    samples: int
    """Size of the train split."""

    def row(self) -> dict[str, Any]:
        """Average over the seeds; the criteria are means of each run's own.

        Returns:
            A flat row.
        """
        summaries = [run.summary() for run in self.runs]
        parameters = summaries[0]["parameters"]
        accuracy, accuracy_sd = mean_and_sd([summary["accuracy"] for summary in summaries])
        validation, validation_sd = mean_and_sd([summary["validation_accuracy"] for summary in summaries])
        train_loss, train_sd = mean_and_sd(self.train_losses)
        test_loss, test_sd = mean_and_sd(self.test_losses)
        size = {"samples": self.samples, "parameters": parameters}
        return {
            "dataset": self.dataset,
            "k": self.k,
            "parameters": parameters,
            "accuracy_mean": accuracy,
            "accuracy_sd": accuracy_sd,
            "validation_mean": validation,
            "validation_sd": validation_sd,
            "train_loss": train_loss,
            "train_loss_sd": train_sd,
            "test_loss": test_loss,
            "test_loss_sd": test_sd,
            "aic": statistics.mean(aic(loss, **size) for loss in self.train_losses),
            "bic": statistics.mean(bic(loss, **size) for loss in self.train_losses),
            "seconds": sum(summary["seconds"] for summary in summaries),
        }

    @property
    def test_losses(self) -> list[float]:
        """The loss of each run on the test split."""
        return [run.history[-1]["test_loss"] for run in self.runs]


class Selection(NamedTuple):
    """All candidates on one data set.

    ```python
    from charax.select import Candidate, Selection

    selection = Selection([Candidate("digits", k, runs=[], train_losses=[], samples=1_000) for k in (1, 2)])
    assert [candidate.k for candidate in selection.candidates] == [1, 2]
    ```
    """

    candidates: list[Candidate]
    """The candidates, the smallest k first."""

    def rows(self) -> list[dict[str, Any]]:
        """Tabulate the candidates.

        Returns:
            One flat row per k.
        """
        return [candidate.row() for candidate in self.candidates]

    def picked(self) -> dict[Criterion, int]:
        """Pick a k by each criterion. The test split is not used.

        Returns:
            The k that each criterion picks.
        """
        return pick(self.rows())


def select_dimension(
    config: ClassificationConfig,
    dimensions: Sequence[int],
    *,
    seeds: int = 3,
    folder: Path,
    sweep: Sweep | None = None,
) -> Selection:
    """Train with every characteristic dimension k, with the joint Jacobian. An interrupted selection resumes.

    Args:
        config: The config of the classifier; its characteristic_dim, jacobian and seed are set here.
        dimensions: The values of k.
        seeds: Runs per k.
        folder: Folder of the runs.
        sweep: How many runs at the same time, and where to report; one after the other if left out.

    Returns:
        The candidates.

    Raises:
        ValueError: If there is no k to try, the config sets what is varied here, or the folder has runs with another
            config.
        SweepError: If some runs failed; the others are finished.

    ```python
    import tempfile
    from pathlib import Path
    import charax
    from charax.select import select_dimension

    quick = charax.ClassificationConfig(width=4, preset="dense", loop=charax.LoopConfig(epochs=1, batch_size=512))
    with tempfile.TemporaryDirectory() as folder:
        selection = select_dimension(quick, [1], seeds=1, folder=Path(folder))
    assert selection.picked() == {"validation": 1, "aic": 1, "bic": 1}
    ```
    """
    _check(config, dimensions, seeds)
    # One model: the criteria are about its number of parameters.
    configs = {
        k: replace(config, characteristic_dim=k, jacobian="joint", members=config.members or 1)
        for k in sorted(set(dimensions))
    }
    jobs = [seed_jobs(one, folder / f"k{k}", range(seeds)) for k, one in configs.items()]
    candidates: list[Candidate] = []
    for k, runs in zip(configs, (sweep or Sweep()).run_groups(jobs), strict=True):
        stored = [_train_loss(run) for run in runs]
        losses = [each["loss"] for each in stored]
        candidates.append(Candidate(config.data, k, runs, losses, int(stored[0]["samples"])))
    return Selection(candidates)


def _check(config: ClassificationConfig, dimensions: Sequence[int], seeds: int) -> None:
    if not dimensions or min(dimensions) < 1:
        raise ValueError(f"k must be one or more numbers of at least 1, got {list(dimensions)}")
    if seeds < 1:
        raise ValueError(f"seeds must be at least 1, got {seeds}")
    if not parse_method(config.method).characteristic:
        raise ValueError(f"{config.method} has no characteristic whose dimension could be chosen: use c-node")
    default = ClassificationConfig()
    varied = {
        "--characteristic-dim": (config.characteristic_dim, default.characteristic_dim, "give the values with --k"),
        "--jacobian": (config.jacobian, default.jacobian, "the joint form is used, whose size suits every k"),
        "--seed": (config.loop.seed, default.loop.seed, "the seeds are 0, 1, …; give their number with --seeds"),
    }
    for flag, (value, expected, fix) in varied.items():
        if value != expected:
            raise ValueError(
                f"{flag} is varied or fixed by the selection, so {value} has no effect: leave it out; {fix}"
            )


@dataclass(frozen=True)
class _TrainLoss:
    loss: float
    samples: int


def _train_loss(run: Run) -> dict[str, float]:
    """The loss of the best weights over the train split, without augmentation; computed once and stored."""
    path = run.folder / _TRAIN_LOSS
    if path.exists():
        return check_row(_TrainLoss, read_json(path, missing="it was deleted just now"), path)
    found = {"loss": run.evaluate("train")["loss"], "samples": run.trained.task.spec.train_samples}  # pyright: ignore[reportAttributeAccessIssue]
    write_json(path, found)
    return found
