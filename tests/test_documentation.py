"""Every example in the documentation runs as written."""

import importlib
import inspect
import pkgutil
import re
from pathlib import Path

import pytest

import charax

ROOT = Path(__file__).parents[1]
BLOCK = re.compile(r"```python\n(.*?)```", re.DOTALL)


def modules():
    return [
        importlib.import_module(found.name)
        for found in pkgutil.walk_packages(charax.__path__, "charax.")
        if not found.name.endswith("__main__")
    ]


def examples():
    for module in modules():
        for name, thing in vars(module).items():
            if getattr(thing, "__module__", None) != module.__name__ or not inspect.getdoc(thing):
                continue
            for i, block in enumerate(BLOCK.findall(inspect.getdoc(thing) or "")):
                # Every example of a PDE compiles three solves.
                marks = [pytest.mark.slow] if module.__name__.startswith("charax.pde") else []
                yield pytest.param(block, id=f"{module.__name__}.{name}-{i}", marks=marks)
    for page in [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]:
        for i, block in enumerate(BLOCK.findall(page.read_text())):
            yield pytest.param(block, id=f"{page.name}-{i}")


@pytest.mark.parametrize("block", list(examples()))
def test_example_runs_as_written(block):
    exec(compile(inspect.cleandoc(block), "<example>", "exec"), {})


def test_every_public_name_is_documented():
    for module in modules():
        for name in getattr(module, "__all__", []):
            thing = getattr(module, name)
            if inspect.isclass(thing) or inspect.isfunction(thing):
                assert inspect.getdoc(thing), f"{module.__name__}.{name} has no docstring"
