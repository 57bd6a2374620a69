"""A run and its folder: config, metrics, checkpoints, model, figures."""

import hashlib
import importlib.metadata
import itertools
import json
import platform
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import jax
import numpy as np

from charax.nn import count_parameters
from charax.train._checkpoints import truncate_lines, write_atomically
from charax.train._config import BATCH_SIZE, AbstractConfig, Splits, TaskData
from charax.train._devices import Devices
from charax.train._evaluation import make_evaluation
from charax.train._export import (
    CONFIG,
    TrainedModel,
    design_model,
    load_config,
    load_model,
    save_config,
    save_model,
)
from charax.train._folder import explain_failed_write, lock_folder, new_folder
from charax.train._json import check_row, describe_differences, read_json, read_json_lines
from charax.train._loop import fit
from charax.train._parameters import flatten_model
from charax.train._progress import AbstractProgress, Silent
from charax.train._task import AbstractTask, Batch, GeneratedSamples, Predictions

METRICS = "metrics.jsonl"
_LAST_LINE = 1 << 16
"""Bytes that the last line of the metrics may have."""


@dataclass(frozen=True)
class _EpochRow:
    """What every row of an epoch has, besides its metrics."""

    epoch: int
    step: int
    loss: float | None
    validation_loss: float | None
    skipped: int
    seconds: float


@dataclass(frozen=True)
class _TestRow:
    """What the last row has, besides its metrics."""

    best_epoch: int
    seconds: float


