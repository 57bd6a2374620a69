"""The lines of a text file, for errors: which line a record is on, and how many cells it has."""

import csv
import gzip
import io
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, NamedTuple

from charax.data._errors import DataError
from charax.data._limits import LIMITS, check_limit, check_passed, most_cells
from charax.data.files._archives import bound_unpacked

_SAMPLE = 1 << 15
_CHUNK = 1 << 20


class Counts(NamedTuple):
    """How often some characters occur in a file."""

    lines: int
    separators: int
    quotes: int


def read_sample(path: Path) -> list[str]:
    """Read the first lines."""
    check_limit("bytes", path.stat().st_size, path)
    longest = max(_SAMPLE, LIMITS["bytes"].value // 64)
    with open_text(path) as file:
        lines: list[str] = []
        left = _SAMPLE
        while left > 0 and (line := file.readline(longest)):
            if len(line) == longest:
                raise DataError(f"{path}, row {len(lines) + 1}: the line has more than {longest:,} characters")
            lines.append(line)
            left -= len(line)
        # The last record of the sample may continue in the lines that follow.
        return lines[:-1] if len(lines) > 2 and file.read(1) else lines


@contextmanager
def open_text(path: Path) -> Iterator[IO[str]]:
    """Open a text file, compressed or not, in UTF-8 with or without the byte order mark that spreadsheets write."""
    opened = gzip.open if is_compressed(path) else open
    with translate_errors(path), opened(path, "rt", encoding="utf-8-sig", newline="") as file:
        yield file  # pyright: ignore[reportReturnType]


@contextmanager
def translate_errors(path: Path) -> Iterator[None]:
    """Turn the errors of reading text into sentences."""
    try:
        yield
    except UnicodeDecodeError:
        row = f", row {line}" if (line := _undecodable_line(path)) else ""
        raise DataError(
            f"{path}{row}: not text in UTF-8: save the file with this encoding (in a spreadsheet: CSV UTF-8)"
        ) from None
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise DataError(
            f"{path} cannot be read: {str(error).rstrip('.')}: it is damaged or incomplete; copy or download it again"
        ) from None
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error}") from None


@contextmanager
def unlimited_cells() -> Iterator[None]:
    """Let the `csv` module read cells of any length, as pandas does."""
    limit = csv.field_size_limit(2**31 - 1)
    try:
        yield
    finally:
        csv.field_size_limit(limit)


def is_compressed(path: Path) -> bool:
    """Whether a file is compressed by gzip, by its name."""
    return path.suffix.lower() == ".gz"


def count_characters(path: Path, separator: str) -> Counts:
    """Count lines, separators and quotes."""
    lines = separators = quotes = 0
    last = b"\n"
    with _open_bytes(path) as file:
        while chunk := file.read(_CHUNK):
            lines += chunk.count(b"\n")
            separators += chunk.count(separator.encode())
            quotes += chunk.count(b'"')
            last = chunk
    return Counts(lines + (not last.endswith(b"\n")), separators, quotes)


def check_lines(path: Path, columns: int) -> None:
    """Refuse a text file with more lines or cells than the limits, before it is read.

    Every line has a cell for each column, even if it is shorter: that is how it will be in memory. Small files cannot
    have as many, so that they are not scanned.
    """
    check_limit("columns", columns, path)
    compressed = is_compressed(path)
    bound = bound_unpacked(path) if compressed else path.stat().st_size
    if bound <= LIMITS["lines"].value and bound * columns <= LIMITS["cells"].value:
        return
    lines, size, most = 0, 0, most_cells(path)
    last = b""
    with translate_errors(path), _open_bytes(path) as file:
        while chunk := file.read(_CHUNK):
            size += len(chunk)
            lines += chunk.count(b"\n")
            if returns := chunk.count(b"\r"):
                lines += returns - chunk.count(b"\r\n")
            lines -= last == b"\r" and chunk[:1] == b"\n"  # \r\n is one line, also on both sides of a cut
            last = chunk[-1:]
            check_passed("bytes", size, path, "unpacks to")
            check_passed("lines", lines, path)
            if lines * columns > most:
                check_passed("cells", lines * columns, path)


def scan_records(path: Path, separator: str) -> Iterator[tuple[int, int]]:
    """Iterate over the line and the number of cells of each record, the header first. Blank lines are skipped."""
    before, last = 0, ""

    def lines(readline: Callable[[], str]) -> Iterator[str]:
        nonlocal last
        while last := readline():
            yield last

    try:
        with unlimited_cells(), open_text(path) as file:
            reader = csv.reader(lines(file.readline), delimiter=separator, skipinitialspace=True, strict=True)
            for row in reader:
                if len(row) > 1 or last.strip():  # a quoted cell without text is not a blank line
                    yield reader.line_num, len(row)
                before = reader.line_num
    except csv.Error as error:
        raise DataError(f"{path}, row {before + 1}: cannot be read: {error}") from None


def locate_records(path: Path, separator: str, records: int) -> list[int] | range:
    """Find the line on which each record after the header ends."""
    if count_characters(path, separator).lines == records + 1:
        return range(2, records + 2)  # neither blank lines nor line breaks in cells
    return [line for line, _ in scan_records(path, separator)][1:]


def check_widths(path: Path, separator: str, columns: int) -> None:
    """Check that every record has a cell for every column."""
    for row, (line, cells) in enumerate(scan_records(path, separator)):
        if row and cells != columns:
            raise DataError(f"{path}, row {line}: {cells} cells where there are {columns} columns")


def _open_bytes(path: Path) -> io.BufferedIOBase:
    return gzip.open(path, "rb") if is_compressed(path) else path.open("rb")


def _undecodable_line(path: Path) -> int | None:
    try:
        with _open_bytes(path) as file:
            for number, line in enumerate(file, start=1):
                try:
                    line.decode()
                except UnicodeDecodeError:
                    return number
    except (OSError, EOFError, zlib.error):
        pass
    return None
