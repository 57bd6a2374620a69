"""The tree of commands, and what they all share."""

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import tyro
from rich.console import Console
from rich.table import Table
from tyro.extras import SubcommandApp

Positional = tyro.conf.Positional
Json = Annotated[bool, tyro.conf.arg(name="json", help="Print one JSON object on standard output instead of a table.")]

app = SubcommandApp()
reproduce = SubcommandApp()
app.command(reproduce, name="reproduce")
train = SubcommandApp()
app.command(train, name="train")
data = SubcommandApp()
app.command(data, name="data")


def tell(answer: Mapping[str, Any], table: Table, *, as_json: bool) -> None:
    """Print the answer as JSON, or the table."""
    if as_json:
        sys.stdout.write(json.dumps(answer) + "\n")
    else:
        # Below and not inside: a caption is folded to the width of its table, and a path in it broken.
        caption, table.caption = table.caption, None
        Console().print(table)
        if caption is not None:
            Console().print(caption, markup=False, highlight=False, soft_wrap=True)


def number_table(numbers: Mapping[str, float | None], title: str) -> Table:
    """A table of named numbers."""
    table = Table("measured", title=title)
    table.add_column("value", justify="right")
    for name, value in numbers.items():
        table.add_row(
            name.replace("_", " "), "-" if value is None else f"{value:,}" if value == int(value) else f"{value:.4f}"
        )
    return table


def or_dash(value: float | None, form: str) -> str:
    """A number in a table, or a dash where there is none."""
    return "-" if value is None else format(value, form)


class Sheet(NamedTuple):
    """A table of results: on the terminal, and as a page to keep beside its numbers."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    note: str = ""
    words: int = 2
    """How many columns, from the left, are words and not numbers."""

    def table(self, note: str = "") -> Table:
        """The table for a terminal, with a note below it beside its own."""
        table = Table(*self.columns[: self.words], title=self.title, padding=(0, 0))
        for column in self.columns[self.words :]:
            table.add_column(column, justify="right")
        for row in self.rows:
            table.add_row(*row)
        table.caption = " ".join(part for part in (self.note, note) if part) or None
        return table

    def write(self, path: Path) -> None:
        """The same in Markdown."""
        lines = [f"# {self.title}", ""] + ([self.note, ""] if self.note else [])
        lines += [f"| {' | '.join(row)} |" for row in (self.columns, ["---"] * len(self.columns), *self.rows)]
        path.write_text("\n".join(lines) + "\n")


def with_spread(mean: float | None, sd: float | None, form: str) -> str:
    """A mean and its standard deviation over seeds, where there are several."""
    return or_dash(mean, form) + ("" if sd is None else f" ± {sd:{form}}")
