"""Models to share: weights as safetensors, everything else as JSON. Loading them executes no code."""

import hashlib
import json
from pathlib import Path
from typing import Any, NamedTuple, get_type_hints

import equinox as eqx
import jax
import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load_file, save_file

from charax._version import __version__
from charax.train._arrays import fill_arrays, name_arrays
from charax.train._checkpoints import write_json
from charax.train._config import AbstractConfig
from charax.train._json import from_json, to_json
from charax.train._registry import find_task
from charax.train._task import AbstractTask

CONFIG, DESCRIPTION, WEIGHTS = "config.json", "model.json", "model.safetensors"
"""The three files that make a trained model."""


class TrainedModel(NamedTuple):
    """A model and its task: how to read inputs, how to integrate, what the outputs mean."""

    task: AbstractTask
    """Everything that is not learned."""
    model: eqx.Module
    """The weights."""


def save_config(folder: Path, config: AbstractConfig, **extra: Any) -> None:
    """Write `config.json`.

    Args:
        folder: The folder of the run.
        config: The config.
        extra: More values to store with it.
    """
    write_json(folder / CONFIG, {"charax": __version__, "task": config.name, **extra, "config": to_json(config)})


def load_config(folder: Path | str) -> AbstractConfig:
    """Load the config of a run, finished or not.

    Args:
        folder: The folder of the run.

    Returns:
        A config equal to the one it was started with.

    Raises:
        ValueError: If there is none, or it cannot be read.
    """
    path = Path(folder) / CONFIG
    stored = read_json(path, missing=f"{folder} is not a run, or one that had not started; train it again")
    return from_json(find_task(stored.get("task"), path), stored.get("config"), path)


def read_json(path: Path, *, missing: str) -> dict[str, Any]:
    """Read a JSON object.

    Args:
        path: The file.
        missing: What to say if there is none.

    Returns:
        Its content.

    Raises:
        ValueError: If it is missing, is not JSON, or not an object.
    """
    try:
        stored = json.loads(path.read_bytes())
    except (FileNotFoundError, NotADirectoryError):
        raise ValueError(f"{path} does not exist: {missing}") from None
    except (OSError, ValueError, RecursionError) as error:
        raise ValueError(f"{path} cannot be read as JSON: {error}") from None
    if not isinstance(stored, dict):
        raise ValueError(f"{path} must hold a JSON object; found {type(stored).__name__}")
    return stored


def save_model(folder: Path, spec: Any, model: eqx.Module) -> None:
    """Write `model.safetensors` and `model.json` next to the `config.json` of a run.

    Args:
        folder: The folder.
        spec: The description of the data (`TaskData.spec`).
        model: The trained model.
    """
    params = eqx.filter(model, eqx.is_inexact_array)
    part = folder / f"{WEIGHTS}.part"
    # `ascontiguousarray` alone would make a vector of a scalar.
    arrays = {name: np.ascontiguousarray(array).reshape(array.shape) for name, array in name_arrays(params).items()}
    save_file(arrays, part)
    write_json(folder / DESCRIPTION, {"charax": __version__, "weights_blake2b": _digest(part), "spec": to_json(spec)})
    part.replace(folder / WEIGHTS)  # last, so that a model that is there is complete


def load_model(folder: Path | str) -> TrainedModel:
    """Load a trained model from the folder of a run, without the data it was trained on.

    Args:
        folder: A folder with `config.json`, `model.json` and `model.safetensors`.

    Returns:
        The task and the model.

    Raises:
        ValueError: If a file is missing, damaged, or does not fit the others.

    ```python
    import tempfile
    from pathlib import Path
    import jax
    import charax
    from charax.train import save_config, save_model

    config = charax.ClassificationConfig(method="node", width=4)
    spec = config.load_data().spec
    with tempfile.TemporaryDirectory() as folder:
        save_config(Path(folder), config)
        save_model(Path(folder), spec, config.build_task(spec).build(jax.random.key(0)))
        trained = charax.load_model(folder)
    assert trained.task.spec.classes == spec.classes
    ```
    """
    folder = Path(folder)
    config = load_config(folder)
    unfinished = f"{folder} is not a run, or one that is not finished (charax resume {folder})"
    path, weights = folder / DESCRIPTION, folder / WEIGHTS
    stored = read_json(path, missing=unfinished)
    if not weights.is_file():
        raise ValueError(f"{weights} does not exist: {unfinished}")
    spec_type = get_type_hints(config.task_type())["spec"]
    task = config.build_task(from_json(spec_type, stored.get("spec"), path))
    if _digest(weights) != stored.get("weights_blake2b"):
        raise ValueError(
            f"{weights} is damaged, or of another run: its digest is not the one in {path.name}; copy it again, or "
            "train a new run"
        )
    try:
        arrays = load_file(weights)
    except (SafetensorError, OSError) as error:
        raise ValueError(f"{weights} is damaged: {error}") from error
    shapes, static = eqx.partition(
        eqx.filter_eval_shape(task.build, jax.random.key(0)), lambda leaf: isinstance(leaf, jax.ShapeDtypeStruct)
    )
    params = jax.tree.map(jax.numpy.asarray, fill_arrays(shapes, arrays, weights))
    broken = [name for name, array in arrays.items() if not np.isfinite(array).all()]
    if broken:
        raise ValueError(f"{weights} has weights that are not finite, in {broken[0]}: train it again")
    return TrainedModel(task, eqx.combine(params, static))


def _digest(path: Path) -> str:
    return hashlib.blake2b(path.read_bytes(), digest_size=16).hexdigest()
