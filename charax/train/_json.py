"""Frozen dataclasses and named tuples as plain JSON, and back: one codec for every config and data description."""

import dataclasses
import hashlib
import json
import math
import reprlib
import types
from pathlib import Path
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from charax.data import check_limit, check_regular

T = TypeVar("T")
_LARGEST = 2**63 - 1
_SEAL = "blake2b"
_UNSEALED = {"charax", "task", "data_digest", "config", "weights_blake2b", "spec"}
"""What files of earlier versions had."""
_SHORT = reprlib.Repr()
_SHORT.maxstring = _SHORT.maxother = _SHORT.maxlong = 80


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
        parts = {field.name: (field, getattr(value, field.name)) for field in dataclasses.fields(value)}
        # What was added later is left out where it has no effect: stored settings stay comparable.
        kept = lambda field, part: not field.metadata.get("added_later") or part != field.default
        return {name: to_json(part) for name, (field, part) in parts.items() if kept(field, part)}
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

    ```python
    from charax import LoopConfig
    from charax.train import from_json, to_json

    stored = to_json(LoopConfig(epochs=3))
    assert from_json(LoopConfig, stored) == LoopConfig(epochs=3)
    try:
        from_json(LoopConfig, {**stored, "epochs": "three"})
    except ValueError as error:
        assert "epochs" in str(error)
    ```
    """
    return _decode(cls, stored, "", source)


def read_json(path: Path, *, missing: str) -> dict[str, Any]:
    """Read a JSON object.

    Args:
        path: The file.
        missing: What to say if there is none.

    Returns:
        Its content.

    Raises:
        ValueError: If it is missing, too large, is not JSON, or not an object.
    """
    try:
        stored = json.loads(_read(path))
    except (FileNotFoundError, NotADirectoryError):
        raise ValueError(f"{path} does not exist: {missing}") from None
    except (OSError, ValueError, RecursionError) as error:
        raise ValueError(_name(path, error)) from None
    if not isinstance(stored, dict):
        raise ValueError(f"{path} must hold a JSON object; found {type(stored).__name__}")
    return stored


def read_json_lines(path: Path) -> list[Any]:
    """Read a file with a JSON value per line.

    Args:
        path: The file.

    Returns:
        The values.

    Raises:
        ValueError: If it cannot be read; the message names the line.
    """
    try:
        lines = _read(path).decode().splitlines()
    except (OSError, ValueError) as error:
        raise ValueError(_name(path, error)) from None
    values = []
    for number, line in enumerate(lines, start=1):
        try:
            values.append(json.loads(line))
        except (ValueError, RecursionError) as error:
            raise ValueError(f"{path}, line {number} cannot be read as JSON: {error}") from None
    return values


def check_row(cls: type, stored: Any, source: object, *, metrics: str = "") -> dict[str, Any]:
    """Check a row of metrics: the fields of a dataclass, and any others with a number or nothing.

    Args:
        cls: The dataclass of the fields; those without a default must be there.
        stored: The row.
        source: The file and the line, which an error names.
        metrics: How the names of metrics begin. Others may be text or lists: what a task found, such as an equation.

    Returns:
        The row.

    Raises:
        ValueError: If a field is missing, or a value is of another type.
    """
    if not isinstance(stored, dict):
        raise ValueError(f"{source} must hold one JSON object per epoch and one for the test split")
    hints = get_type_hints(cls)
    missing = {field.name for field in dataclasses.fields(cls) if field.default is dataclasses.MISSING} - stored.keys()
    if missing:
        raise ValueError(f"{source} lacks {', '.join(sorted(missing))}")
    for name, value in stored.items():
        if name in hints or name.startswith(metrics) or not isinstance(value, (str, list)):
            _decode(hints.get(name, float | None), value, name, source)
    return stored


def seal(content: dict[str, Any]) -> dict[str, Any]:
    """Add a digest to JSON, by which damage is recognized.

    Args:
        content: Plain values by name.

    Returns:
        The same with `blake2b`, the digest of everything else.
    """
    return {**content, _SEAL: _digest(content)}


def check_seal(stored: dict[str, Any], source: object) -> str | None:
    """Check the digest of JSON that was written with one.

    Args:
        stored: The content of the file.
        source: The file that an error names.

    Returns:
        The digest; None for a file of an earlier version, which has none.

    Raises:
        ValueError: If it does not agree.
    """
    if stored.keys() <= _UNSEALED:
        return None
    digest = _digest({name: value for name, value in stored.items() if name != _SEAL})
    if stored.get(_SEAL) != digest:
        raise ValueError(
            f"{source} is damaged, or was changed: its content does not agree with its digest; restore it, or train a "
            "new run"
        )
    return digest


def _digest(content: dict[str, Any]) -> str:
    return hashlib.blake2b(json.dumps(content, sort_keys=True).encode(), digest_size=16).hexdigest()


def _read(path: Path) -> bytes:
    check_regular(path)
    check_limit("json", path.stat().st_size, path)
    return path.read_bytes()


def _name(path: Path, error: Exception) -> str:
    return str(error) if str(error).startswith(str(path)) else f"{path} cannot be read as JSON: {error}"


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
            raise ValueError(f"{where} must be one of {', '.join(map(str, arguments))}; found {_show(value)}")
        return value
    if origin in (Union, types.UnionType):
        if value is None and type(None) in arguments:
            return None
        (inner,) = (argument for argument in arguments if argument is not type(None))
        return _decode(inner, value, name, source)
    if origin is tuple:
        if not isinstance(value, list):
            raise ValueError(f"{where} must be a list; found {_show(value)}")
        repeated = len(arguments) == 2 and arguments[1] is Ellipsis
        hints = [arguments[0]] * len(value) if repeated else list(arguments)
        if len(hints) != len(value):
            raise ValueError(f"{where} must have {len(hints)} entries; found {len(value)}")
        return tuple(_decode(each, part, f"{name}[{i}]", source) for i, (each, part) in enumerate(zip(hints, value)))  # noqa: B905
    if type(value) is int and abs(value) > _LARGEST:
        raise ValueError(f"{where} must be below 2**63; found {_show(value)}")
    if hint is float and type(value) is int:
        return float(value)
    if hint not in (float, int, bool, str) or type(value) is not hint:
        raise ValueError(f"{where} must be of type {getattr(hint, '__name__', hint)}; found {_show(value)}")
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError(f"{where} must be finite; found {value}")
    return value


def _decode_fields(cls: Any, value: Any, name: str, source: object) -> Any:
    if not isinstance(value, dict):
        raise ValueError(f"{source}: {name or 'the content'} must be an object with named values; found {_show(value)}")
    hints = get_type_hints(cls)
    fields = [field.name for field in dataclasses.fields(cls)] if dataclasses.is_dataclass(cls) else list(cls._fields)
    if dataclasses.is_dataclass(cls):
        later = [field for field in dataclasses.fields(cls) if field.metadata.get("added_later")]
        value = {field.name: to_json(field.default) for field in later} | value
    unknown, missing = value.keys() - set(fields), set(fields) - value.keys()
    if unknown:
        raise ValueError(f"{source}: this version does not know the setting {_show_names(unknown)}")
    if missing:
        raise ValueError(f"{source} lacks the setting {', '.join(sorted(missing))}")
    parts = {each: _decode(hints[each], value[each], f"{name}.{each}" if name else each, source) for each in fields}
    build: Any = cls
    try:
        return build(**parts)
    except (ValueError, OverflowError) as error:  # a value out of range
        raise ValueError(f"{source}: {error}") from None


def _show(value: Any) -> str:
    """A value in an error, in one short line."""
    return _SHORT.repr(value)


def _show_names(names: set[str]) -> str:
    first = [_SHORT.repr(name).strip("'") for name in sorted(names)[:5]]
    return ", ".join(first) + (" …" if len(names) > 5 else "")
