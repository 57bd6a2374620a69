"""How a text file is laid out: its separator, its column names and its decimal sign, found out from its first lines."""

import csv
from collections.abc import Sequence
from pathlib import Path
from typing import Literal, NamedTuple

from charax.data._errors import DataError
from charax.data._limits import check_passed
from charax.data.files._lines import unlimited_cells
from charax.data.files._numbers import is_number, uses_decimal_comma

Separator = Literal[",", ";", "tab", "|"]
"""A separator of columns, as it is given on a command line."""
SEPARATORS: dict[str, str] = {",": ",", ";": ";", "tab": "\t", "|": "|"}
"""The characters."""


class Layout(NamedTuple):
    """How a text file is laid out."""

    separator: str
    names: list[str]
    """The name of each column; empty for those without one."""
    decimal: str
    spaced: bool
    """Whether separators are followed by spaces, which are not part of the cells."""


def find_layout(
    path: Path,
    lines: Sequence[str],
    *,
    separator: str | None = None,
    expected: Sequence[str] = (),
    preferred: str | None = None,
) -> Layout:
    """Find out how a text file is laid out.

    The separator is the one that gives the most of the columns that are expected; of several the preferred one, else
    the one that gives all lines the same number of columns, with as many numbers as possible.
    """
    candidates = [SEPARATORS[separator]] if separator is not None else list(SEPARATORS.values())
    for number, line in enumerate(lines, start=1):
        check_passed("columns", max(map(line.count, candidates)), f"{path}, row {number}")
    tables = {each: _split(lines, each) for each in candidates}
    first = None if preferred is None else SEPARATORS[preferred]
    chosen = max(candidates, key=lambda each: _score(tables[each], expected, is_preferred=each == first))
    if not tables[chosen]:
        raise DataError(f"{path} has no rows of data")
    header, *rows = tables[chosen]
    names = _complete([name.strip() for name in header], rows)
    if any(names) and all(is_number(name) for name in names if name):
        raise DataError(f"{path}, row 1: there are numbers instead of column names: add a first line of column names")
    cells = (cell.strip() for row in rows for cell in row)
    comma = uses_decimal_comma(cells, separated_by_commas=chosen == ",")
    return Layout(chosen, names, "," if comma else ".", spaced=any(f"{chosen} " in line for line in lines))


def _split(lines: Sequence[str], separator: str) -> list[list[str]]:
    """The cells of the lines; none if they cannot be split like this."""
    try:
        with unlimited_cells():
            rows = list(csv.reader(lines, delimiter=separator, skipinitialspace=True))
    except csv.Error:
        return []
    return [row for row in rows if len(row) > 1 or any(cell.strip() for cell in row)]


def _score(
    rows: list[list[str]], expected: Sequence[str], *, is_preferred: bool
) -> tuple[int, bool, bool, float, float, int]:
    if not rows:
        return (-1, False, False, 0.0, 0.0, 0)
    header, *rest = rows
    width = len(_complete(header, rest))
    names = {name.strip() for name in header}
    regular = sum(len(row) == width for row in rest) / max(1, len(rest))
    cells = [cell.strip() for row in rest for cell in row]
    numbers = sum(map(is_number, cells)) / max(1, len(cells))
    return (len(names & {*expected}), is_preferred, width > 1, regular, numbers, width)


def _complete(names: list[str], rows: list[list[str]]) -> list[str]:
    """Add what a header lacks if every row has one cell more: the names of the rows, or a last separator."""
    if not rows or any(len(row) != len(names) + 1 for row in rows):
        return names
    return [*names, ""] if not any(row[-1].strip() for row in rows) else ["", *names]
