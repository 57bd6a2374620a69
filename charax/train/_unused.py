"""Settings that would do nothing: they are refused, so that nobody believes that they did something."""

from collections.abc import Mapping
from dataclasses import MISSING, fields
from typing import Any

from charax.data import is_text_table
from charax.models import METHODS_WITHOUT_CHANNELS, Method


def refuse_unused(config: object, unused: Mapping[tuple[str, ...], str]) -> None:
    """Refuse settings that were given, and would do nothing.

    Args:
        config: A dataclass with defaults.
        unused: What to do instead, for each group of fields that do nothing; `solver.steps` is a field of a field.

    Raises:
        ValueError: If one of them is not what it is by default.

    ```python
    from charax import SolverConfig
    from charax.train import refuse_unused

    try:
        refuse_unused(SolverConfig(steps=3), {("steps", "rtol"): "nothing is solved: leave it out"})
    except ValueError as error:
        assert str(error) == "steps: nothing is solved: leave it out"
    ```
    """
    for names, advice in unused.items():
        changed = [name for name in names if _value(config, name) != _default(config, name)]
        if changed:
            raise ValueError(f"{', '.join(name.split('.')[-1] for name in changed)}: {advice}")


def unused_separator(name: str) -> dict[tuple[str, ...], str]:
    """Name the separator of columns, unless the data are a text file.

    Args:
        name: The data set or the path.

    Returns:
        The field, if it does nothing, and what to do instead.

    ```python
    from charax.train import unused_separator

    assert ("separator",) in unused_separator("digits") and not unused_separator("table.csv")
    ```
    """
    return {} if is_text_table(name) else {("separator",): "only text files with columns have one: leave it out"}


def unused_sizes(method: Method) -> dict[tuple[str, ...], str]:
    """Name the sizes that one of the paper's eight methods does not have.

    Args:
        method: The method.

    Returns:
        The fields that do nothing, and what to do instead.

    ```python
    from charax.train import unused_sizes

    assert list(unused_sizes("anode")) == [("characteristic_dim", "jacobian")]
    ```
    """
    found: dict[tuple[str, ...], str] = {}
    if "c-node" not in method:
        found["characteristic_dim", "jacobian"] = f"{method} has no characteristics: choose a C-NODE, or leave it out"
    if method in METHODS_WITHOUT_CHANNELS:
        found["augment_dim",] = f"{method} adds no channels: choose anode, il-node or 2nd-order, or leave it out"
    return found


def _value(config: object, name: str) -> Any:
    for part in name.split("."):
        config = getattr(config, part)
    return config


def _default(config: object, name: str) -> Any:
    part, _, rest = name.partition(".")
    (found,) = (field for field in fields(config) if field.name == part)  # pyright: ignore[reportArgumentType]
    default = found.default if found.default_factory is MISSING else found.default_factory()
    return _value(default, rest) if rest else default
