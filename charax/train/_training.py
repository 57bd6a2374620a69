"""Train in a folder, and resume what was interrupted there."""

import importlib.metadata
import itertools
import json
import platform
from dataclasses import dataclass, replace
from pathlib import Path

import jax

from charax.train import _processes as processes
from charax.train._checkpoints import truncate_lines, write_atomically
from charax.train._config import AbstractConfig, TaskData
from charax.train._export import CONFIG, TrainedModel, design_model, load_config, save_config, save_model
from charax.train._folder import explain_failed_write, lock_folder, new_folder
from charax.train._history import METRICS, is_finished, read_history
from charax.train._json import describe_differences
from charax.train._loop import FitResult, fit
from charax.train._precision import check_precision, computing_in
from charax.train._process import release_freed_memory
from charax.train._progress import AbstractProgress, Silent
from charax.train._registry import TASKS, register_task
from charax.train._run import Run, data_digest, load_run, load_same_data
from charax.train._sharing import Loaded, load_on_first, remove_copy, share_data
from charax.train._sweep import AbstractJob
from charax.train._unused import refuse_unused


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
    check_precision(config)
    with computing_in(config):
        return _train(config.resolve_paths(), Path(folder), progress)


def _train(config: AbstractConfig, folder: Path, progress: AbstractProgress | None) -> Run:
    processes.on_first(lambda: _check_new(folder))
    loaded = load_on_first(lambda: _load_new(config))  # before anything is written
    with processes.only_first(new_folder(folder)), processes.only_first(lock_folder(folder)):
        processes.on_first(lambda: _save_new(folder, *loaded))
        config, data = share_data(folder, loaded)
        del loaded  # which many processes need not hold any more
        return _finish(folder, config, data, progress)


def _load_new(config: AbstractConfig) -> Loaded:
    """The complete config and its data. This is where bad settings and data show."""
    data = config.load_data()
    refuse_unused(config, config.unused(data))
    config, notes = config.complete(data)
    design_model(config, data.spec)
    return Loaded(config, data._replace(notes=(*data.notes, *notes)))


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

    ```python
    import tempfile
    import charax
    from charax.train import train

    config = charax.ClassificationConfig(method="node", width=4, loop=charax.LoopConfig(epochs=1))
    with tempfile.TemporaryDirectory() as folder:
        train(config, f"{folder}/run")
        longer = charax.resume(f"{folder}/run", epochs=2)
    assert len(longer.epochs) == 2
    ```
    """
    folder = Path(folder)
    config = load_config(folder)
    check_precision(config)
    with computing_in(config):
        return _resume(config, folder, epochs, progress)


def _resume(config: AbstractConfig, folder: Path, epochs: int | None, progress: AbstractProgress | None) -> Run:
    if epochs is None and processes.on_first(lambda: is_finished(folder)):
        return load_run(folder)
    with processes.only_first(lock_folder(folder)):
        if epochs is not None:
            processes.on_first(lambda: _check_longer(folder, config, epochs))
            config = replace(config, loop=replace(config.loop, epochs=epochs))  # pyright: ignore[reportArgumentType]
        loaded = load_on_first(lambda: _load_again(folder, config))
        if epochs is not None:
            processes.on_first(lambda: _lengthen(folder, *loaded))
        config, data = share_data(folder, loaded)
        del loaded
        return _finish(folder, config, data, progress)


def _load_again(folder: Path, config: AbstractConfig) -> Loaded:
    data = load_same_data(folder, config)
    design_model(config, data.spec)
    return Loaded(config, data)


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

    ```python
    import tempfile
    import charax

    config = charax.ClassificationConfig(method="node", width=4, loop=charax.LoopConfig(epochs=1))
    with tempfile.TemporaryDirectory() as folder:
        charax.train_or_load(config, f"{folder}/run")
        run = charax.train_or_load(config, f"{folder}/run")  # is not trained again
    assert len(run.epochs) == 1
    ```
    """
    job = TrainingJob(config, Path(folder))
    return job.load() if job.is_finished() else job.compute(progress or Silent())


@dataclass(frozen=True)
class TrainingJob(AbstractJob[Run]):
    """A run as a part of a sweep: a config and a folder.

    ```python
    from pathlib import Path

    import charax

    job = charax.TrainingJob(charax.ClassificationConfig(), Path("runs/none"))
    assert not job.is_finished()
    ```
    """

    config: AbstractConfig
    """The config of a task."""
    place: Path
    """The folder of the run."""

    def is_finished(self) -> bool:
        if not (self.place / CONFIG).exists():
            return False
        stored, config = load_config(self.place), self.config.resolve_paths()
        differences = describe_differences(stored, config)
        if differences:  # also if the stored values were chosen from the data
            differences = describe_differences(stored, config.complete(config.load_data())[0])
        if differences:
            raise ValueError(
                f"{self.place} has a run with other settings: {', '.join(differences)}. "
                "Give another --output, or delete that folder"
            )
        return is_finished(self.place)

    def compute(self, progress: AbstractProgress) -> Run:
        if self.config.name not in TASKS:  # another process does not know a task of the user's own
            register_task(type(self.config))
        if (self.place / CONFIG).exists():
            return resume(self.place, progress=progress)
        return train(self.config, self.place, progress=progress)

    def load(self) -> Run:
        return load_run(self.place)


def name_run(output: Path, label: str) -> str:
    """Find a name that no run in a folder has yet.

    Args:
        output: The folder of the runs.
        label: The name to start from.

    Returns:
        The label, or the label with a number.

    ```python
    import tempfile
    from pathlib import Path

    from charax.train import name_run

    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "digits").mkdir()
        assert name_run(Path(folder), "digits") == "digits-2"
    ```
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


def _check_new(folder: Path) -> None:
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise ValueError(f"{folder} exists and is not empty: give another name, or resume it: charax resume {folder}")


def _save_new(folder: Path, config: AbstractConfig, data: TaskData) -> None:
    if (folder / CONFIG).exists():
        raise ValueError(f"{folder} is in use by another run that has just started: give another name")
    with explain_failed_write(folder):
        save_config(folder, config, data_digest=data_digest(data.splits), versions=installed_versions())


def _lengthen(folder: Path, config: AbstractConfig, data: TaskData) -> None:
    # In this order: a process that is killed in between leaves a run that can be resumed.
    with explain_failed_write(folder):
        truncate_lines(folder / METRICS, len(read_history(folder)) - 1)
        save_config(folder, config, data_digest=data_digest(data.splits), versions=installed_versions())


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


def _finish(folder: Path, config: AbstractConfig, data: TaskData, progress: AbstractProgress | None) -> Run:
    task, together = config.build_task(data.spec), processes.count() > 1
    if together:
        release_freed_memory()
    for note in data.notes:
        (progress or Silent()).say(note)
    try:
        fitted = fit(task, data.splits, config.loop, config.optimizer, folder=folder, progress=progress)
        processes.on_first(lambda: _save_fitted(folder, data, fitted))
    finally:
        remove_copy(folder)
    return Run(folder, config, TrainedModel(task, fitted.model), fitted.history, None if together else data)


def _save_fitted(folder: Path, data: TaskData, fitted: FitResult) -> None:
    with explain_failed_write(folder):
        save_model(folder, data.spec, fitted.model)
        # The row of the test split marks the run as finished, so it is written last.
        write_atomically(folder / METRICS, "".join(json.dumps(row) + "\n" for row in fitted.history))
