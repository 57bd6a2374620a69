"""Every example in the documentation runs as written, and every public name is documented."""

import ast
import importlib
import inspect
import pkgutil
import re
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import charax

ROOT = Path(__file__).parents[1]
BLOCK = re.compile(r"```python\n(.*?)```", re.DOTALL)


def modules() -> list[ModuleType]:
    """All modules. Packages load their names on first use, so that examples are looked for where they are defined."""
    return [
        importlib.import_module(found.name)
        for found in pkgutil.walk_packages(charax.__path__, "charax.")
        if not found.name.endswith("__main__")
    ]


def docstrings(module: ModuleType) -> Iterator[tuple[str, str]]:
    """The docstrings of a module, of what it defines, and of the methods of its classes."""
    yield module.__name__, module.__doc__ or ""
    for name, thing in vars(module).items():
        if getattr(thing, "__module__", None) != module.__name__:
            continue  # imported
        if not inspect.isclass(thing) and thing.__doc__ == type(thing).__doc__:
            continue  # a value, which has the docstring of its class
        yield f"{module.__name__}.{name}", inspect.cleandoc(getattr(thing, "__doc__", None) or "")
        for method, member in vars(thing).items() if inspect.isclass(thing) else ():
            function = member.__func__ if isinstance(member, classmethod | staticmethod) else member
            own = getattr(function, "__module__", None) == module.__name__  # unlike a default value of a class
            if isinstance(function, property) or (callable(function) and own):
                yield f"{module.__name__}.{name}.{method}", inspect.cleandoc(getattr(function, "__doc__", None) or "")


SLOW = ("charax.pde", "TemporaryDirectory", ".fit(", "match_pairs(")
"""An example of a PDE compiles three solves, one that needs a folder trains a run in it, estimators are trained."""


def marks_of(block: str) -> list[pytest.MarkDecorator]:
    return [pytest.mark.slow] if any(word in block for word in SLOW) else []


def examples_in_docstrings() -> Iterator[Any]:
    for module in modules():
        for name, text in docstrings(module):
            for i, block in enumerate(BLOCK.findall(text)):
                yield pytest.param(block, id=f"{name}-{i}", marks=marks_of(block))


def examples_in_pages() -> Iterator[Any]:
    for page in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]:
        for i, block in enumerate(BLOCK.findall(page.read_text())):
            marks = [] if page.name == "README.md" else marks_of(block)  # what people try first is always tried
            yield pytest.param(block, id=f"{page.relative_to(ROOT)}-{i}", marks=marks)


IN_DOCSTRINGS, IN_PAGES = list(examples_in_docstrings()), list(examples_in_pages())


@pytest.mark.parametrize("block", [*IN_DOCSTRINGS, *IN_PAGES])
def test_example_runs_as_written(block):
    exec(compile(inspect.cleandoc(block), "<example>", "exec"), {})


def test_examples_import_names_that_exist():
    """Of the slow ones, too."""
    for example in [*IN_DOCSTRINGS, *IN_PAGES]:
        lines = ast.parse(inspect.cleandoc(example.values[0])).body
        imports = [line for line in lines if isinstance(line, ast.Import | ast.ImportFrom)]
        exec(compile(ast.Module(imports, []), f"<imports of {example.id}>", "exec"), {})


def test_every_example_in_the_source_is_run():
    written = sum(path.read_text().count("```python\n") for path in (ROOT / "charax").rglob("*.py"))
    assert len(IN_DOCSTRINGS) == written


def test_every_public_name_is_documented():
    for module in [charax, *modules()]:
        for name in getattr(module, "__all__", []):
            thing = getattr(module, name)
            if inspect.isclass(thing) or inspect.isfunction(thing):
                assert inspect.getdoc(thing), f"{module.__name__}.{name} has no docstring"


def public_objects() -> dict[str, Any]:
    """The public classes and functions by the place of their definition; what a value holds is in the reference."""
    packages = [charax, *(each for each in modules() if hasattr(each, "__path__") and each.__name__ != "charax.cli")]
    exported = [getattr(package, name) for package in packages for name in getattr(package, "__all__", [])]
    ours = [thing for thing in exported if getattr(thing, "__module__", "").startswith("charax.")]
    return {f"{thing.__module__}.{thing.__name__}": thing for thing in ours if hasattr(thing, "__name__")}


@pytest.mark.parametrize("own", sorted(public_objects()))
def test_every_public_object_has_an_example(own):
    texts = dict(docstrings(importlib.import_module(public_objects()[own].__module__)))
    assert any(BLOCK.search(text) for key, text in texts.items() if key == own or key.startswith(f"{own}."))
