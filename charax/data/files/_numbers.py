"""Numbers as people write them: with a decimal point or comma, and perhaps with separators of thousands."""

import re
from collections.abc import Callable, Iterable, Sequence

_THOUSANDS_POINT = re.compile(r"[+-]?[1-9]\d{0,2}(?:,\d{3})+(?:\.\d*)?")
"""As in 1,234.5."""
_COMMA = re.compile(r"[+-]?(?:[1-9]\d{0,2}(?:\.\d{3})+(?:,\d+)?|(?:\d+(?:,\d*)?|,\d+)(?:[eE][+-]?\d+)?)")
"""As in 1234,5 and 1.234,5."""
_AMBIGUOUS = re.compile(r"[+-]?[1-9]\d{0,2}[.,]\d{3}")
"""Thousands, or three decimals?"""


class AmbiguousNumberError(ValueError):
    """A number that can be read in two ways; its text is the only argument."""


def parse_numbers(texts: Sequence[str], decimal: str = ".") -> list[float] | None:
    """Convert texts to numbers, in one way for all of them, or to None if one of them is not a number.

    `decimal` is the decimal sign of the file. Where the other sign occurs too, it stands for decimals or for thousands:
    `AmbiguousNumberError` is raised if nothing tells which.
    """
    if decimal == "." and (plain := _all(_plain, texts)) is not None:
        return plain
    readings = [numbers for read in (_with_point, _with_comma) if (numbers := _all(read, texts)) is not None]
    if len(readings) == 2 and readings[0] != readings[1]:
        raise AmbiguousNumberError(next(text for text in texts if _AMBIGUOUS.fullmatch(text)))
    return readings[0] if readings else None


def is_number(text: str) -> bool:
    """Whether a text is a number, with a decimal point or comma."""
    return _with_point(text) is not None or _with_comma(text) is not None


def wrong_numbers(texts: Sequence[str]) -> list[bool]:
    """Mark the texts because of which not all of them are numbers."""
    wrong = [not is_number(text) for text in texts]
    return wrong if any(wrong) else [_plain(text) is None for text in texts]


def uses_decimal_comma(cells: Iterable[str], *, separated_by_commas: bool) -> bool:
    """Whether there are decimal commas and no decimal points.

    What may be a separator of thousands does not count if it is a point, or a comma between commas that separate cells.
    """
    commas = False
    for cell in cells:
        ambiguous = _AMBIGUOUS.fullmatch(cell) is not None
        if "." in cell and (separated_by_commas or not ambiguous) and _plain(cell) is not None:
            return False
        if "," in cell and not (separated_by_commas and ambiguous):
            commas = commas or _with_comma(cell) is not None
    return commas


def _all(read: Callable[[str], float | None], texts: Sequence[str]) -> list[float] | None:
    numbers: list[float] = []
    for text in texts:
        if (number := read(text)) is None:
            return None
        numbers.append(number)
    return numbers


def _plain(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _with_point(text: str) -> float | None:
    return _plain(text.replace(",", "") if _THOUSANDS_POINT.fullmatch(text) else text)


def _with_comma(text: str) -> float | None:
    return _plain(text.replace(".", "").replace(",", ".")) if _COMMA.fullmatch(text) else None
