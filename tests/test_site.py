"""The site's sources: nothing public is missing from the reference, and no internal link is dead."""

import ast
import importlib.util
import inspect
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import charax

ROOT = Path(__file__).parents[1]
GENERATED = ("docs/reference/api/", "docs/reference/cli.md", "docs/_build/")
LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s]+)\)|!\[[^\]]*\]\(([^)\s]+)\)")
FENCED = re.compile(r"^```.*?^```", re.DOTALL | re.MULTILINE)


def load_site():
    """The part of the site's configuration that writes the reference; it needs Sphinx only to build."""
    spec = importlib.util.spec_from_file_location("charax_site", ROOT / "docs" / "_ext" / "charax_site.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


SITE = load_site()


def test_every_public_package_has_a_page():
    named = {f"charax.{name}" for name in charax.__all__ if inspect.ismodule(getattr(charax, name))}
    assert named <= set(SITE.packages())
    assert {f"charax.tasks.{task}" for task in ("classification", "density", "pde")} <= set(SITE.packages())
    assert all(SITE.packages().values())


def test_every_public_object_is_in_the_reference(tmp_path):
    SITE.write_api(tmp_path)
    for package in SITE.packages():
        page = (tmp_path / f"{package}.md").read_text()
        for name in SITE.public_names(package):
            assert re.search(rf"[.`]{name}(`|$)", page, re.MULTILINE), f"{package}.{name} is not in the reference"
    assert set(SITE.packages()) == {path.stem for path in tmp_path.iterdir()} - {"index"}


def test_every_public_value_is_described_by_the_text_below_it():
    for package in SITE.packages():
        module = importlib.import_module(package)
        for name in SITE.public_names(package):
            thing = getattr(module, name)
            if not inspect.isclass(thing) and not inspect.isfunction(thing) and not hasattr(thing, "__wrapped__"):
                assert SITE.value_text(package, name), f"{package}.{name} has no text below its assignment"


def test_the_reference_shows_what_is_in_a_value(tmp_path):
    SITE.write_api(tmp_path)
    assert "One of `'cosine'`, `'paper'`, `'warmup'`, `'constant'`." in (tmp_path / "charax.train.md").read_text()
    assert "Its names are `'circles'`" in (tmp_path / "charax.data.md").read_text()
    assert "Its value is `64`." in (tmp_path / "charax.train.md").read_text()


def test_every_command_is_in_the_reference(tmp_path):
    from charax.cli._commands import _tree

    SITE.write_commands(tmp_path / "cli.md")
    page = (tmp_path / "cli.md").read_text()
    for name, command in _tree(()).items():
        for words in [name] if callable(command) else [f"{name} {leaf}" for leaf in command]:
            assert f"## charax {words}\n" in page
    assert "--learning-rate" in page
    assert "\x1b" not in page
    # The examples of docstrings are for the API: the fences on the page are those around each command's help.
    assert page.count("```") == 2 * page.count("\n## charax ")
    assert "import charax" not in page


def test_markdown_in_docstrings_becomes_what_sphinx_reads():
    lines = ["Integrates |f|² of `a|b`.", "", "```python", "x = 1", "```"]
    SITE.convert_markdown(None, "", "", None, None, lines)
    assert lines == [r"Integrates \|f\|² of `a|b`.", "", "", ".. code-block:: python", "", "   x = 1", ""]


def pages() -> list[Path]:
    sources = [
        ROOT / "README.md",
        ROOT / "CONTRIBUTING.md",
        ROOT / "CHANGELOG.md",
        *sorted((ROOT / "docs").rglob("*.md")),
    ]
    return [page for page in sources if not str(page.relative_to(ROOT)).startswith(GENERATED)]


def anchors(page: Path) -> set[str]:
    """What GitHub and MyST make of headings."""
    headings = re.findall(r"^#+ (.+)$", FENCED.sub("", page.read_text()), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def internal_links(page: Path) -> Iterator[str]:
    for groups in LINK.findall(FENCED.sub("", page.read_text())):
        link = next(filter(None, groups))
        if not link.startswith(("http:", "https:", "mailto:")):
            yield link


@pytest.mark.parametrize("page", [str(page.relative_to(ROOT)) for page in pages()])
def test_no_internal_link_is_dead(page):
    path = ROOT / page
    for link in internal_links(path):
        target, _, anchor = link.partition("#")
        found = (path.parent / target).resolve() if target else path
        generated = str(found.relative_to(ROOT)).startswith(GENERATED)
        assert generated or found.exists(), f"{page}: {link} does not exist"
        if anchor and found.suffix == ".md" and not generated:
            assert anchor in anchors(found), f"{page}: {link} has no such heading"


def test_every_folder_of_results_has_a_page_that_the_table_of_results_links_to_and_that_has_its_files():
    results = ROOT / "docs" / "results"
    linked = {link.partition("#")[0] for link in internal_links(results / "README.md")}
    for folder in (path for path in results.iterdir() if path.is_dir()):
        assert f"{folder.name}/README.md" in linked, f"docs/results/README.md does not name {folder.name}"
        page = (folder / "README.md").read_text()
        for file in (path for path in folder.iterdir() if path.suffix in (".png", ".svg", ".json")):
            assert f"]({file.name})" in page, f"{file.name} is not on the page of {folder.name}"


def test_a_figure_of_a_recorded_table_is_linked_once(tmp_path):
    from benchmarks.figures import TABLES, draw

    for name in ("pairs", "first-results"):  # those whose rows are made from other ones
        (tmp_path / name).mkdir()
        for file in (TABLES[name].file, "README.md"):
            (tmp_path / name / file).write_text((ROOT / "docs" / "results" / name / file).read_text())
        page = tmp_path / name / "README.md"
        page.write_text(page.read_text().replace(f"({name}.png)", ""))
        assert draw(name, tmp_path).stat().st_size > 10_000
        draw(name, tmp_path)
        assert page.read_text().count(f"]({name}.png)") == 1


def test_links_of_pages_from_outside_are_taken_from_their_place():
    including = [page for page in pages() if "```{include} ../../" in page.read_text()]
    assert len(including) == 2
    for page in including:
        assert ":relative-docs: docs/\n" in page.read_text(), f"the links of {page.name} lead nowhere on the site"


def test_learning_pages_are_executed():
    learn = [path for path in (ROOT / "docs" / "learn").glob("*.md") if path.stem != "index"]
    assert len(learn) >= 9
    for path in learn:
        assert "```{code-cell}" in path.read_text(), f"{path.name} executes nothing"
        assert path.read_text().startswith("---\nfile_format: mystnb"), f"{path.name} is not a notebook"


def test_the_site_needs_sphinx_only_to_build():
    assert "sphinx" not in sys.modules


def templates() -> list[str]:
    """The texts in the package, with … in place of what is filled in."""
    found: list[str] = []
    for path in (ROOT / "charax").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.JoinedStr):
                parts = [part.value if isinstance(part, ast.Constant) else "…" for part in node.values]
                found.append("".join(map(str, parts)))
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                found.append(node.value)
    return found


def test_messages_of_the_troubleshooting_page_are_those_of_the_package():
    page = (ROOT / "docs" / "howto" / "troubleshoot.md").read_text()
    quoted = re.findall(r"^### (.+)$", page, re.MULTILINE) + re.findall(
        r"^\| ((?:The|Stiff).+?) \|", page, re.MULTILINE
    )
    texts = "\n".join(text.replace("\n", " ") for text in templates())
    assert len(quoted) > 25
    for message in quoted:
        words = ".*".join(map(re.escape, message.split("…")))
        assert re.search(words, texts), f"no message of the package reads {message!r}"


@pytest.mark.parametrize("workflow", sorted(path.name for path in (ROOT / ".github" / "workflows").glob("*.yml")))
def test_workflows_call_targets_of_the_makefile(workflow):
    yaml = pytest.importorskip("yaml")
    jobs = yaml.safe_load((ROOT / ".github" / "workflows" / workflow).read_text())["jobs"]
    steps = [step for job in jobs.values() for step in job["steps"]]
    assert all(re.fullmatch(r"[\w./-]+@[\w./]+", step["uses"]) for step in steps if "uses" in step)
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    called = [word for step in steps for word in re.findall(r"make ([a-z-]+)", step.get("run", ""))]
    assert called or "bash .ci/run" in str(steps)
    assert set(called) <= targets
