"""What Sphinx must be told about charax: the pages of the reference, and Markdown in docstrings."""

import ast
import contextlib
import functools
import importlib
import inspect
import io
import itertools
import os
import pkgutil
import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Literal, get_args, get_origin

if TYPE_CHECKING:
    from sphinx.application import Sphinx

FENCE = re.compile(r"^(\s*)```(\w*)\s*$")


@functools.cache
def packages() -> dict[str, str]:
    """The packages that export something, with the first line of their docstrings: the pages of the API reference."""
    import charax

    found = [each.name for each in pkgutil.walk_packages(charax.__path__, "charax.") if each.ispkg]
    public = [name for name in found if not any(part.startswith("_") for part in name.split("."))]
    names = ["charax", *(name for name in public if name != "charax.cli" and public_names(name))]
    return {name: (importlib.import_module(name).__doc__ or "").strip().splitlines()[0] for name in names}


def public_names(package: str) -> list[str]:
    """The public objects of a package that are not packages themselves, in the order of the alphabet."""
    module = importlib.import_module(package)
    exported = getattr(module, "__all__", ())
    return sorted(name for name in exported if not inspect.ismodule(getattr(module, name)) and name != "__version__")


def home_package(package: str, name: str) -> str:
    """The innermost package that exports an object: it is described there, and linked to from others."""
    thing = getattr(importlib.import_module(package), name)
    module = getattr(thing, "__module__", None) or package
    inner = [other for other in packages() if other != "charax" and module.startswith(f"{other}.")]
    exporting = [other for other in inner if getattr(importlib.import_module(other), name, None) is thing]
    return max(exporting, key=len, default=package)


def write_api(folder: Path) -> None:
    """A page per package with every public object."""
    folder.mkdir(parents=True, exist_ok=True)
    for package, text in packages().items():
        module = importlib.import_module(package)
        lines = [f"# {package}", "", text, ""]
        for name in public_names(package):
            thing = getattr(module, name)
            home = home_package(package, name)
            if home != package:
                lines.append(f"- {{py:obj}}`~{home}.{name}`")
                continue
            below: list[str] = []
            if inspect.isclass(thing):
                kind = "autoclass"
            elif inspect.isfunction(thing):
                kind = "autofunction"
            elif hasattr(thing, "__wrapped__"):  # a compiled function
                kind, below = "autodata", ["   :no-value:"]
            else:
                told = [value_text(package, name), value_content(thing)]
                kind, below = (
                    "py:data",
                    [line for text in filter(None, told) for line in ("", f"   {_escape_words(text)}")],
                )
            lines += ["```{eval-rst}", f".. {kind}:: {package}.{name}", *below, "```", ""]
        _write(folder / f"{package}.md", lines)
    pages = [f"{package} <{package}>" for package in packages()]
    table = [f"| [{package}]({package}.md) | {text} |" for package, text in packages().items()]
    toctree = ["```{toctree}", ":hidden:", *pages, "```"]
    _write(folder / "index.md", ["# API", "", "| package | what is in it |", "|---|---|", *table, "", *toctree])


def value_text(package: str, name: str) -> str:
    """What the source says below the assignment of a public value, on one line. `inspect` knows only its class's."""
    module = importlib.import_module(package)
    stub = Path(inspect.getfile(module)).with_suffix(".pyi")
    for node in ast.parse((stub if stub.exists() else Path(inspect.getfile(module))).read_text()).body:
        if isinstance(node, ast.ImportFrom) and any((each.asname or each.name) == name for each in node.names):
            source = "." * node.level + (node.module or "")
            found = importlib.import_module(source, package)
            return value_text(
                found.__name__, next(each.name for each in node.names if (each.asname or each.name) == name)
            )
    body = ast.parse(Path(inspect.getfile(module)).read_text()).body
    for statement, after in itertools.pairwise(body):
        targets = getattr(statement, "targets", [getattr(statement, "target", None)])
        names = [
            each.id for target in targets for each in ast.walk(target or ast.Tuple([])) if isinstance(each, ast.Name)
        ]
        if name in names and isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant):
            return " ".join(str(after.value.value).split())
    return ""


