"""Models to share: weights as safetensors, everything else as JSON. Loading them executes no code."""

import hashlib
import math
from pathlib import Path
from typing import Any, NamedTuple, get_type_hints

import equinox as eqx
import jax
import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load_file, save_file

from charax._version import __version__
from charax.data import check_limit
from charax.train._arrays import fill_arrays, name_arrays
from charax.train._checkpoints import write_json
from charax.train._config import AbstractConfig
from charax.train._json import check_seal, from_json, read_json, seal, to_json
from charax.train._precision import computing_in
from charax.train._registry import find_task
from charax.train._task import AbstractTask

CONFIG, DESCRIPTION, WEIGHTS = "config.json", "model.json", "model.safetensors"
"""The three files that make a trained model."""
_HEADER = 1 << 12
"""Bytes that the name and the shape of an array may take in a file of weights."""


class TrainedModel(NamedTuple):
    """A model and its task: how to read inputs, how to integrate, what the outputs mean.

    ```python
    import tempfile
    import charax
    from charax.train import train

    config = charax.ClassificationConfig(method="node", width=4, loop=charax.LoopConfig(epochs=1))
    with tempfile.TemporaryDirectory() as folder:
        train(config, f"{folder}/run")
        task, model = charax.load_model(f"{folder}/run")  # a TrainedModel
    assert task.spec.classes[0] == "0"
    ```
    """

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

    ```python
    import tempfile
    from pathlib import Path

    import charax
    from charax.train import load_config, save_config

    config = charax.ClassificationConfig(method="node")
    with tempfile.TemporaryDirectory() as folder:
        save_config(Path(folder), config)
        assert load_config(folder) == config
    ```
    """
    content = {"charax": __version__, "task": config.name, **extra, "config": to_json(config)}
    write_json(folder / CONFIG, seal(content))


def load_config(folder: Path | str) -> AbstractConfig:
    """Load the config of a run, finished or not.

    Args:
        folder: The folder of the run.

    Returns:
        A config equal to the one it was started with.

    Raises:
        ValueError: If there is none, or it cannot be read.

    ```python
    import tempfile
    import charax
    from charax.train import train

    config = charax.ClassificationConfig(method="node", width=4, loop=charax.LoopConfig(epochs=1))
    with tempfile.TemporaryDirectory() as folder:
        train(config, f"{folder}/run")
        assert charax.load_config(f"{folder}/run").width == 4
    ```
    """
    return _load_config(Path(folder))[0]


def _load_config(folder: Path) -> tuple[AbstractConfig, str | None]:
    """The config and its digest."""
    path = folder / CONFIG
    stored = read_json(path, missing=f"{folder} is not a run, or one that had not started; train it again")
    config = from_json(find_task(stored.get("task"), path), stored.get("config"), path)
    return config, check_seal(stored, path)


def design_model(config: AbstractConfig, spec: Any) -> tuple[AbstractTask, eqx.Module]:
    """Build a task and the shapes of its model, which may have as many parameters as the limit says.

    Args:
        config: The config.
        spec: The description of the data (`TaskData.spec`).

    Returns:
        The task, and its model with shapes instead of arrays.

    Raises:
        ValueError: If the config does not fit the data, or the model is too large.
    """
    task = config.build_task(spec)
    shapes = eqx.filter_eval_shape(task.build, jax.random.key(0))
    check_limit("parameters", sum(math.prod(leaf.shape) for leaf in _arrays(shapes)), "the model")
    return task, shapes


def _arrays(shapes: eqx.Module) -> list[jax.ShapeDtypeStruct]:
    return [leaf for leaf in jax.tree.leaves(shapes) if isinstance(leaf, jax.ShapeDtypeStruct)]


def save_model(folder: Path, spec: Any, model: eqx.Module) -> None:
    """Write `model.safetensors` and `model.json` next to the `config.json` of a run.

    Args:
        folder: The folder.
        spec: The description of the data (`TaskData.spec`).
        model: The trained model.

    ```python
    import tempfile
    from pathlib import Path
    import jax
    import charax
    from charax.train._export import save_config

    config = charax.ClassificationConfig(method="node", width=4)
    spec = config.load_data().spec
    with tempfile.TemporaryDirectory() as folder:
        save_config(Path(folder), config)
        charax.save_model(Path(folder), spec, config.build_task(spec).build(jax.random.key(0)))
        assert charax.load_model(folder).task.spec == spec
    ```
    """
    params = eqx.filter(model, eqx.is_inexact_array)
    part = folder / f"{WEIGHTS}.part"
    # `ascontiguousarray` alone would make a vector of a scalar.
    arrays = {name: np.ascontiguousarray(array).reshape(array.shape) for name, array in name_arrays(params).items()}
    save_file(arrays, part)
    stored = read_json(folder / CONFIG, missing="a model is saved next to its config")
    digests = {"config_blake2b": check_seal(stored, folder / CONFIG), "weights_blake2b": _digest(part)}
    write_json(folder / DESCRIPTION, seal({"charax": __version__, **digests, "spec": to_json(spec)}))
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
    config, config_digest = _load_config(folder)
    with computing_in(config):
        return _load_model(folder, config, config_digest)


def _load_model(folder: Path, config: AbstractConfig, config_digest: str | None) -> TrainedModel:
    unfinished = f"{folder} is not a run, or one that is not finished (charax resume {folder})"
    path, weights = folder / DESCRIPTION, folder / WEIGHTS
    stored = read_json(path, missing=unfinished)
    if not weights.is_file():
        raise ValueError(f"{weights} does not exist: {unfinished}")
    spec = from_json(get_type_hints(config.task_type())["spec"], stored.get("spec"), path)
    sealed = check_seal(stored, path)
    if None not in (sealed, config_digest) and stored.get("config_blake2b") != config_digest:
        raise ValueError(
            f"{folder / CONFIG} is of another run: its digest is not the one in {path.name}; copy it again"
        )
    try:
        task, model = design_model(config, spec)
    except Exception as error:  # there is no end to what does not fit together
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise ValueError(f"{path} and {CONFIG} do not describe a model: {reason}") from None
    _check_weights(weights, model, stored.get("weights_blake2b"))
    try:
        arrays = load_file(weights)
    except (SafetensorError, OSError, ValueError, KeyError) as error:
        raise ValueError(f"{weights} is damaged: {error}") from error
    shapes, static = eqx.partition(model, lambda leaf: isinstance(leaf, jax.ShapeDtypeStruct))
    params = jax.tree.map(jax.numpy.asarray, fill_arrays(shapes, arrays, weights))
    broken = [name for name, array in arrays.items() if not np.isfinite(array).all()]
    if broken:
        raise ValueError(f"{weights} has weights that are not finite, in {broken[0]}: train it again")
    return TrainedModel(task, eqx.combine(params, static))


def _check_weights(path: Path, model: eqx.Module, digest: Any) -> None:
    """Check the size and the digest of a file of weights, before it is loaded."""
    arrays = _arrays(model)
    most = _HEADER + sum(_HEADER + math.prod(leaf.shape) * leaf.dtype.itemsize for leaf in arrays)
    if path.stat().st_size > most or _digest(path) != digest:
        raise ValueError(
            f"{path} is damaged, or of another run: its digest is not the one in {DESCRIPTION}; copy it again, or "
            "train a new run"
        )


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, lambda: hashlib.blake2b(digest_size=16)).hexdigest()
