"""Whole series of which observations are missing: controlled equations, C-NODEs, a NODE and a recurrent network."""

import os
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any, ClassVar, Literal

from charax import nn, plotting, train
from charax.models import SeriesMethod
from charax.paper._comparison import largest_width
from charax.paper._experiment import AbstractExperiment
from charax.paper._records import RecordJob
from charax.paper._report import Column, Figure, Report
from charax.tasks import SeriesConfig
from charax.train import AbstractProgress, LoopConfig, Sweep, TaskData, to_json

DatasetName = Literal["JapaneseVowels", "BasicMotions"]
METHODS: tuple[SeriesMethod, ...] = ("cde", "hybrid", "c-node", "node", "gru")
EPOCHS: dict[DatasetName, int] = {"JapaneseVowels": 100, "BasicMotions": 50}
"""Epochs of training, of eight steps or more each."""
VALIDATION_FRACTION = 0.05
"""Few series validate, and select nothing: the last weights are tested."""
NOISE: dict[DatasetName, float] = {"JapaneseVowels": 0.5, "BasicMotions": 0.0}
"""The noise that is added to training series, for all methods: little motion is what tells the
classes of BasicMotions apart, and noise would hide it."""
FIRST_SEED = 1
"""Earlier recipes were tested with seed 0."""
_LOWEST = 0.8
"""Where the axis of accuracies ends, so that methods can be told apart that are nearly perfect."""

_COLUMNS = (
    Column("data set", "dataset"),
    Column("method", "method"),
    Column("dropped %", "dropped_percent", "d"),
    Column("seeds", "seeds", "d"),
    Column("accuracy", "accuracy_mean", ".1%", "accuracy_sd"),
    Column("validation", "validation_accuracy_mean", ".1%"),
    Column("NFE", "nfe", ".0f"),
    Column("parameters", "parameters", ",d"),
    Column("s", "seconds", ".1f"),
    Column("s to compile", "compile_seconds", ".1f"),
)


@dataclass(frozen=True)
class Irregular(AbstractExperiment):
    """Classes of series with 0 to 70% of their observations dropped at random: all methods, with equally many
    parameters. It resumes. `python -m benchmarks.series_training` trains torchcde's models of the same sizes."""

    name: ClassVar[str] = "irregular"

    dataset: tuple[DatasetName, ...] = ()
    """Only these data sets of the UEA archive, from $CHARAX_DATA/uea: JapaneseVowels, BasicMotions."""
    method: tuple[SeriesMethod, ...] = ()
    """Only these methods."""
    dropped_percent: tuple[int, ...] = (0, 30, 50, 70)
    """Percentages of the observations to drop, per channel, from training and test series."""
    seeds: int = 5
    """Seeds per row: of the dropped observations, the validation split and the weights."""
    epochs: int | None = None
    """Epochs, instead of 100 for JapaneseVowels and 50 for BasicMotions."""
    finished_only: bool = False
    """Train nothing: build the table from the runs that are finished, with as many seeds as each row has."""

    def run(self, folder: Path, sweep: Sweep) -> Report:
        train.check_range(self, least={"seeds": 1, "epochs": 1})
        keys: list[tuple[DatasetName, SeriesMethod, int]] = [
            (dataset, method, percent)
            for dataset in self.dataset or tuple(EPOCHS)
            for percent in self.dropped_percent
            for method in self.method or METHODS
        ]
        jobs = {key: self._jobs(*key, folder) for key in keys}
        if self.finished_only:
            jobs = {key: [job for job in each if job.is_finished()] for key, each in jobs.items()}
            jobs = {key: each for key, each in jobs.items() if each}
            if not jobs:
                raise ValueError(f"{folder} has no finished run of these rows: leave --finished-only out")
        groups = sweep.run_groups(list(jobs.values()))
        rows = [_row(*key, results) for key, results in zip(jobs, groups, strict=True)]
        return Report(
            name=self.name,
            title="Accuracy on test series with dropped observations, mean over seeds",
            columns=_COLUMNS,
            answer={"rows": rows},
            record={"seeds": self.seeds},
            figures=self.figures({"rows": rows}),
        )

    def figures(self, stored: Mapping[str, Any]) -> Mapping[str, Figure]:
        return {"irregular.png": lambda path, rows=stored["rows"]: _plot(rows, path)}

    def _jobs(self, dataset: DatasetName, method: SeriesMethod, percent: int, folder: Path) -> list[RecordJob]:
        """The seeds of a row."""
        epochs = self.epochs or EPOCHS[dataset]
        jobs: list[RecordJob] = []
        for seed in range(FIRST_SEED, FIRST_SEED + self.seeds):
            config = make_config(dataset, method, percent, seed, epochs=epochs)
            place = folder / "records" / f"{dataset}-{method}-{percent}-seed{seed}.json"
            jobs.append(RecordJob(place, {**to_json(config), "epochs": epochs}, evaluate, {"config": config}))
        return jobs


def make_config(
    dataset: DatasetName, method: SeriesMethod, percent: int, seed: int, *, epochs: int | None = None
) -> SeriesConfig:
    """The recipe, which is the same for all methods."""
    return SeriesConfig(
        data=dataset,
        method=method,
        dropped_percent=float(percent),
        validation_fraction=VALIDATION_FRACTION,
        interpolation="linear",
        summary_start=True,
        noise_augmentation=NOISE[dataset],
        loop=LoopConfig(epochs or EPOCHS[dataset], 32, seed, weights="last"),
    )


