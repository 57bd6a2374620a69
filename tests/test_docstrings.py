"""Every argument and every result of the public API is described, in Google's style, which Sphinx can show."""

import ast
import dataclasses
import importlib
import inspect
import textwrap
from collections.abc import Callable, Iterator
from typing import Any

import docstring_parser
import pytest

PACKAGES = (
    "charax",
    "charax.nn",
    "charax.fields",
    "charax.solve",
    "charax.models",
    "charax.models.flows",
    "charax.pde",
    "charax.data",
    "charax.train",
    "charax.plotting",
    "charax.report",
    "charax.tasks",
    "charax.select",
    "charax.estimators",
    "charax.paper",
)


def described(documented: Any) -> tuple[set[str], bool]:
    """The names under `Args:` or `Attributes:`, and whether there is a `Returns:`."""
    parsed = docstring_parser.parse(inspect.getdoc(documented) or "", docstring_parser.DocstringStyle.GOOGLE)
    return {param.arg_name.lstrip("*") for param in parsed.params}, parsed.returns is not None


def described_fields(cls: type) -> set[str]:
    """The fields of a class that have a string below them."""
    names: set[str] = set()
    for base in cls.__mro__:
        if not base.__module__.startswith("charax"):
            continue
        (tree,) = ast.parse(textwrap.dedent(inspect.getsource(base))).body
        assert isinstance(tree, ast.ClassDef)
        for statement, after in zip(tree.body, tree.body[1:], strict=False):
            has_text = isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant)
            if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name) and has_text:
                names.add(statement.target.id)
    return names


def parameters(function: Callable[..., Any]) -> set[str]:
    return {name for name in inspect.signature(function).parameters if name not in ("self", "cls")}


def check_function(name: str, function: Callable[..., Any]) -> Iterator[str]:
    names, returns = described(function)
    for missing in sorted(parameters(function) - names):
        yield f"{name}: the argument {missing!r} is not described"
    if inspect.signature(function).return_annotation not in (None, "None", inspect.Signature.empty) and not returns:
        yield f"{name}: there is no Returns section"


def check_class(name: str, cls: type) -> Iterator[str]:
    told = described(cls)[0] | described_fields(cls)
    own = vars(cls).get("__init__")
    # Written out, and neither by `dataclass` nor for a protocol, which is never made.
    if inspect.isfunction(own) and own.__module__ == cls.__module__ and own.__code__.co_filename != "<string>":
        wanted = parameters(own)
        told |= described(own)[0]
    elif dataclasses.is_dataclass(cls):
        wanted = {field.name for field in dataclasses.fields(cls) if field.init}
    else:
        wanted = set(getattr(cls, "_fields", ()))  # a NamedTuple
    for missing in sorted(wanted - told):
        yield f"{name}: {missing!r} is not described"
    for method, member in vars(cls).items():
        function = member.__func__ if isinstance(member, classmethod | staticmethod) else member
        if inspect.isfunction(function) and (not method.startswith("_") or method == "__call__"):
            # What is inherited is described where it comes from.
            yield from check_function(f"{name}.{method}", getattr(cls, method))


@pytest.mark.parametrize("package", PACKAGES)
def test_arguments_and_results_are_described(package):
    module = importlib.import_module(package)
    problems: list[str] = []
    for name in getattr(module, "__all__", []):
        thing = getattr(module, name)
        if not getattr(thing, "__module__", "").startswith(package):
            continue  # described in its own package, or not ours
        if inspect.isclass(thing):
            problems += check_class(f"{package}.{name}", thing)
        elif inspect.isfunction(thing):
            problems += check_function(f"{package}.{name}", thing)
    assert not problems, "\n".join(problems)
