"""The tasks by name: everything that can be trained, loaded, evaluated and plotted."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from charax.train._config import AbstractConfig

_TASKS: dict[str, type[AbstractConfig]] = {}

TASKS: Mapping[str, type[AbstractConfig]] = MappingProxyType(_TASKS)
"""The config class of every registered task, by the word after `charax train`."""


def register_task(config: type[AbstractConfig]) -> None:
    """Make a task known: `train`, `resume`, `load_run` and the command line then find it by its name.

    Args:
        config: The config class of the task.

    Raises:
        ValueError: If another task has that name.

    ```python
    from dataclasses import dataclass

    import charax
    from charax.train import TASKS

    charax.register_task(charax.ForecastConfig)  # the one line of a task; again, it changes nothing

    @dataclass(frozen=True)
    class Other(charax.ForecastConfig):
        name = "forecast"

    try:
        charax.register_task(Other)
    except ValueError as error:
        assert "there is a task 'forecast' already" in str(error)
    assert TASKS["forecast"] is charax.ForecastConfig
    ```
    """
    if _TASKS.get(config.name, config) is not config:
        raise ValueError(f"there is a task {config.name!r} already: {_TASKS[config.name].__qualname__}")
    _TASKS[config.name] = config


def find_task(name: Any, source: object) -> type[AbstractConfig]:
    """Look a task up.

    Args:
        name: Its name, as a file has it.
        source: The file that an error names.

    Returns:
        The config class.

    Raises:
        ValueError: If no such task is registered.
    """
    if not isinstance(name, str) or name not in _TASKS:
        raise ValueError(f"{source} is of the task {name!r}, which is not registered; there are {', '.join(_TASKS)}")
    return _TASKS[name]
