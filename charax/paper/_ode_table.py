"""Table 1 in the paper's own regime: ODEs of the raw image, trained loosely and tested at a converged tolerance.

A run leaves a small record (config, learning curve, metrics) from which the table is built, so that parts that were
made on different days and machines add up. A record of another config is refused, so a table never mixes configs.
"""

import math
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from charax import train
from charax.paper._report import Column
from charax.tasks import ClassificationConfig
from charax.train import AbstractJob, AbstractProgress, from_json, to_json
from charax.train._json import describe_differences, read_json

if TYPE_CHECKING:
    from charax.train import Run

PAIRS = {
    "node": "c-node",
    "anode": "anode+c-node",
    "2nd-order": "2nd-order+c-node",
    "il-node": "il-node+c-node",
}
"""The plain methods and their characteristic counterparts."""

COLUMNS = (
    Column("data set", "dataset"),
    Column("method", "method"),
    Column("accuracy", "accuracy_mean", ".2%", "accuracy_sd"),
    Column("paper's", "accuracy_paper", ".2%"),
    Column("tolerance", "tolerance", ".0e"),
    Column("at a tenth of it", "accuracy_at_tenth_tolerance", ".2%"),
    Column("logits change", "logit_change_percent", ".2f"),
    Column("NFE", "nfe", ".0f"),
    Column("in training", "nfe_training", ".0f"),
    Column("paper's", "nfe_paper", ".0f"),
    Column("steps to reach", "steps_to_accuracy", ",.0f"),
    Column("parameters", "parameters", ",.0f"),
    Column("paper's", "parameters_paper", ",.0f"),
    Column("seeds", "seeds", "d"),
    Column("s", "seconds", ".0f"),
)


@dataclass(frozen=True)
class Record:
    """What is kept of a run: enough for the table and the figure, without weights."""

    config: ClassificationConfig
    metrics: dict[str, Any]
    epochs: list[dict[str, Any]]

    def summary(self) -> dict[str, Any]:
        """The metrics of the run, as `charax train … --json` prints them, and those at a tenth of the tolerance."""
        return self.metrics


@dataclass(frozen=True)
class OdeJob(AbstractJob[Record]):
    """A run and its record as a part of a sweep. The record stands for the run, which may be elsewhere."""

    config: ClassificationConfig
    place: Path
    """The file of the record."""
    folder: Path
    """The folder of the run."""

    def is_finished(self) -> bool:
        if not self.place.exists():
            return False
        self.load()
        return True

    def compute(self, progress: AbstractProgress) -> Record:
        from charax.train._checkpoints import write_json  # which imports JAX

        run = train.train_or_load(self.config, self.folder, progress=progress)
        metrics = {**run.summary(), "run": self.folder.name, **measure_convergence(run)}
        self.place.parent.mkdir(parents=True, exist_ok=True)
        write_json(self.place, {"config": to_json(self.config), "metrics": metrics, "epochs": run.epochs})
        return Record(self.config, metrics, run.epochs)

    def load(self) -> Record:
        return _load(self.place, self.config)


def seed_jobs(config: ClassificationConfig, folder: Path, seeds: Iterable[int]) -> list[OdeJob]:
    """The runs of one config with several seeds, and their records."""
    return [
        OdeJob(job.config, folder / "records" / f"{job.place.name}.json", job.place)  # pyright: ignore[reportArgumentType]
        for job in train.seed_jobs(config, folder, seeds)
    ]


def _load(path: Path, config: ClassificationConfig) -> Record:
    stored = read_json(path, missing="it was deleted just now")
    metrics, epochs = stored.get("metrics"), stored.get("epochs")
    if (
        not isinstance(metrics, dict)
        or not isinstance(epochs, list)
        or not all(isinstance(row, dict) for row in epochs)
    ):
        raise ValueError(f"{path} is not a record of a run: delete it")
    found = from_json(ClassificationConfig, stored.get("config"), path)
    differences = describe_differences(found, config)
    if differences:
        raise ValueError(
            f"{path} is the record of other settings: {', '.join(differences)}. Give another --output, or delete it"
        )
    return Record(found, metrics, epochs)


