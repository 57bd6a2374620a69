"""What an experiment leaves: one writer of JSON, Markdown and figures."""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

Figure = Callable[[Path], Path]
"""Saves a figure as a file and returns it."""


class Column(NamedTuple):
    """A column of a table: where its values come from, and how they are written.

    ```python
    from charax.paper import Column

    column = Column("accuracy, %", "accuracy_mean", ".1f", "accuracy_sd")
    assert column.text({"accuracy_mean": 98.25, "accuracy_sd": 0.5}) == "98.2 ± 0.5"
    ```
    """

    title: str
    """The heading."""
    key: str
    """The key of the rows."""
    form: str = ""
    """Format specification of numbers; empty for text, which is aligned to the left."""
    sd: str | None = None
    """The key of the standard deviation over seeds, if there is one."""

    def text(self, row: Mapping[str, Any]) -> str:
        """Write one cell.

        Args:
            row: A row.

        Returns:
            The value, with its standard deviation if there is one; a dash if there is no value.
        """
        value = row.get(self.key)
        if value is None:
            return "-"
        if not self.form:
            return str(value)
        spread = None if self.sd is None else row.get(self.sd)
        return format(value, self.form) + ("" if spread is None else f" ± {spread:{self.form}}")


@dataclass(frozen=True)
class Report:
    """The results of an experiment: a table, what `--json` prints, and figures.

    ```python
    from charax.paper import Column, Report

    report = Report("squares", "Squares", [Column("n", "n"), Column("n²", "square")], {"rows": [{"n": 3, "square": 9}]})
    assert report.markdown().splitlines()[-1] == "| 3 | 9 |"
    ```
    """

    name: str
    """Name of the files."""
    title: str
    """Title of the table."""
    columns: Sequence[Column]
    """The columns of the table."""
    answer: Mapping[str, Any]
    """What `--json` prints; the table shows its `rows`."""
    note: str = ""
    """A paragraph above the table."""
    record: Mapping[str, Any] = field(default_factory=dict)
    """What is stored in addition to the answer."""
    figures: Mapping[str, Figure] = field(default_factory=dict)
    """The figures by file name."""
    rows: Sequence[Mapping[str, Any]] | None = None
    """The rows of the table, where they are not those of the answer."""

    @property
    def cells(self) -> list[list[str]]:
        """The cells of the table."""
        rows = self.answer["rows"] if self.rows is None else self.rows
        return [[column.text(row) for column in self.columns] for row in rows]

    def markdown(self) -> str:
        """Write the table as a page.

        Returns:
            Markdown.
        """
        header = [column.title for column in self.columns]
        lines = [f"# {self.title}", "", *([self.note, ""] if self.note else [])]
        lines += [f"| {' | '.join(row)} |" for row in (header, ["---"] * len(header), *self.cells)]
        return "\n".join(lines) + "\n"

    def write(self, folder: Path) -> list[Path]:
        """Write NAME.json, NAME.md and the figures.

        Args:
            folder: The folder.

        Returns:
            The files.
        """
        folder.mkdir(parents=True, exist_ok=True)
        paths = [folder / f"{self.name}.json", folder / f"{self.name}.md"]
        paths[0].write_text(_to_json({**self.record, **self.answer}))
        paths[1].write_text(self.markdown())
        return [*paths, *(plot(folder / name) for name, plot in self.figures.items())]


def _to_json(content: Mapping[str, Any]) -> str:
    """JSON that people read: indented, with the numbers of a list in one line."""
    text = json.dumps(content, indent=2)
    one_line = lambda found: re.sub(r"(,?)\n *", lambda gap: ", " if gap[1] else "", found[0])
    return re.sub(r"\[\n[^][{}]*\]", one_line, text) + "\n"