def _row(dataset: DatasetName, method: SeriesMethod, percent: int, results: Sequence[dict[str, Any]]) -> dict[str, Any]:
    average = lambda key: train.mean_and_sd([one[key] for one in results])
    return {
        "dataset": dataset,
        "method": method,
        "dropped_percent": percent,
        "seeds": len(results),
        "accuracy_mean": average("accuracy")[0],
        "accuracy_sd": average("accuracy")[1],
        "validation_accuracy_mean": average("validation_accuracy")[0],
        "nfe": average("nfe")[0],
        "parameters": results[0]["parameters"],
        "seconds": average("seconds")[0],
        "compile_seconds": average("compile_seconds")[0],
    }


def find_files(dataset: str) -> tuple[Path, Path]:
    """The files of a data set of the UEA archive, compressed or not."""
    folder = Path(os.environ.get("CHARAX_DATA", "data")) / "uea"
    found = []
    for part in ("TRAIN", "TEST"):
        names = [folder / f"{dataset}_{part}{suffix}" for suffix in (".ts", ".ts.gz")]
        existing = [path for path in names if path.exists()]
        if not existing:
            raise ValueError(
                f"{names[0]} does not exist: download {dataset} from https://www.timeseriesclassification.com, and set "
                "CHARAX_DATA to the folder above uea"
            )
        found.append(existing[0])
    return found[0], found[1]


def load_sized(config: SeriesConfig) -> tuple[SeriesConfig, TaskData]:
    """The data, and the config with the width that gives as many parameters as a CDE of the default sizes has."""
    train_file, test_file = find_files(config.data)
    config = replace(config, data=str(train_file), test=str(test_file))
    loaded = config.load_data()
    channels, outputs = len(loaded.spec.scaling.channels), loaded.spec.outputs
    size = lambda one: one.design(loaded.spec).count(channels, outputs)
    target = size(replace(config, method="cde"))
    return replace(config, width=largest_width(lambda width: size(replace(config, width=width)), target)), loaded


def evaluate(config: SeriesConfig, *, progress: AbstractProgress | None = None) -> dict[str, Any]:
    """Train with equally many parameters, and test."""
    config, loaded = load_sized(config)
    task = config.build_task(loaded.spec)
    fitted = train.fit(task, loaded.splits, config.loop, config.optimizer, progress=progress)
    *epochs, test = fitted.history
    best = next((row for row in epochs if row["epoch"] == test["best_epoch"]), epochs[0])
    # The first epoch compiles the step and the evaluation. Of the others the median: a machine may be busy at times.
    times = [after["seconds"] - before["seconds"] for before, after in pairwise(epochs)]
    each = statistics.median(times) if times else 0.0
    return {
        "accuracy": test["test_accuracy"],
        "validation_accuracy": best["validation_accuracy"],
        "best_epoch": test["best_epoch"],
        "nfe": test["test_nfe"],
        "parameters": nn.count_parameters(fitted.model),
        "width": config.width,
        "seconds": each * len(epochs),
        "compile_seconds": max(epochs[0]["seconds"] - each, 0.0),
        "validation_losses": [row["validation_loss"] for row in epochs],
    }


def _plot(rows: Sequence[dict[str, Any]], path: Path) -> Path:
    """Accuracy over the dropped observations: one panel per data set, one line per method."""
    datasets = list(dict.fromkeys(row["dataset"] for row in rows))
    colours = {"cde": "#009e73", "hybrid": "#cc79a7", "c-node": plotting.C_NODE, "node": plotting.NODE, "gru": "black"}
    with plotting.save_figure(path, width=1.5 + 3.6 * len(datasets), height=3.2) as figure:
        axes = figure.subplots(1, len(datasets), squeeze=False)[0]
        for axis, dataset in zip(axes, datasets, strict=True):
            below = []
            for number, (method, colour) in enumerate(colours.items()):
                chosen = [row for row in rows if (row["dataset"], row["method"]) == (dataset, method)]
                if not chosen:
                    continue
                accuracies = [row["accuracy_mean"] for row in chosen]
                axis.errorbar(
                    # Beside each other, because most of them are equal.
                    [row["dropped_percent"] + number - 2 for row in chosen],
                    accuracies,
                    yerr=[row["accuracy_sd"] or 0.0 for row in chosen],
                    color=colour,
                    marker="o",
                    markersize=3,
                    capsize=2,
                    label=method,
                )
                if min(accuracies) < _LOWEST:
                    below.append(f"{method} down to {min(accuracies):.0%}")
            axis.set_ylim(bottom=_LOWEST)
            if below:
                axis.text(0.98, 0.03, ", ".join(below), ha="right", transform=axis.transAxes, fontsize="small")
            axis.set_title(dataset)
            axis.set_xlabel("dropped observations, %")
        figure.suptitle("Accuracy on test series as observations are dropped", fontsize="medium")
        axes[0].set_ylabel("test accuracy")
        axes[-1].legend(loc="upper left", bbox_to_anchor=(1, 1))
    return path
