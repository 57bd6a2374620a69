"""What the pages of a Parquet file say about themselves, read before any of them is unpacked.

The footer has sizes, too, but the reader takes memory by the header of each page. Both are structs of Thrift's compact
protocol. The footer is read here as well, because pyarrow ends the process at some columns of a damaged one.
"""

from collections.abc import Collection, Iterable, Iterator
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from charax.data._errors import DataError
from charax.data._limits import check_limit, check_passed

_HEADER, _DEPTH = 1 << 16, 8
"""So long and so deep may a header be. Statistics may have values of some kilobytes."""
_UNPACKED, _PACKED, _DATA, _DICTIONARY, _DATA_V2 = 2, 3, 5, 7, 8
"""Numbers of the fields of a page header."""
_VALUES = 1
_GROUPS, _COLUMNS, _METADATA = 4, 1, 3
"""Numbers of the fields of a footer: its groups of rows, the columns of a group, what is known of a column."""
_GROWING = {6: "DELTA_LENGTH_BYTE_ARRAY", 7: "DELTA_BYTE_ARRAY"}
"""Encodings of texts that have any length in memory, however short their page is."""


def check_pages(path: Path, metadata: Any, groups: Iterable[int], columns: Collection[str] | None = None) -> None:
    """Compare the sizes in the headers of the pages of groups of rows, or of some columns of them, with the limits.

    Raises:
        DataError: If the pages are more, or unpack to more bytes, than the limits.
        ValueError: If a header is not one.
    """
    pages = unpacked = 0
    with path.open("rb") as file:
        columns_of_groups = _read_footer(path, file)
        for group in groups:
            if len(columns_of_groups[group]) != metadata.num_columns:
                raise ValueError("a group of rows does not have as many columns as the file")
            for index, column in enumerate(columns_of_groups[group]):
                name = metadata.schema.column(index).path
                if columns is not None and name not in columns:
                    continue
                for header in _headers(file, column):
                    pages += 1
                    unpacked += header[_UNPACKED]
                    check_passed("pages", pages, path)
                    check_limit("memory", unpacked, path, "unpacks to")
                    _check_encoding(path, name, header)


class _Column(NamedTuple):
    """Where the pages of a column of a group of rows are."""

    num_values: int
    packed: int
    data: int
    dictionary: int | None

    @classmethod
    def of(cls, chunk: Any) -> "_Column":
        known = chunk.get(_METADATA) if isinstance(chunk, dict) else None
        values, packed, data, dictionary = (known.get(i) if isinstance(known, dict) else None for i in (5, 7, 9, 11))
        sizes = [each for each in (values, packed, data) if isinstance(each, int) and each >= 0]
        if len(sizes) < 3:
            raise ValueError("a column has no sizes")
        return cls(sizes[0], sizes[1], sizes[2], dictionary if isinstance(dictionary, int) else None)


def _read_footer(path: Path, file: BinaryIO) -> list[list[_Column]]:
    """The columns of each group of rows."""
    end = file.seek(0, 2)
    file.seek(max(end - 8, 0))
    size = int.from_bytes(file.read(4), "little")
    if file.read() != b"PAR1" or size > end - 12:
        raise ValueError("it has no footer")
    check_limit("footer", size, path)
    file.seek(end - 8 - size)
    groups = _read_struct(file.read(size), 0, 0)[0].get(_GROUPS)
    columns = [group.get(_COLUMNS) if isinstance(group, dict) else None for group in groups or []]
    if not all(isinstance(each, list) for each in columns):
        raise ValueError("its footer has no groups of columns")
    return [[_Column.of(chunk) for chunk in each or []] for each in columns]


def _headers(file: BinaryIO, column: _Column) -> Iterator[dict[int, Any]]:
    """The headers of the pages that a reader of the column unpacks: until there is a value for every row."""
    start, dictionary = column.data, column.dictionary
    start = dictionary if dictionary is not None and 0 < dictionary < start else start
    end, values = start + column.packed, 0
    while values < column.num_values and start < end:
        file.seek(start)
        content = file.read(_HEADER)
        header, length = _read_struct(content, 0, 0)
        unpacked, packed = header.get(_UNPACKED), header.get(_PACKED)
        if not (isinstance(unpacked, int) and isinstance(packed, int) and unpacked >= 0 and packed >= 0):
            raise ValueError("the header of a page has no sizes")
        count = _count(header, _DATA) + _count(header, _DATA_V2)
        if count > column.num_values or _count(header, _DICTIONARY) > unpacked:
            raise ValueError("a page says to have more values than its column")
        yield header
        values += count
        start += length + packed


def _count(header: dict[int, Any], field: int) -> int:
    inner = header.get(field, {_VALUES: 0})
    count = inner.get(_VALUES) if isinstance(inner, dict) else None
    if not isinstance(count, int) or count < 0:
        raise ValueError("the header of a page has no number of values")
    return count


def _check_encoding(path: Path, name: str, header: dict[int, Any]) -> None:
    data, newer = header.get(_DATA, {}), header.get(_DATA_V2, {})
    encoding = _GROWING.get(data.get(2)) or _GROWING.get(newer.get(4))
    if encoding:
        raise DataError(
            f"{path}: column {name!r} has texts encoded as {encoding}, which are not read: write the file with "
            "another encoding (pandas' to_parquet does)"
        )


def _read_struct(content: bytes, at: int, depth: int) -> tuple[dict[int, Any], int]:
    """The fields of a struct by number, and where it ends."""
    fields: dict[int, Any] = {}
    number = 0
    while kind_and_step := _byte(content, at):
        at, step, kind = at + 1, kind_and_step >> 4, kind_and_step & 15
        if not step:
            step, at = _read_integer(content, at)
            number = 0
        number += step
        if number in fields:  # other readers may take the other one
            raise ValueError("a field is there twice")
        fields[number], at = (None, at) if kind in (1, 2) else _read_value(content, at, kind, depth)
    return fields, at + 1


def _read_value(content: bytes, at: int, kind: int, depth: int) -> tuple[Any, int]:
    """A value of one of Thrift's types, and where it ends. Whole numbers, structs and lists of these are kept."""
    if depth > _DEPTH:
        raise ValueError("a struct has too many layers")
    match kind:
        case 1 | 2 | 3:  # a boolean in a list, a byte
            return None, at + 1
        case 4 | 5 | 6:
            return _read_integer(content, at)
        case 7:
            return None, at + 8
        case 8:
            length, at = _read_varint(content, at)
            return None, at + length
        case 9 | 10:
            size, each = _byte(content, at) >> 4, _byte(content, at) & 15
            size, at = _read_varint(content, at + 1) if size == 15 else (size, at + 1)
            if size > len(content):  # each is a byte at least
                raise ValueError("a list does not end")
            values = []
            for _ in range(size):
                value, at = _read_value(content, at, each, depth + 1)
                values.append(value)
            return values, at
        case 12:
            return _read_struct(content, at, depth + 1)
        case _:
            raise ValueError("a value has no type")


def _read_integer(content: bytes, at: int) -> tuple[int, int]:
    number, at = _read_varint(content, at)
    return (number >> 1) ^ -(number & 1), at


def _read_varint(content: bytes, at: int) -> tuple[int, int]:
    number = 0
    for shift in range(0, 70, 7):
        byte = _byte(content, at)
        at += 1
        number |= (byte & 127) << shift
        if byte < 128:
            return number, at
    raise ValueError("a number does not end")


def _byte(content: bytes, at: int) -> int:
    if at >= len(content):
        raise ValueError("a struct does not end")
    return content[at]
