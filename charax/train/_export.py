"""Models to share: weights as safetensors, everything else as JSON. Loading them executes nothing."""

import json
from pathlib import Path
from typing import NamedTuple

import equinox as eqx
import jax
import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load_file, save_file

from charax._version import __version__
from charax.tasks.classification._task import ClassificationTask
from charax.tasks.density._task import DensityTask
from charax.tasks.forecast._task import ForecastTask
from charax.tasks.pde._task import PDETask
from charax.train._arrays import fill_arrays, name_arrays
from charax.train._checkpoints import write_json
from charax.train._task import AbstractTask

TASKS: dict[str, type[AbstractTask]] = {
    "classification": ClassificationTask,
    "density": DensityTask,
    "regression": PDETask,
    "forecast": ForecastTask,
}
"""The tasks whose models can be loaded, by the name in their files."""


class Trained(NamedTuple):
    """A model, and the task that it learned: how to read inputs, how to integrate, what the outputs mean."""

    task: AbstractTask
    model: eqx.Module


def save_model(folder: Path, task: AbstractTask, model: eqx.Module) -> None:
    """Write `model.safetensors` and `model.json` into a folder."""
    params = eqx.filter(model, eqx.is_inexact_array)
    part = folder / "model.safetensors.part"
    # In one piece; `ascontiguousarray` alone would make a vector of a number.
    arrays = {name: np.ascontiguousarray(array).reshape(array.shape) for name, array in name_arrays(params).items()}
    save_file(arrays, part)
    write_json(folder / "model.json", {"charax": __version__, "task": task.name, **task.to_json()})
    part.replace(folder / "model.safetensors")  # last, so that a model that is there is whole


def load_model(folder: Path | str) -> Trained:
    """A trained model from a run's folder, without the data it was trained on.

    ```python
    import tempfile
    from pathlib import Path
    import jax
    from charax.data import load_dataset
    from charax.models import find_design
    from charax.tasks.classification import ClassificationTask
    from charax.train import load_model, save_model

    digits = load_dataset("digits")
    task = ClassificationTask.of(digits, *find_design("small", "node", digits.input_shape, width=4))
    with tempfile.TemporaryDirectory() as folder:
        save_model(Path(folder), task, task.build(jax.random.key(0)))
        trained = load_model(folder)
    assert trained.task.classes == digits.classes
    ```
    """
    folder = Path(folder)
    description, weights = folder / "model.json", folder / "model.safetensors"
    for path in (description, weights):
        if not path.exists():
            raise ValueError(f"{path} does not exist: {folder} is no run, or one that is not finished (charax resume)")
    try:
        stored = json.loads(description.read_text())
        task = TASKS[stored["task"]].from_json(stored)
    except (KeyError, TypeError, AttributeError, json.JSONDecodeError) as error:
        raise ValueError(f"{description} is not a model's description that this version can read: {error!r}") from error
    try:
        arrays = load_file(weights)
    except SafetensorError as error:
        raise ValueError(f"{weights} is damaged: {error}") from error
    shapes, static = eqx.partition(
        eqx.filter_eval_shape(task.build, jax.random.key(0)), lambda leaf: isinstance(leaf, jax.ShapeDtypeStruct)
    )
    params = jax.tree.map(jax.numpy.asarray, fill_arrays(shapes, arrays, weights))
    return Trained(task, eqx.combine(params, static))
