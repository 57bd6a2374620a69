"""A run and its folder: settings, metrics, checkpoints, model."""

import hashlib
import itertools
import json
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np

from charax._version import __version__
from charax.nn import count_parameters
from charax.tasks.classification._config import ClassificationConfig
from charax.tasks.density._config import DensityConfig
from charax.tasks.forecast._config import ForecastConfig
from charax.tasks.pde._config import PDEConfig
from charax.train._checkpoints import write_json, write_whole
from charax.train._config import from_json, to_json
from charax.train._devices import Devices
from charax.train._evaluation import make_evaluation
from charax.train._export import Trained, load_model, save_model
from charax.train._loop import fit
from charax.train._parameters import flatten_model
from charax.train._progress import AbstractProgress
from charax.train._task import Predictions, Problem, Samples, Settings

KINDS: dict[str, type[Settings]] = {
    "classify": ClassificationConfig,
    "density": DensityConfig,
    "pde": PDEConfig,
    "forecast": ForecastConfig,
}
"""What can be trained, by the word after `charax train`."""


class Run(NamedTuple):
    """A finished run."""

    folder: Path
    settings: Settings
    trained: Trained
    history: list[dict[str, Any]]
    """A row of metrics per epoch, and last the one of the test part."""

    def summary(self) -> dict[str, Any]:
        """What `charax train … --json` prints."""
        *epochs, test = self.history
        best = next((row for row in epochs if row["epoch"] == test["best_epoch"]), epochs[0])
        return {
            "run": str(self.folder),
            **self.trained.task.summarise(best, test),
            "nfe": test.get("test_nfe"),
            "parameters": count_parameters(self.trained.model),
            "seconds": round(test["seconds"], 2),
        }


def train(settings: Settings, folder: Path, *, progress: AbstractProgress | None = None) -> Run:
    """Train in a new folder.

    ```python
    import tempfile
    from pathlib import Path
    from charax.tasks.classification import ClassificationConfig
    from charax.train import LoopConfig, train

    with tempfile.TemporaryDirectory() as folder:
        settings = ClassificationConfig(method="node", width=4, loop=LoopConfig(epochs=1))
        run = train(settings, Path(folder) / "run")
    assert run.summary()["accuracy"] <= 1
    ```
    """
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise ValueError(f"{folder} exists and is not empty: give another name, or go on with: charax resume {folder}")
    settings = settings.located()
    problem = settings.prepare()  # before anything is written, for this is where bad settings and data show
    folder.mkdir(parents=True, exist_ok=True)
    kind = next(name for name, kind in KINDS.items() if isinstance(settings, kind))
    head = {"charax": __version__, "train": kind, "data_digest": _digest(problem)}
    write_json(folder / "config.json", {**head, **to_json(settings)})
    return _finish(folder, settings, problem, progress)


def resume(folder: Path | str, *, progress: AbstractProgress | None = None) -> Run:
    """Go on with a run that was interrupted, from its newest whole checkpoint; a finished one is only loaded."""
    folder = Path(folder)
    settings = load_config(folder)
    if is_finished(folder):
        return load_run(folder)
    problem = settings.prepare()
    before = json.loads((folder / "config.json").read_text()).get("data_digest")
    if before is not None and before != _digest(problem):
        raise ValueError(f"the data of {folder} changed since the run began: restore them, or train a new run")
    return _finish(folder, settings, problem, progress)


def _digest(problem: Problem) -> str:
    """A short text that tells data from other data."""
    digest = hashlib.blake2b(digest_size=16)
    for leaf in jax.tree.leaves((problem.train, problem.validation, problem.test)):
        digest.update(np.ascontiguousarray(leaf).data)
    return digest.hexdigest()


def _finish(folder: Path, settings: Settings, problem: Problem, progress: AbstractProgress | None) -> Run:
    fitted = fit(problem, settings.loop, settings.optimizer, folder=folder, progress=progress)
    save_model(folder, problem.task, fitted.model)
    # The row of the test part says that the run is finished, so it comes last.
    write_whole(folder / "metrics.jsonl", "".join(json.dumps(row) + "\n" for row in fitted.history))
    return Run(folder, settings, Trained(problem.task, fitted.model), fitted.history)


def load_config(folder: Path | str) -> Settings:
    """The settings of a run, finished or not."""
    path = Path(folder) / "config.json"
    if not path.exists():
        raise ValueError(f"{path} does not exist: {folder} is no run, or one that had not begun; train it again")
    try:
        stored = json.loads(path.read_text())
        kind = stored.pop("train")
        stored.pop("charax")
        stored.pop("data_digest", None)
        return from_json(KINDS[kind], stored, path)
    except (KeyError, TypeError, AttributeError, json.JSONDecodeError) as error:
        raise ValueError(f"{path} is not a run's configuration that this version can read: {error!r}") from error


def is_finished(folder: Path) -> bool:
    """Whether a run got as far as its test."""
    metrics = folder / "metrics.jsonl"
    lines = metrics.read_text().splitlines() if metrics.exists() else []
    return bool(lines) and '"best_epoch"' in lines[-1] and lines[-1].endswith("}")


def load_run(folder: Path | str) -> Run:
    """A finished run: settings, model and metrics. Its data are not needed."""
    folder = Path(folder)
    settings, trained = load_config(folder), load_model(folder)
    if not is_finished(folder):
        raise ValueError(f"{folder} is not finished; go on with: charax resume {folder}")
    history = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    return Run(folder, settings, trained, history)


def evaluate(folder: Path | str, split: str = "test") -> dict[str, float]:
    """The metrics of a trained model on the train, validation or test part of its data."""
    settings, (task, model) = load_config(folder), load_model(folder)
    problem = settings.prepare()
    if split not in ("train", "validation", "test"):
        raise ValueError(f"unknown split {split!r}; choose from train, validation, test")
    devices = Devices()
    params, rebuild = flatten_model(model)
    size = -(-settings.loop.batch_size // devices.number) * devices.number
    return make_evaluation(task, rebuild, size, devices)(devices.copy(params), getattr(problem, split))


def name_run(output: Path, label: str) -> str:
    """A name that no run in a folder has yet: the label, then the label with a number."""
    names = (label if i == 1 else f"{label}-{i}" for i in itertools.count(1))
    return next(name for name in names if not (output / name).exists())


def predict(folder: Path | str, inputs: Path | str) -> Predictions:
    """What the model of a run says about the inputs in a file or folder."""
    task, model = load_model(folder)
    return task.predict(model, Path(inputs))


def sample(folder: Path | str, n: int, *, seed: int = 0, temperature: float = 1.0) -> Samples:
    """New samples from the density of a run, in the units of its data."""
    task, model = load_model(folder)
    return task.sample(model, n, seed=seed, temperature=temperature)
