"""Checks of configs, and what all of them need: errors that name the setting."""

import sys
from collections.abc import Container
from dataclasses import fields, replace
from pathlib import Path
from typing import TypeVar

from charax.data import check_limit

T = TypeVar("T")
_LARGEST = sys.float_info.max
"""Compared with, and not converted to, because Python's integers have no end."""


def check_range(config: object, *, least: dict[str, float]) -> None:
    """Refuse numbers of a config that are below their least value, or not finite.

    Args:
        config: An object with the numbers as attributes; None is left alone.
        least: The least value of each attribute.

    Raises:
        ValueError: If one of them is smaller.

    ```python
    from charax import LoopConfig
    from charax.train import check_range

    check_range(LoopConfig(epochs=3), least={"epochs": 1})
    try:
        check_range(LoopConfig(epochs=3), least={"epochs": 5})
    except ValueError as error:
        assert str(error) == "epochs must be a number of at least 5, got 3"
    ```
    """
    for name, limit in least.items():
        value = getattr(config, name)
        if value is not None and not limit <= value <= _LARGEST:
            raise ValueError(f"{name} must be a number of at least {limit:g}, got {value}")


def check_positive(config: object, *names: str) -> None:
    """Refuse numbers of a config that are not positive and finite.

    Args:
        config: An object with the numbers as attributes; None is left alone.
        names: The attributes.

    Raises:
        ValueError: If one of them is zero, negative, infinite or NaN.

    ```python
    from charax import OptimizerConfig
    from charax.train import check_positive

    check_positive(OptimizerConfig(learning_rate=1e-3), "learning_rate", "clip")
    ```
    """
    for name in names:
        value = getattr(config, name)
        if value is not None and not 0 < value <= _LARGEST:
            raise ValueError(f"{name} must be a number above 0, got {value}")


def check_sizes(config: object, **limits: str) -> None:
    """Refuse sizes of a config that no machine could hold, before anything is built.

    Args:
        config: An object with the sizes as attributes; None is left alone.
        limits: The name of the limit of each attribute, one of `charax.data.LIMITS`.

    Raises:
        ValueError: If one of them is above its limit; the message names the variable that raises it.

    ```python
    from charax import SolverConfig
    from charax.train import check_sizes

    check_sizes(SolverConfig(steps=100), steps="steps")
    ```
    """
    for name, limit in limits.items():
        value = getattr(config, name)
        if value is not None:
            check_limit(limit, value, name, "asks for")


def absolute_path(data: str, named: Container[str]) -> str:
    """Make the path of a data set independent of the working folder.

    Args:
        data: The name of a data set, or a path.
        named: The names.

    Returns:
        The name as it is, or the absolute path.

    ```python
    from pathlib import Path

    from charax.train import absolute_path

    assert absolute_path("digits", named=("digits",)) == "digits"
    assert Path(absolute_path("table.csv", named=("digits",))).is_absolute()
    ```
    """
    return data if data in named else str(Path(data).expanduser().absolute())


def fill(config: T, default: T) -> T:
    """Fill in the values of a config that are None.

    Args:
        config: A dataclass.
        default: A dataclass of the same class, with the values to take.

    Returns:
        The config without the gaps.

    ```python
    from charax.train import LoopConfig, fill

    assert fill(LoopConfig(epochs=3), LoopConfig(epochs=9, batch_size=8)) == LoopConfig(epochs=3, batch_size=8)
    ```
    """
    names = [field.name for field in fields(config) if getattr(config, field.name) is None]  # pyright: ignore[reportArgumentType]
    return replace(config, **{name: getattr(default, name) for name in names})  # pyright: ignore[reportArgumentType]
