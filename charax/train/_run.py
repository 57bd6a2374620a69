"""A finished run, in its folder: config, metrics, model, figures."""

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import numpy as np

from charax.data import AbstractStoredRows
from charax.nn import count_parameters
from charax.train._batches import Batch
from charax.train._config import BATCH_SIZE, AbstractConfig, Splits, TaskData
from charax.train._devices import Devices
from charax.train._evaluation import Evaluation
from charax.train._export import CONFIG, TrainedModel, load_config, load_model
from charax.train._folder import explain_failed_write
from charax.train._history import METRICS, advise, find_best_epoch, is_finished, read_history
from charax.train._json import read_json
from charax.train._parameters import flatten_model
from charax.train._precision import computing_in
from charax.train._process import share_cores


@dataclass
class Run:
    """A finished run.

    ```python
    import tempfile
    import charax
    from charax.train import train

    config = charax.ClassificationConfig(method="node", width=4, loop=charax.LoopConfig(epochs=1))
    with tempfile.TemporaryDirectory() as folder:
        run = train(config, f"{folder}/run")
    assert run.best_epoch["epoch"] == 1 and len(run.epochs) == 1
    ```
    """

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
        """How to train longer, if validation still improved in the last tenth of the epochs; else empty, also if what
        was trained was refined afterwards."""
        task = self.trained.task
        if self.history[-1].get("refined"):
            return ""
        return advise(self.folder, self.config, self.epochs, task.monitor, higher_is_better=task.higher_is_better)

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
        with computing_in(self.trained.model):
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
        with computing_in(model):
            return self._metrics(samples) | task.evaluation_details(model, samples)

    def _split(self, split: str) -> Batch:
        if split not in Splits._fields:
            raise ValueError(f"unknown split {split!r}; choose from {', '.join(Splits._fields)}")
        return getattr(self.splits, split)

    def _metrics(self, samples: Batch) -> dict[str, float]:
        batch_size = self.config.loop.batch_size or BATCH_SIZE
        devices = Devices(local=True, most=share_cores(batch_size, wanted=self.trained.task.shares_cores))
        params, unflatten = flatten_model(self.trained.model)
        size = -(-batch_size // devices.count) * devices.count
        evaluation = Evaluation(self.trained.task, unflatten, size, devices)
        return evaluation(devices.replicate(params), samples)

    def plot(self) -> list[Path]:
        """Plot the learning curves and the trained model into the folder `plots` of the run.

        Returns:
            The files.
        """
        from charax.plotting._learning_curves import save_learning_curves

        folder = self.folder / "plots"
        task, model = self.trained
        splits = self.splits
        with explain_failed_write(self.folder):
            folder.mkdir(exist_ok=True)
            curves = save_learning_curves(self.history, folder / "training.png")
        with computing_in(model):
            return [curves, *task.plot(model, splits, folder, data=self.config.data)]


def load_run(folder: Path | str) -> Run:
    """Load a finished run: config, model and metrics. Its data are loaded only when they are asked for.

    Args:
        folder: The folder of the run.

    Returns:
        The run.

    Raises:
        ValueError: If it is not finished, or cannot be read.

    ```python
    import tempfile
    import charax
    from charax.train import train

    config = charax.ClassificationConfig(method="node", width=4, loop=charax.LoopConfig(epochs=1))
    with tempfile.TemporaryDirectory() as folder:
        train(config, f"{folder}/run")
        assert charax.load_run(f"{folder}/run").summary()["parameters"] > 0
    ```
    """
    folder = Path(folder)
    config = load_config(folder)
    if not is_finished(folder):
        raise ValueError(f"{folder} is not finished; resume it: charax resume {folder}")
    return Run(folder, config, load_model(folder), read_history(folder))


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
    with computing_in(config):
        data = config.load_data()
    stored = read_json(folder / CONFIG, missing="").get("data_digest")
    if stored is not None and stored != data_digest(data.splits):
        raise ValueError(
            f"the data of {folder} have changed since the run started: restore them, or train a new run; --data "
            "evaluates on new data"
        )
    return data


def data_digest(splits: Splits) -> str:
    """A short text that tells data from other data.

    Args:
        splits: The data.

    Returns:
        The digest.
    """
    digest = hashlib.blake2b(digest_size=16)
    for leaf in jax.tree.leaves(splits):
        # Of what is too large for memory, a part.
        digest.update(leaf.digest() if isinstance(leaf, AbstractStoredRows) else np.ascontiguousarray(leaf).data)
    return digest.hexdigest()
