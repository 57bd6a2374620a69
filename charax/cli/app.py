"""The tree of commands, and what they all share."""

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

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


def write_markdown(path: Path, title: str, columns: Sequence[str], rows: Sequence[Sequence[str]], note: str) -> None:
    """A table as a page to keep beside its numbers."""
    lines = [f"# {title}", "", note, ""]
    lines += [f"| {' | '.join(row)} |" for row in (columns, ["---"] * len(columns), *rows)]
    path.write_text("\n".join(lines) + "\n")
