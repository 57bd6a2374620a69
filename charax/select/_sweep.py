"""Train a classifier with every k over several seeds."""

import json
import statistics
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from charax.models import parse_method
from charax.select._criteria import Criterion, aic, bic, pick
from charax.tasks.classification import ClassificationConfig
from charax.train import AbstractProgress, Run, Silent, evaluate, spread, train_seeds
from charax.train._checkpoints import write_json
from charax.train._task import count_samples

_TRAINING_PART = "training-part.json"


class Tried(NamedTuple):
    """One k: its runs, and the loss of each on what it was trained on."""

    dataset: str
    k: int
    runs: list[Run]
    train_losses: list[float]
    samples: int

    def row(self) -> dict[str, Any]:
        """Means over the seeds; the criteria are means of each run's own."""
        summaries = [run.summary() for run in self.runs]
        parameters = summaries[0]["parameters"]
        accuracy, accuracy_sd = spread([summary["accuracy"] for summary in summaries])
        validation, validation_sd = spread([summary["validation_accuracy"] for summary in summaries])
        size = {"samples": self.samples, "parameters": parameters}
        return {
            "dataset": self.dataset,
            "k": self.k,
            "parameters": parameters,
            "accuracy_mean": accuracy,
            "accuracy_sd": accuracy_sd,
            "validation_mean": validation,
            "validation_sd": validation_sd,
            "train_loss": statistics.mean(self.train_losses),
            "test_loss": statistics.mean(self.test_losses),
            "aic": statistics.mean(aic(loss, **size) for loss in self.train_losses),
            "bic": statistics.mean(bic(loss, **size) for loss in self.train_losses),
            "seconds": sum(summary["seconds"] for summary in summaries),
        }

    @property
    def test_losses(self) -> list[float]:
        """The loss of each run on the test part."""
        return [run.history[-1]["test_loss"] for run in self.runs]


class Selection(NamedTuple):
    """Everything that was tried on one data set."""

    tried: list[Tried]

    def rows(self) -> list[dict[str, Any]]:
        """Flat rows, the smallest k first."""
        return [one.row() for one in self.tried]

    def picked(self) -> dict[Criterion, int]:
        """The k that each criterion picks. The test part has no say."""
        return pick(self.rows())


def select_dimension(
    settings: ClassificationConfig,
    dimensions: Sequence[int],
    *,
    seeds: int = 3,
    folder: Path,
    progress: AbstractProgress | None = None,
) -> Selection:
    """Train with every number of dimensions k, with the joint Jacobian; interrupted, it goes on where it was.

    ```python
    import tempfile
    from pathlib import Path
    from charax.select import select_dimension
    from charax.tasks.classification import ClassificationConfig
    from charax.train import LoopConfig

    quick = ClassificationConfig(width=4, loop=LoopConfig(epochs=1, batch_size=512))
    with tempfile.TemporaryDirectory() as folder:
        selection = select_dimension(quick, [1], seeds=1, folder=Path(folder))
    assert selection.picked() == {"validation": 1, "aic": 1, "bic": 1}
    ```
    """
    if not dimensions or min(dimensions) < 1:
        raise ValueError(f"k must be one or more numbers of at least 1, got {list(dimensions)}")
    if seeds < 1:
        raise ValueError(f"seeds must be at least 1, got {seeds}")
    if not parse_method(settings.method).characteristic:
        raise ValueError(f"{settings.method} has no characteristic whose dimension could be chosen: use c-node")
    progress = Silent() if progress is None else progress
    tried: list[Tried] = []
    for k in sorted(set(dimensions)):
        progress.say(f"k = {k}")
        one = replace(settings, characteristic_dim=k, jacobian="joint")
        runs = train_seeds(one, seeds=seeds, folder=folder / f"k{k}", progress=progress)
        parts = [_training_part(run) for run in runs]
        tried.append(Tried(settings.data, k, runs, [part["loss"] for part in parts], int(parts[0]["samples"])))
    return Selection(tried)


def _training_part(run: Run) -> dict[str, float]:
    """The loss of the chosen weights over the training part, without augmentation; found once and kept."""
    path = run.folder / _TRAINING_PART
    if path.exists():
        return json.loads(path.read_text())
    samples = count_samples(run.settings.prepare().train)
    found = {"loss": evaluate(run.folder, "train")["loss"], "samples": samples}
    write_json(path, found)
    return found
