"""Tables of runs: what is in a folder, finished or not, and in what runs differ."""

import json
import math
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple, get_type_hints

from charax.train._config import EPOCHS, AbstractConfig
from charax.train._export import CONFIG, DESCRIPTION, WEIGHTS, load_config
from charax.train._history import METRICS, find_best_epoch, is_finished, read_history
from charax.train._json import from_json, read_json, to_json


class RunInfo(NamedTuple):
    """What can be said about a run without its data or weights.

    ```python
    from charax.train import RunInfo

    run = RunInfo("runs/mine", "classify", "digits", "c-node", "accuracy", 0.98, 8.0, 1000, 12.5, "finished")
    assert run.metric == "accuracy" and run.value == 0.98
    ```
    """

    run: str
    """The folder."""
    task: str
    """The name of the task."""
    data: str
    """The name or path of the data."""
    method: str
    """The method."""
    metric: str | None
    """The first metric of the run's summary, if it is finished."""
    value: float | None
    """Its value on the test split."""
    nfe: float | None
    """Function evaluations on the test split."""
    parameters: int | None
    """Number of parameters."""
    seconds: float | None
    """Wall-clock time of the training so far."""
    status: str
    """`finished`, `resumable after epoch 3 of 20`, or why it cannot be read."""


def list_runs(folder: Path | str = "runs") -> list[RunInfo]:
    """List the runs in a folder and the folders in it, finished or not.

    Args:
        folder: The folder.

    Returns:
        One entry per run, by name. A folder that cannot be read is listed with the reason.

    ```python
    import tempfile
    from pathlib import Path
    import charax
    from charax.train import save_config

    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "mine").mkdir()
        save_config(Path(folder) / "mine", charax.ClassificationConfig())
        (run,) = charax.list_runs(folder)
    assert (run.task, run.status) == ("classify", "resumable after epoch 0 of 20")
    ```
    """
    return [describe_run(path) for path in sorted(_find_runs(Path(folder)))]


def describe_run(folder: Path) -> RunInfo:
    """Describe a run without loading its data or weights.

    Args:
        folder: The folder of the run.

    Returns:
        The description; if the folder cannot be read, its status says why.
    """
    try:
        config = load_config(folder)
    except ValueError as error:
        return RunInfo(str(folder), "-", "-", "-", None, None, None, None, None, f"unreadable: {error}")
    known = (str(folder), config.name, config.data, str(config.method))
    try:
        if is_finished(folder):
            return _describe_finished(known, config, folder)
        rows = _read_rows(folder)
        seconds = rows[-1].get("seconds") if rows else None
        done = f"resumable after epoch {len(rows)} of {config.loop.epochs or EPOCHS}"
        return RunInfo(*known, None, None, None, None, seconds, done)
    except (ValueError, KeyError, TypeError, OSError) as error:
        return RunInfo(*known, None, None, None, None, None, f"unreadable: {error}")


def _describe_finished(known: tuple[str, str, str, str], config: AbstractConfig, folder: Path) -> RunInfo:
    history = read_history(folder)
    path = folder / DESCRIPTION
    spec_type = get_type_hints(config.task_type())["spec"]
    task = config.build_task(from_json(spec_type, read_json(path, missing="copy the whole folder").get("spec"), path))
    test = history[-1]
    metric, value = next(iter(task.summary(find_best_epoch(history), test).items()))
    counts = (test.get("test_nfe"), _count_weights(folder / WEIGHTS), round(test["seconds"], 2))
    return RunInfo(*known, metric, value, *counts, "finished")


def compare_configs(configs: Sequence[AbstractConfig]) -> list[dict[str, Any]]:
    """Find the settings in which configs differ.

    Args:
        configs: The configs, also of several tasks.

    Returns:
        For each config the settings that not all have in common, by name, such as `loop.epochs`; None where a config
        has no such setting.

    ```python
    import charax
    from charax.train import compare_configs

    one, two = charax.ClassificationConfig(), charax.ClassificationConfig(method="node")
    assert compare_configs([one, two]) == [{"method": "c-node"}, {"method": "node"}]
    ```
    """
    flat = [{"task": config.name, **flatten_config(config)} for config in configs]
    names = dict.fromkeys(name for settings in flat for name in settings)
    different = [name for name in names if any(each.get(name) != flat[0].get(name) for each in flat)]
    return [{name: settings.get(name) for name in different} for settings in flat]


def flatten_config(config: AbstractConfig) -> dict[str, Any]:
    """List the settings of a config by dotted names.

    Args:
        config: The config.

    Returns:
        Strings, numbers, lists and None by name, such as `loop.epochs`.

    ```python
    import charax
    from charax.train import flatten_config

    config = charax.ClassificationConfig(loop=charax.LoopConfig(epochs=20))
    assert flatten_config(config)["loop.epochs"] == 20
    ```
    """
    return dict(_flatten(to_json(config), ""))


def _flatten(value: Any, prefix: str) -> Iterator[tuple[str, Any]]:
    if not isinstance(value, dict):
        yield prefix, value
        return
    for name, part in value.items():
        yield from _flatten(part, f"{prefix}.{name}" if prefix else name)


def _find_runs(folder: Path) -> Iterator[Path]:
    for place, folders, files in os.walk(folder):
        if CONFIG in files:
            folders.clear()  # a run holds no other runs
            yield Path(place)


def _read_rows(folder: Path) -> list[dict[str, Any]]:
    path = folder / METRICS
    lines = path.read_text().splitlines(keepends=True) if path.is_file() else []
    return [json.loads(line) for line in lines if line.endswith("\n")]


def _count_weights(path: Path) -> int:
    """The number of weights, from the header of the file alone."""
    with path.open("rb") as file:
        header = json.loads(file.read(int.from_bytes(file.read(8), "little")))
    return sum(math.prod(entry["shape"]) for name, entry in header.items() if name != "__metadata__")
