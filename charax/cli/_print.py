"""Answers on standard output: a table, or one JSON object."""

import json
import re
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import tyro

if TYPE_CHECKING:
    from charax.paper import Report

Json = Annotated[bool, tyro.conf.arg(name="json", help="Print one JSON object on standard output instead of a table.")]
Positional = tyro.conf.Positional
_NUMBER = re.compile(r"[-+]?\d[\d.,]*(e[-+]?\d+)?%?")


def print_answer(
    answer: Mapping[str, Any],
    columns: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    title: str = "",
    note: str = "",
    text_columns: int = 2,
    optional: Sequence[str] = (),
    as_json: bool,
) -> None:
    """Print a table with a note below it, or the answer as JSON.

    Optional columns are left out, and named in the note, if the table would be wider than the terminal.
    """
    if as_json:
        sys.stdout.write(json.dumps(answer) + "\n")
        return
    from rich.cells import cell_len
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    # As text: names of classes and columns may look like markup.
    table = Table(padding=(0, 0))
    console = Console()
    if optional and sum(max(map(cell_len, texts)) + 1 for texts in zip(columns, *rows, strict=True)) >= console.width:
        kept = [i for i, column in enumerate(columns) if column not in optional]
        text_columns -= len(columns) - len(kept)
        columns, rows = [columns[i] for i in kept], [[row[i] for i in kept] for row in rows]
        left_out = f"A wider terminal, or --json, shows the {', '.join(optional[:-1])} and {optional[-1]}, too."
        note = f"{note}\n{left_out}" if note else left_out
    widths = _widths(list(zip(columns, *rows, strict=True)), console.width)
    for i, column in enumerate(columns):
        table.add_column(
            Text(column), justify="left" if i < text_columns else "right", overflow="fold", width=widths[i]
        )
    for row in rows:
        table.add_row(*map(Text, row))
    console.width = max(console.width, sum(widths) + len(widths) + 1)
    if title:  # above, and not as the table's own, which would be folded to its width
        console.print(title, style="italic", markup=False, highlight=False, soft_wrap=True)
    console.print(table)
    if note:
        console.print(note, markup=False, highlight=False, soft_wrap=True)


def _widths(columns: Sequence[Sequence[str]], terminal: int) -> list[int]:
    """The widths of columns whose first texts are their titles.

    No title is broken inside a word, and no number; other texts are only where the table would be wider than the
    terminal.
    """
    from rich.cells import cell_len

    longest = lambda *texts: max((cell_len(word) for text in texts for word in text.split()), default=1)
    numbers = lambda texts: [word for text in texts for word in text.split() if _NUMBER.fullmatch(word)]
    least = [longest(title, *numbers(texts)) for title, *texts in columns]
    wanted = [max(map(cell_len, texts)) for texts in columns]
    widths, space = [longest(*texts) for texts in columns], terminal - len(columns) - 1
    while sum(widths) > space and widths != least:
        widths[max(range(len(widths)), key=lambda i: (widths[i] > least[i], widths[i]))] -= 1
    while sum(widths) < space and widths != wanted:
        widths[max(range(len(widths)), key=lambda i: wanted[i] - widths[i])] += 1
    return widths


def print_metrics(
    answer: Mapping[str, Any], metrics: Mapping[str, Any], *, title: str, note: str, as_json: bool
) -> None:
    """Print named numbers."""
    rows = [
        [name.replace("_", " "), format_number(value) + _interval(metrics.get(f"{name}_interval"))]
        for name, value in metrics.items()
        if not name.endswith("_interval")
    ]
    print_answer(answer, ["metric", "value"], rows, title=title, note=note, text_columns=1, as_json=as_json)


def print_rows(rows: Sequence[Mapping[str, Any]], *, note: str) -> None:
    """Print a table of flat rows. The ends of NAME_interval are shown after NAME, as the note says, and counts by name
    as columns."""
    shown: list[dict[str, str]] = []
    if not any(name.endswith("_interval") for row in rows for name in row):
        note = ""
    for row in rows:
        cells: dict[str, str] = {}
        for name, value in row.items():
            if isinstance(value, Mapping):
                cells |= {f"{name.replace('_', ' ')} {each}": format_number(count) for each, count in value.items()}
            elif not name.endswith("_interval"):
                text = value if isinstance(value, str) else format_number(value)
                cells[name] = text + _interval(row.get(f"{name}_interval"))
        shown.append(cells)
    columns = list(dict.fromkeys(name for cells in shown for name in cells))
    table = [[cells.get(name, "") for name in columns] for cells in shown]
    print_answer({}, columns, table, note=note, text_columns=1, as_json=False)


def _interval(ends: Sequence[float] | None) -> str:
    return "" if ends is None else f" [{format_number(ends[0])}, {format_number(ends[1])}]"


def print_report(report: "Report", files: Sequence[object], *, as_json: bool) -> None:
    """Print the table of a report and the files that it left."""
    text = sum(1 for column in report.columns if not column.form)
    written = f"Written: {', '.join(str(path) for path in files)}"
    print_answer(
        report.answer,
        [column.title for column in report.columns],
        report.cells,
        title=report.title,
        note=f"{report.note}\n{written}" if report.note else written,
        text_columns=text,
        as_json=as_json,
    )


def format_number(value: float | str | None) -> str:
    """A number with fitting digits: whole ones as they are, small ones with their leading digits; a text as it is."""
    if value is None:
        return "-"
    if isinstance(value, str):
        return value
    if isinstance(value, int) or (value == int(value) and abs(value) < 1e15):
        return f"{value:,.0f}"
    return f"{value:.4f}" if abs(value) >= 0.01 else f"{value:.3g}"
