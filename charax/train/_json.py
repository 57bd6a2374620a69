"""Frozen dataclasses and named tuples as plain JSON, and back: one codec for every config and data description."""

import dataclasses
import math
import types
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

T = TypeVar("T")
_LARGEST = 2**63 - 1


def to_json(value: Any) -> Any:
    """Encode a config as plain JSON values; `from_json` is the inverse.

    Args:
        value: A dataclass, a named tuple, or anything made of them, tuples, strings and numbers.

    Returns:
        Dictionaries, lists, strings, numbers, booleans and None.

    Raises:
        TypeError: If there is something else in it.

    ```python
    from charax.train import LoopConfig, from_json, to_json

    assert from_json(LoopConfig, to_json(LoopConfig(epochs=3))) == LoopConfig(epochs=3)
    ```
    """
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: to_json(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, tuple) and (names := getattr(value, "_fields", None)):
        return {name: to_json(part) for name, part in zip(names, value, strict=True)}
    if isinstance(value, list | tuple):
        return [to_json(part) for part in value]
    if value is None or isinstance(value, bool | int | float | str):
        return value
    raise TypeError(f"{type(value).__name__} is not plain data: configs hold tuples, strings and numbers")


def from_json(cls: type[T], stored: Any, source: object = "config.json") -> T:
    """Decode a config from plain JSON, checking every value against its type.

    Args:
        cls: The dataclass or named tuple to build.
        stored: What `to_json` returned.
        source: The file that an error names.

    Returns:
        An object equal to the one that was encoded.

    Raises:
        ValueError: If a name is unknown or missing, or a value has another type.
    """
    return _decode(cls, stored, "", source)


def describe_differences(stored: Any, wanted: Any, prefix: str = "") -> list[str]:
    """List the settings in which two configs of one class differ.

    Args:
        stored: The config that is there.
        wanted: The config that is asked for.
        prefix: Put before every name.

    Returns:
        A phrase per setting, such as `loop.epochs (1 there, 10 here)`.
    """
    if type(stored) is not type(wanted):
        return [f"{prefix or 'the task'} ({type(stored).__name__} there, {type(wanted).__name__} here)"]
    if not dataclasses.is_dataclass(stored):
        return [] if stored == wanted else [f"{prefix} ({stored} there, {wanted} here)"]
    found: list[str] = []
    for field in dataclasses.fields(stored):
        name = f"{prefix}.{field.name}" if prefix else field.name
        found += describe_differences(getattr(stored, field.name), getattr(wanted, field.name), name)
    return found


def _decode(hint: Any, value: Any, name: str, source: object) -> Any:
    where = f"{source}: {name or 'the content'}"
    origin, arguments = get_origin(hint), get_args(hint)
    if dataclasses.is_dataclass(hint) or (isinstance(hint, type) and hasattr(hint, "_fields")):
        return _decode_fields(hint, value, name, source)
    if origin is Literal:
        if value not in arguments:
            raise ValueError(f"{where} must be one of {', '.join(map(str, arguments))}; found {value!r}")
        return value
    if origin in (Union, types.UnionType):
        if value is None and type(None) in arguments:
            return None
        (inner,) = (argument for argument in arguments if argument is not type(None))
        return _decode(inner, value, name, source)
    if origin is tuple:
        if not isinstance(value, list):
            raise ValueError(f"{where} must be a list; found {value!r}")
        repeated = len(arguments) == 2 and arguments[1] is Ellipsis
        hints = [arguments[0]] * len(value) if repeated else list(arguments)
        if len(hints) != len(value):
            raise ValueError(f"{where} must have {len(hints)} entries; found {len(value)}")
        return tuple(_decode(each, part, f"{name}[{i}]", source) for i, (each, part) in enumerate(zip(hints, value)))  # noqa: B905
    if type(value) is int and abs(value) > _LARGEST:
        raise ValueError(f"{where} must be below 2**63; found {value}")
    if hint is float and type(value) is int:
        return float(value)
    if hint not in (float, int, bool, str) or type(value) is not hint:
        raise ValueError(f"{where} must be of type {getattr(hint, '__name__', hint)}; found {value!r}")
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError(f"{where} must be finite; found {value}")
    return value


def _decode_fields(cls: Any, value: Any, name: str, source: object) -> Any:
    if not isinstance(value, dict):
        raise ValueError(f"{source}: {name or 'the content'} must be an object with named values; found {value!r}")
    hints = get_type_hints(cls)
    fields = [field.name for field in dataclasses.fields(cls)] if dataclasses.is_dataclass(cls) else list(cls._fields)
    unknown, missing = value.keys() - set(fields), set(fields) - value.keys()
    if unknown:
        raise ValueError(f"{source}: this version does not know the setting {', '.join(sorted(map(str, unknown)))}")
    if missing:
        raise ValueError(f"{source} lacks the setting {', '.join(sorted(missing))}")
    parts = {each: _decode(hints[each], value[each], f"{name}.{each}" if name else each, source) for each in fields}
    build: Any = cls
    try:
        return build(**parts)
    except ValueError as error:  # a value out of range
        raise ValueError(f"{source}: {error}") from None
