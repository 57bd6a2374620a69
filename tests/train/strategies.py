"""Valid configs and data descriptions of any kind, made from the type hints of their dataclasses."""

import dataclasses
import types
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from hypothesis import strategies as st

_BELOW = {"validation_fraction": st.floats(0.01, 0.79)}
"""Fractions that must leave something for the other splits."""


def values_of(hint: Any) -> st.SearchStrategy[Any]:
    """The values of a type hint as dictionaries, tuples and scalars; `build` makes the object."""
    origin, arguments = get_origin(hint), get_args(hint)
    if names := fields_of(hint):
        hints = get_type_hints(hint)
        values = st.fixed_dictionaries(
            {name: _BELOW[name] if name in _BELOW else values_of(hints[name]) for name in names}
        )
        return values.map(_leave_out_what_does_not_apply) if "objective" in names else values
    if origin is Literal:
        return st.sampled_from(arguments)
    if origin in (Union, types.UnionType):
        return st.one_of(*map(values_of, arguments))
    if origin is tuple and arguments[1:] == (Ellipsis,):
        return st.lists(values_of(arguments[0]), max_size=3).map(tuple)
    if origin is tuple:
        return st.tuples(*map(values_of, arguments))
    return {
        type(None): st.none(),
        bool: st.booleans(),
        # At least 10 points and 2 samples per mini-batch, and k and blocks below their limits.
        int: st.integers(10, 60),
        float: st.floats(0, 1, exclude_min=True, exclude_max=True, allow_subnormal=False),
        str: st.text(max_size=8),
    }[hint]


def _leave_out_what_does_not_apply(density: dict[str, Any]) -> dict[str, Any]:
    """Densities refuse the parts of flow matching without it, penalties of a solve that is not made, classes to hide
    where there are none, and probes of a trace that has none; and almost everything with a source other than noise."""
    if density["objective"] == "matching" and density["source"] is not None:
        none = dict.fromkeys(("trace", "probes", "pixels"))
        density = {**density, **none, "conditional": False, "context": (), "preset": "small"}
    else:
        density = {**density, "source": None}
    if not density["conditional"]:
        density = {**density, "hidden_classes": None}
    if density["trace"] in ("exact", "hutch++"):
        density = {**density, "probes": None}
    if density["objective"] == "likelihood":
        return {**density, "path": None, "coupling": None, "times": None}
    return {**density, "kinetic_penalty": 0.0, "jacobian_penalty": 0.0}


def build(hint: Any, value: Any) -> Any:
    """The object. Not inside a strategy: the type checks of classes are random, which Hypothesis cannot repeat."""
    origin, arguments = get_origin(hint), get_args(hint)
    if fields_of(hint):
        hints = get_type_hints(hint)
        return hint(**{name: build(hints[name], part) for name, part in value.items()})
    if origin in (Union, types.UnionType) and value is not None:
        (hint,) = (argument for argument in arguments if argument is not type(None))
        return build(hint, value)
    if origin is tuple:
        hints = arguments[:1] * len(value) if arguments[1:] == (Ellipsis,) else arguments
        return tuple(map(build, hints, value))
    return value


def fields_of(hint: Any) -> list[str]:
    """The names of the fields of a dataclass or a named tuple; none for anything else."""
    if dataclasses.is_dataclass(hint):
        return [field.name for field in dataclasses.fields(hint)]
    return list(getattr(hint, "_fields", ()))
