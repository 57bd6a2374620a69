"""The `.ts` format of the UEA and UCR archives, compressed by gzip or not."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple, NoReturn

import numpy as np

from charax.data._errors import DataError
from charax.data._limits import LIMITS, check_limit
from charax.data.files._kind import FileKind, has_suffix
from charax.data.files._lines import open_text
from charax.data.files._series import RawSeries, SeriesRequest

_TRUE = "true"


class _Header(NamedTuple):
    """What the lines that begin with @ say."""

    timestamps: bool
    labelled: bool
    classes: tuple[str, ...]


class _Line(NamedTuple):
    """The series of one line."""

    number: int
    times: np.ndarray
    values: np.ndarray
    label: str | None


def read_ts(path: Path, request: SeriesRequest) -> RawSeries:
    """Read a `.ts` file: one series per line, its channels separated by colons, its label last."""
    with open_text(path) as file:
        numbered = enumerate(_bounded_lines(path, file.readline), 1)
        lines = ((number, text) for number, line in numbered if (text := line.strip()) and text[0] != "#")
        header = _read_header(path, lines)
        if request.target is not None and not header.labelled:
            raise DataError(f"{path} has no labels: it needs a line '@classLabel true …' or '@targetLabel true'")
        series = [_read_line(path, number, text, header) for number, text in lines]
    channels = series[0].values.shape[1] if series else 0
    for one in series:
        if one.values.shape[1] != channels:
            _refuse(path, one.number, f"has {one.values.shape[1]} channels where the first series has {channels}")
    return RawSeries(
        path,
        names=[str(i + 1) for i in range(len(series))],
        times=[one.times for one in series],
        values=[one.values for one in series],
        channels=tuple(f"channel{i + 1}" for i in range(channels)),
        labels=[one.label or "" for one in series] if header.labelled else None,
        where=lambda i, row: f"{path}, row {series[i].number}",
    ).check()


def _bounded_lines(path: Path, readline: Callable[[int], str]) -> Iterator[str]:
    """The lines of a file, as long as they are not more than its limit."""
    limit, characters = LIMITS["bytes"].value, 0
    while line := readline(limit - characters + 1):
        characters += len(line)
        check_limit("bytes", characters, path, "unpacks to at least")
        yield line


def _read_header(path: Path, lines: Iterator[tuple[int, str]]) -> _Header:
    words: dict[str, list[str]] = {}
    for number, text in lines:
        if not text.startswith("@"):
            _refuse(path, number, "there are data before the line '@data'")
        name, *rest = text[1:].split()
        if name.lower() == "data":
            break
        words[name.lower()] = rest
    else:
        raise DataError(f"{path} has no line '@data', so it is not a .ts file")
    is_true = lambda name: words.get(name, [""])[0].lower() == _TRUE
    return _Header(
        timestamps=is_true("timestamps"),
        labelled=is_true("classlabel") or is_true("targetlabel"),
        classes=tuple(words["classlabel"][1:]) if is_true("classlabel") else (),
    )


def _read_line(path: Path, number: int, text: str, header: _Header) -> _Line:
    # A clock time inside of a pair has colons too.
    channels = _split_channels(text) if header.timestamps else text.split(":")
    label = channels.pop().strip() if header.labelled else None
    if header.labelled and (not label or not channels):
        _refuse(path, number, "has no label, which comes last, behind a colon")
    if label is not None and header.classes and label not in header.classes:
        _refuse(path, number, f"has the class {label!r}, which is not one of {', '.join(header.classes)}")
    if header.timestamps:
        return _Line(number, *_merge([_read_pairs(path, number, each) for each in channels]), label)
    columns = [_read_numbers(path, number, each.split(",")) for each in channels]
    lengths = {len(column) for column in columns}
    if len(lengths) != 1:
        _refuse(path, number, f"has channels of different lengths: {', '.join(map(str, sorted(lengths)))}")
    return _Line(number, np.arange(float(lengths.pop())), np.stack(columns, axis=1), label)


def _split_channels(text: str) -> list[str]:
    pieces, depth, start = [], 0, 0
    for i, character in enumerate(text):
        depth += (character == "(") - (character == ")")
        if character == ":" and depth == 0:
            pieces.append(text[start:i])
            start = i + 1
    return [*pieces, text[start:]]


def _read_pairs(path: Path, number: int, text: str) -> tuple[np.ndarray, np.ndarray]:
    """The times and values of one channel, as in (0,1.5),(2,3)."""
    pairs = [pair.split(",") for pair in text.strip().strip("()").replace(" ", "").split("),(")]
    pairs = [] if pairs == [[""]] else pairs
    if any(len(pair) != 2 for pair in pairs):
        _refuse(path, number, "has something else than pairs (time,value) in a channel")
    times, values = ([pair[i] for pair in pairs] for i in (0, 1))
    return _read_numbers(path, number, times), _read_numbers(path, number, values)


def _merge(channels: list[tuple[np.ndarray, np.ndarray]]) -> tuple[np.ndarray, np.ndarray]:
    """One row per time at which any channel was observed. Times that are out of order stay so, to be refused."""
    first, rest = channels[0][0], [times for times, _ in channels[1:]]
    if all(np.array_equal(first, times) for times in rest):
        return first, np.stack([values for _, values in channels], axis=1)
    for times, values in channels:
        if (np.diff(times) <= 0).any():
            return times, np.stack([values] * len(channels), axis=1)
    union = np.unique(np.concatenate([times for times, _ in channels]))
    merged = np.full((len(union), len(channels)), np.nan)
    for j, (times, values) in enumerate(channels):
        merged[np.searchsorted(union, times), j] = values
    return union, merged


def _read_numbers(path: Path, number: int, texts: list[str]) -> np.ndarray:
    try:
        return np.asarray([np.nan if text.strip() == "?" else float(text) for text in texts])
    except ValueError as error:
        _refuse(path, number, f"has something else than numbers and ?: {error}")


def _refuse(path: Path, number: int, what: str) -> NoReturn:
    raise DataError(f"{path}, row {number}: {what}")


TS = FileKind(name=".ts", matches=has_suffix(".ts", ".ts.gz"), read_series=read_ts)