def value_content(value: object) -> str:
    """What is in a public value: the choices of a literal, the names in a registry, a number. Empty for a type."""
    if get_origin(value) is Literal:
        return f"One of {', '.join(f'`{choice!r}`' for choice in get_args(value))}."
    if isinstance(value, Mapping):
        return f"Its names are {', '.join(f'`{name!r}`' for name in value)}."
    if isinstance(value, tuple | str | int | float) or type(value).__module__.startswith("charax."):
        return f"Its value is `{value!r}`."
    return ""


def write_commands(path: Path) -> None:
    """The command line, as its own parser explains it."""
    from charax.cli._commands import _tree

    lines = ["# Command line", "", "Generated from the parser; `charax COMMAND --help` prints the same.", ""]
    lines += ["Every command takes `--json`. Exit status 0 is success, 2 bad usage or bad input, 1 anything else.", ""]
    for name, command in _tree(()).items():
        leaves = [(name, leaf) for leaf in command] if not callable(command) else [(name,)]
        for words in leaves:
            lines += [f"## charax {' '.join(words)}", "", "```text", _help(words), "```", ""]
    _write(path, lines)


def _help(words: tuple[str, ...]) -> str:
    from charax.cli import main

    out = io.StringIO()
    settings = {"COLUMNS": "100", "NO_COLOR": "1", "TERM": "dumb"}
    before = {name: os.environ.get(name) for name in settings}
    os.environ.update(settings)
    try:
        with contextlib.redirect_stdout(out), contextlib.suppress(SystemExit):
            main([*words, "--help"])
    finally:
        for name, value in before.items():
            os.environ.pop(name) if value is None else os.environ.update({name: value})
    return re.sub(r"\x1b\[[0-9;]*m", "", out.getvalue()).rstrip()


def _write(path: Path, lines: list[str]) -> None:
    """Only what changed, so that the next build is quick."""
    text = "\n".join(lines) + "\n"
    if not path.exists() or path.read_text() != text:
        path.write_text(text)


def _escape(text: str) -> str:
    """|f| is an absolute value and no substitution, * no emphasis, and n_features_in_ no link, unless it is defined."""
    text = re.sub(r"([|*])", r"\\\1", text)
    defined = re.match(r"\s*\w+_(?= \()", text)
    start = defined.end() if defined else 0
    return text[:start] + re.sub(r"(?<=\w)_(?=[\s,.;:)]|$)", r"\\_", text[start:])


def _escape_words(line: str) -> str:
    """The same outside of what is set as code."""
    parts = re.split(r"(`[^`]*`)", line)
    return "".join(part if part.startswith("`") else _escape(part) for part in parts)


def convert_markdown(app: "Sphinx", what: str, name: str, thing: object, options: object, lines: list[str]) -> None:
    """Our docstrings are Markdown with Google's sections; Sphinx reads reStructuredText."""
    out: list[str] = []
    indent: str | None = None
    for line in lines:
        fence = FENCE.match(line)
        if fence and indent is None:
            indent = fence.group(1)
            out += ["", f"{indent}.. code-block:: {fence.group(2) or 'text'}", ""]
        elif fence:
            indent = None
            out.append("")
        elif indent is not None:
            out.append(f"   {line}" if line.strip() else "")
        else:
            out.append(_escape_words(line))
    lines[:] = out


def skip_foreign(app: "Sphinx", what: str, name: str, thing: object, skip: bool, options: object) -> bool | None:
    """What scikit-learn adds to every estimator is described by scikit-learn."""
    return True if re.fullmatch(r"set_\w+_request|get_metadata_routing", name) else None


def prepare(app: "Sphinx") -> None:
    source = Path(app.srcdir)
    write_api(source / "reference" / "api")
    write_commands(source / "reference" / "cli.md")


def setup(app: "Sphinx") -> dict[str, bool]:
    app.connect("builder-inited", prepare)
    app.connect("autodoc-skip-member", skip_foreign)
    app.connect("autodoc-process-docstring", convert_markdown, priority=400)  # before napoleon
    return {"parallel_read_safe": True}