@dataclass
class Run:
    """A finished run."""

    folder: Path
    """The folder of the run."""
    config: AbstractConfig
    """The config that it was trained with."""
    trained: TrainedModel
    """The task, and the model with the best weights."""
    history: list[dict[str, Any]]
    """One row of metrics per epoch, and a last one with those of the test split."""
    loaded: TaskData | None = None
    """The data, if they are in memory already."""

    @property
    def splits(self) -> Splits:
        """The data of the run, which are loaded on first use, and must be those that it was trained on."""
        if self.loaded is None:
            self.loaded = load_same_data(self.folder, self.config)
        return self.loaded.splits

    @property
    def epochs(self) -> list[dict[str, Any]]:
        """The rows of the epochs."""
        return self.history[:-1]

    @property
    def best_epoch(self) -> dict[str, Any]:
        """The row of the epoch whose weights were selected."""
        return find_best_epoch(self.history)

    @property
    def advice(self) -> str:
        """How to go on, if validation still improved in the last tenth of the epochs; else empty."""
        task = self.trained.task
        return _advice(self.folder, self.config, self.epochs, task.monitor, higher_is_better=task.higher_is_better)

    @property
    def problem(self) -> Any:
        """The learned equation as a `charax.pde` problem: for `solve`, `characteristics`, `shock_time`, `shocks`.

        Raises:
            ValueError: If the model has not learned an equation.
        """
        return self.trained.task.problem(self.trained.model)

    def summary(self) -> dict[str, Any]:
        """Summarize the run.

        Returns:
            What `charax train … --json` prints.
        """
        test = self.history[-1]
        try:
            summary = self.trained.task.summary(self.best_epoch, test)
        except KeyError as error:
            raise ValueError(f"{self.folder / METRICS} lacks {error}: it is not of this run") from None
        return {
            "run": str(self.folder),
            **summary,
            "nfe": test.get("test_nfe"),
            "parameters": count_parameters(self.trained.model),
            "seconds": round(test["seconds"], 2),
        }

    def evaluate(self, split: str = "test") -> dict[str, float]:
        """Evaluate the model on a split of its data.

        Args:
            split: train, validation or test.

        Returns:
            The metrics by name.

        Raises:
            ValueError: If there is no such split.
        """
        return self._metrics(self._split(split))

    def evaluate_in_full(self, split: str = "test", *, data: Path | str | None = None) -> dict[str, Any]:
        """Evaluate the model in full: the metrics, and what else its task can say, such as a confusion matrix.

        Args:
            split: train, validation or test.
            data: New samples with the right answers, instead of a split.

        Returns:
            Numbers, and tables as lists of flat dictionaries.

        Raises:
            ValueError: If there is no such split, its data have changed, or the new samples cannot be used.
        """
        task, model = self.trained
        spec: Any = getattr(task, "spec", None)
        samples = self._split(split) if data is None else self.config.load_labelled(Path(data), spec)
        return self._metrics(samples) | task.evaluation_details(model, samples)

    def _split(self, split: str) -> Batch:
        if split not in Splits._fields:
            raise ValueError(f"unknown split {split!r}; choose from {', '.join(Splits._fields)}")
        return getattr(self.splits, split)

    def _metrics(self, samples: Batch) -> dict[str, float]:
        devices = Devices()
        params, unflatten = flatten_model(self.trained.model)
        size = -(-(self.config.loop.batch_size or BATCH_SIZE) // devices.count) * devices.count
        evaluation = make_evaluation(self.trained.task, unflatten, size, devices)
        return evaluation(devices.replicate(params), samples)

    def plot(self) -> list[Path]:
        """Plot the learning curves and the trained model into the folder `plots` of the run.

        Returns:
            The files.
        """
        from charax.plotting import plot_learning_curves

        folder = self.folder / "plots"
        task, model = self.trained
        splits = self.splits
        with explain_failed_write(self.folder):
            folder.mkdir(exist_ok=True)
            curves = plot_learning_curves(self.history, folder / "training.png")
        return [curves, *task.plot(model, splits, folder, data=self.config.data)]


def train(config: AbstractConfig, folder: Path | str, *, progress: AbstractProgress | None = None) -> Run:
    """Train in a new folder.

    Args:
        config: The config of a task.
        folder: A folder that does not exist yet, or is empty.
        progress: Where to report; nowhere if left out.

    Returns:
        The finished run.

    Raises:
        ValueError: If the folder is in use, or the config or the data cannot be used. Nothing is written then.
        SaveError: If the folder cannot be written to. A run without a checkpoint is removed again.

    ```python
    import tempfile
    from pathlib import Path
    import charax
    from charax.train import train

    with tempfile.TemporaryDirectory() as folder:
        config = charax.ClassificationConfig(method="node", width=4, loop=charax.LoopConfig(epochs=1))
        run = train(config, Path(folder) / "run")
    assert run.summary()["accuracy"] <= 1
    ```
    """
    folder = Path(folder)
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise ValueError(f"{folder} exists and is not empty: give another name, or resume it: charax resume {folder}")
    config = config.resolve_paths()
    data = config.load_data()  # before anything is written: this is where bad settings and data show
    config, notes = config.complete(data)
    data = data._replace(notes=(*data.notes, *notes))
    design_model(config, data.spec)
    with new_folder(folder), lock_folder(folder):
        if (folder / CONFIG).exists():
            raise ValueError(f"{folder} is in use by another run that has just started: give another name")
        with explain_failed_write(folder):
            save_config(folder, config, data_digest=_digest(data.splits), versions=installed_versions())
        return _finish(folder, config, data, progress)


def resume(folder: Path | str, *, epochs: int | None = None, progress: AbstractProgress | None = None) -> Run:
    """Resume an interrupted run from its newest intact checkpoint. A finished run is loaded, or trained longer.

    Args:
        folder: The folder of the run.
        epochs: A new maximum number of epochs; that of the config if left out. A schedule of the learning rate that
            depends on the number of epochs is stretched to it.
        progress: Where to report; nowhere if left out.

    Returns:
        The finished run.

    Raises:
        ValueError: If the folder is not a run, is in use, its data have changed since it was started, or more epochs
            would change nothing.
        SaveError: If the folder cannot be written to. It keeps its last checkpoint.
    """
    folder = Path(folder)
    config = load_config(folder)
    if is_finished(folder) and epochs is None:
        return load_run(folder)
    with lock_folder(folder):
        if epochs is not None:
            _check_longer(folder, config, epochs)
            config = replace(config, loop=replace(config.loop, epochs=epochs))  # pyright: ignore[reportArgumentType]
        data = load_same_data(folder, config)
        design_model(config, data.spec)
        if epochs is not None:
            # In this order: a process that is killed in between leaves a run that can be resumed.
            with explain_failed_write(folder):
                truncate_lines(folder / METRICS, len(read_history(folder)) - 1)
                save_config(folder, config, data_digest=_digest(data.splits), versions=installed_versions())
        return _finish(folder, config, data, progress)


def load_same_data(folder: Path, config: AbstractConfig) -> TaskData:
    """Load the data of a run, which must be those that it was started with.

    Args:
        folder: The folder of the run.
        config: Its config.

    Returns:
        The data.

    Raises:
        ValueError: If they have changed.
    """
    data = config.load_data()
    stored = read_json(folder / CONFIG, missing="").get("data_digest")
    if stored is not None and stored != _digest(data.splits):
        raise ValueError(f"the data of {folder} have changed since the run started: restore them, or train a new run")
    return data


def _check_longer(folder: Path, config: AbstractConfig, epochs: int) -> None:
    if not is_finished(folder):
        raise ValueError(f"{folder} is not finished: resume it first, without --epochs")
    made = len(read_history(folder)) - 1
    if epochs <= made:
        raise ValueError(f"{folder} has {made} epochs: --epochs must be more than that, got {epochs}")
    if made < (config.loop.epochs or made):
        raise ValueError(
            f"{folder} stopped after {made} epochs because validation had not improved for {config.loop.patience}, so "
            "more epochs change nothing: train a new run with a larger --patience"
        )


def train_or_load(config: AbstractConfig, folder: Path | str, *, progress: AbstractProgress | None = None) -> Run:
    """Train in a folder, resume the run that is there, or load it if it is finished.

    Args:
        config: The config of a task.
        folder: The folder of the run.
        progress: Where to report; nowhere if left out.

    Returns:
        The finished run.

    Raises:
        ValueError: If the folder has a run with another config; the message names the settings that differ.
    """
    folder = Path(folder)
    if not (folder / CONFIG).exists():
        return train(config, folder, progress=progress)
    stored, config = load_config(folder), config.resolve_paths()
    differences = describe_differences(stored, config)
    if differences:  # also if the stored values were chosen from the data
        differences = describe_differences(stored, config.complete(config.load_data())[0])
    if differences:
        raise ValueError(
            f"{folder} has a run with other settings: {', '.join(differences)}. "
            "Give another --output, or delete that folder"
        )
    return resume(folder, progress=progress)


def train_seeds(
    config: AbstractConfig,
    folder: Path,
    *,
    seeds: int,
    label: str | None = None,
    progress: AbstractProgress | None = None,
) -> list[Run]:
    """Train the same config with the seeds 0, 1, …; runs that are in the folder already are not repeated.

    Args:
        config: The config of a task.
        folder: The folder of the runs' folders.
        seeds: Number of seeds.
        label: Name of the runs, instead of the config's.
        progress: Where to report; nowhere if left out.

    Returns:
        The runs, by seed.

    Raises:
        ValueError: If there are no seeds, or the folder has a run with another config.
    """
    if seeds < 1:
        raise ValueError(f"seeds must be at least 1, got {seeds}")
    progress, label = progress or Silent(), label or config.label
    runs: list[Run] = []
    for seed in range(seeds):
        progress.say(f"{label}, seed {seed}")
        seeded = replace(config, loop=replace(config.loop, seed=seed))  # pyright: ignore[reportArgumentType]
        runs.append(train_or_load(seeded, folder / f"{label}-seed{seed}", progress=progress))
    return runs


def mean_and_sd(values: Sequence[float]) -> tuple[float, float | None]:
    """Average a metric over seeds.

    Args:
        values: One value per seed.

    Returns:
        The mean and the sample standard deviation, which is None for a single value.
    """
    return statistics.mean(values), statistics.stdev(values) if len(values) > 1 else None


def load_run(folder: Path | str) -> Run:
    """Load a finished run: config, model and metrics. Its data are loaded only when they are asked for.

    Args:
        folder: The folder of the run.

    Returns:
        The run.

    Raises:
        ValueError: If it is not finished, or cannot be read.
    """
    folder = Path(folder)
    config = load_config(folder)
    if not is_finished(folder):
        raise ValueError(f"{folder} is not finished; resume it: charax resume {folder}")
    return Run(folder, config, load_model(folder), read_history(folder))


def find_best_epoch(history: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The row of the epoch whose weights were selected.

    Args:
        history: The rows of a finished run.

    Returns:
        The row.
    """
    *epochs, test = history
    return next((row for row in epochs if row["epoch"] == test["best_epoch"]), epochs[0])


def is_finished(folder: Path) -> bool:
    """Whether a run got as far as its test metrics.

    Args:
        folder: The folder of the run.

    Returns:
        True if the last line of its metrics is that of the test split.
    """
    metrics = folder / METRICS
    if not metrics.is_file():
        return False
    with metrics.open("rb") as file:
        size = file.seek(0, 2)
        file.seek(max(0, size - _LAST_LINE))
        lines = file.read().splitlines()
    return bool(lines) and b'"best_epoch"' in lines[-1] and lines[-1].endswith(b"}")


def evaluate(folder: Path | str, split: str = "test", *, data: Path | str | None = None) -> dict[str, Any]:
    """Evaluate a trained model on a split of its data, or on new samples with the right answers.

    Args:
        folder: The folder of the run.
        split: train, validation or test.
        data: A file or folder of new samples, instead of a split.

    Returns:
        The metrics by name, and what else the task can say: 95% confidence intervals, and for classes their precision
        and recall and the confusion matrix.

    Raises:
        ValueError: If there is no such split, its data have changed since training, or something cannot be read.
    """
    return load_run(folder).evaluate_in_full(split, data=data)


def predict(
    folder: Path | str,
    inputs: Path | str,
    *,
    strict: bool = False,
    class_name: str | None = None,
    keep: Sequence[str] | Literal["all"] = (),
) -> Predictions:
    """Predict for new inputs with the model of a run.

    Args:
        folder: The folder of the run.
        inputs: A file or folder of inputs.
        strict: Raise if one of the rows has no answer, instead of marking it.
        class_name: The class to condition on, if the model is conditional.
        keep: Columns of the inputs that are put before the predictions, or "all" of them.

    Returns:
        A table with one row per input.

    Raises:
        ValueError: If the inputs cannot be used.
        RuntimeError: With `strict`, if a row has no answer.
    """
    task, model = load_model(folder)
    _check_class(task, class_name)
    from charax.data import read_texts

    kept = read_texts(inputs, None if keep == "all" else keep) if keep else None  # before the model is run
    predictions = task.predict(model, Path(inputs), strict=strict, class_name=class_name)
    return predictions if kept is None else predictions.keep(kept.names, kept.rows)


def sample(
    folder: Path | str,
    n: int,
    *,
    seed: int = 0,
    temperature: float = 1.0,
    class_name: str | None = None,
    context: Path | None = None,
) -> GeneratedSamples:
    """Draw samples from the density of a run.

    Args:
        folder: The folder of the run.
        n: Number of samples.
        seed: Seed of the samples.
        temperature: Multiplies the standard deviation of the base distribution.
        class_name: The class to sample from, if the density is conditional; all of them in turn if left out.
        context: A table with the columns that the density is conditioned on, if there are any.

    Returns:
        The samples, in the units of the data.

    Raises:
        ValueError: If the model is not a density, or does not know the class.
    """
    task, model = load_model(folder)
    _check_class(task, class_name)
    return task.sample(model, n, seed=seed, temperature=temperature, class_name=class_name, context=context)


def _check_class(task: AbstractTask, class_name: str | None) -> None:
    known = task.conditional_classes
    if class_name is None or class_name in known:
        return
    if not known:
        raise ValueError("this model is not conditional: leave --class out, or train with --conditional")
    raise ValueError(f"the model does not know the class {class_name!r}; choose from {', '.join(known)}")


def name_run(output: Path, label: str) -> str:
    """Find a name that no run in a folder has yet.

    Args:
        output: The folder of the runs.
        label: The name to start from.

    Returns:
        The label, or the label with a number.
    """
    names = (label if i == 1 else f"{label}-{i}" for i in itertools.count(1))
    return next(name for name in names if not (output / name).exists())


def installed_versions() -> dict[str, str]:
    """The versions of what computes the numbers of a run.

    Returns:
        Versions by name.
    """
    found = {name: importlib.metadata.version(name) for name in ("jax", "equinox", "diffrax", "optax", "numpy")}
    return {"python": platform.python_version(), **found, "device": jax.devices()[0].device_kind}


def _finish(folder: Path, config: AbstractConfig, data: TaskData, progress: AbstractProgress | None) -> Run:
    task = config.build_task(data.spec)
    for note in data.notes:
        (progress or Silent()).say(note)
    fitted = fit(task, data.splits, config.loop, config.optimizer, folder=folder, progress=progress)
    with explain_failed_write(folder):
        save_model(folder, data.spec, fitted.model)
        # The row of the test split marks the run as finished, so it is written last.
        write_atomically(folder / METRICS, "".join(json.dumps(row) + "\n" for row in fitted.history))
    return Run(folder, config, TrainedModel(task, fitted.model), fitted.history, data)


def _advice(
    folder: Path, config: AbstractConfig, rows: list[dict[str, Any]], monitor: str, *, higher_is_better: bool
) -> str:
    """How to go on, if validation still improved in the last tenth of the epochs."""
    scores = [row[f"validation_{monitor}"] for row in rows]
    known = [score for score in scores if score is not None]
    if not known or len(rows) < (config.loop.epochs or 0):
        return ""
    improved = 1 + scores.index(max(known) if higher_is_better else min(known))
    if improved <= len(rows) - max(1, len(rows) // 10):
        return ""
    return (
        f"the validation {monitor.replace('_', ' ')} was still improving, in epoch {improved} of {len(rows)}: train "
        f"longer with --epochs, or go on with: charax resume {folder} --epochs {2 * len(rows)}"
    )


def read_history(folder: Path) -> list[dict[str, Any]]:
    """The rows of a finished run.

    Args:
        folder: The folder of the run.

    Returns:
        One row per epoch, and the one of the test split.

    Raises:
        ValueError: If they cannot be read.
    """
    path = folder / METRICS
    rows = read_json_lines(path)
    if len(rows) < 2:
        raise ValueError(f"{path} must hold one JSON object per epoch and one for the test split")
    last = len(rows)
    return [
        check_row(_TestRow if number == last else _EpochRow, row, f"{path}, line {number}")
        for number, row in enumerate(rows, start=1)
    ]


def _digest(splits: Splits) -> str:
    """A short text that tells data from other data."""
    digest = hashlib.blake2b(digest_size=16)
    for leaf in jax.tree.leaves(splits):
        digest.update(np.ascontiguousarray(leaf).data)
    return digest.hexdigest()