def measure_convergence(run: "Run", *, samples: int = 2_000, batch_size: int = 200) -> dict[str, float]:
    """Evaluate test samples at ever smaller tolerances, from that of training, until the answers do not change.

    A tolerance is converged if a tenth of it changes the accuracy by at most 0.3 points and the logits by at most 1%:
    the norm of their difference relative to the norm of the logits. If none is, the smallest one is reported.
    """
    import equinox as eqx
    import numpy as np

    from charax.solve import Solver

    task, model = run.trained
    inputs, targets = (part[:samples] for part in run.splits.test)
    batches = train.padded_batches(len(inputs), min(batch_size, len(inputs)))
    forward = eqx.filter_jit(lambda model, inputs, solver: model(inputs, solver=solver))

    def evaluate(tolerance: float) -> tuple[np.ndarray, float, float]:
        """Logits, accuracy and mean number of function evaluations."""
        solver = Solver(task.solver.method, rtol=tolerance, atol=tolerance, max_steps=_MOST_STEPS)
        answers = [forward(model, inputs[rows], solver) for rows in batches]
        logits = np.concatenate([np.asarray(logits) for logits, _ in answers])[: len(inputs)]
        nfe = statistics.mean(float(np.mean(np.asarray(solution.stats.nfe))) for _, solution in answers)
        right = np.isfinite(logits).all(1) & (logits.argmax(1) == targets)  # a failed solve counts as wrong
        return logits, float(right.mean()), nfe

    tolerance = trained = float(task.solver.rtol)
    usual, accuracy, nfe = evaluate(tolerance)
    found = {"training_tolerance": trained, "accuracy_at_training_tolerance": accuracy}
    while True:
        fine, fine_accuracy, fine_nfe = evaluate(tolerance / 10)
        change = float(np.linalg.norm(fine - usual) / np.linalg.norm(fine))
        if (abs(fine_accuracy - accuracy) <= 0.003 and change <= 0.01) or tolerance < 10 * _FINEST:
            return found | {
                "tolerance": tolerance,
                "accuracy": accuracy,
                "nfe": nfe,
                "accuracy_at_tenth_tolerance": fine_accuracy,
                "logit_change_percent": 100 * change,
            }
        tolerance, usual, accuracy, nfe = tolerance / 10, fine, fine_accuracy, fine_nfe


_FINEST = 1e-6
"""No tolerance below a tenth of this is tried."""
_MOST_STEPS = 4_096


def row(dataset: str, method: str, records: Sequence[Record], *, reach: float) -> dict[str, Any]:
    """One row of the table: means over the seeds, and what the paper claims about training."""
    metrics = [record.summary() for record in records]
    accuracy, sd = train.mean_and_sd([each["accuracy"] for each in metrics])
    average = lambda key: statistics.mean(each[key] for each in metrics)
    steps = [_steps_to(record, reach) for record in records]
    return {
        "dataset": dataset,
        "method": method,
        "parameters": metrics[0]["parameters"],
        "accuracy_mean": accuracy,
        "accuracy_sd": sd,
        "nfe": average("nfe"),
        "nfe_training": statistics.mean(record.epochs[-1]["nfe"] for record in records),
        "steps_to_accuracy": None if None in steps else statistics.mean(step for step in steps if step is not None),
        "reach": reach,
        "training_tolerance": metrics[0]["training_tolerance"],
        "accuracy_at_training_tolerance": average("accuracy_at_training_tolerance"),
        "tolerance": min(each["tolerance"] for each in metrics),
        "accuracy_at_tenth_tolerance": average("accuracy_at_tenth_tolerance"),
        "logit_change_percent": average("logit_change_percent"),
        "seeds": len(records),
        "seconds": sum(each["seconds"] for each in metrics),
    }


def _steps_to(record: Record, reach: float) -> int | None:
    """Training steps until the validation accuracy first reached a value; None if it never did."""
    return next((each["step"] for each in record.epochs if each["validation_accuracy"] >= reach), None)


def differences(
    results: dict[tuple[str, str], list[Record]], reported: dict[str, dict[str, float]]
) -> list[dict[str, Any]]:
    """C minus plain for each pair that was trained on a data set, with its standard error over seeds.

    Runs of equal seeds share the splits, so the difference is taken seed by seed.
    """
    found: list[dict[str, Any]] = []
    for (dataset, method), plain in results.items():
        other = results.get((dataset, PAIRS.get(method, "")))
        if other is None:
            continue
        by_seed = {record.config.loop.seed: record.summary()["accuracy"] for record in plain}
        values = [
            record.summary()["accuracy"] - by_seed[record.config.loop.seed]
            for record in other
            if record.config.loop.seed in by_seed
        ]
        mean, sd = train.mean_and_sd(values)
        paper = reported.get(dataset, {})
        known = method in paper and PAIRS[method] in paper
        found.append(
            {
                "dataset": dataset,
                "pair": method,
                "difference": mean,
                "standard_error": None if sd is None else sd / math.sqrt(len(values)),
                "difference_paper": (paper[PAIRS[method]] - paper[method]) / 100 if known else None,
                "seeds": len(values),
            }
        )
    return found
