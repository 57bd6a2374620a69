"""Valid files to start from, and containers that are valid around contents that are not."""

import functools
import gzip
import io
import json
import struct
import tarfile
import zipfile
import zlib
from typing import Any

import numpy as np

ROWS = 24


def _numbers() -> np.ndarray:
    return np.random.default_rng(0).normal(size=(ROWS, 2)).astype(np.float32)


@functools.cache
def npz() -> bytes:
    file = io.BytesIO()
    np.savez_compressed(file, x=_numbers(), y=np.arange(ROWS) % 2)
    return file.getvalue()


def npz_of(members: dict[str, bytes]) -> bytes:
    """An archive of anything, with right checksums."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return file.getvalue()


def npy(header: str, content: bytes, version: tuple[int, int] = (1, 0)) -> bytes:
    """An array with any header."""
    text = header.encode("latin1", "replace") + b"\n"
    return b"\x93NUMPY" + bytes(version) + struct.pack("<H" if version == (1, 0) else "<I", len(text)) + text + content


def table_of(header: list[str], rows: list[list[str]], separator: str = ",") -> bytes:
    return "\n".join(separator.join(row) for row in [header, *rows]).encode("utf-8", "replace")


@functools.cache
def csv() -> bytes:
    rows = [[f"{i / 3:.3f}", ("red", "blue")[i % 2], f"2020-01-{i + 1:02}", str(i % 2)] for i in range(ROWS)]
    return table_of(["a", "b", "time", "target"], rows)


@functools.cache
def parquet() -> bytes:
    import pandas as pd

    file = io.BytesIO()
    pd.read_csv(io.BytesIO(csv())).to_parquet(file, compression="zstd")
    return file.getvalue()


@functools.cache
def _workbook() -> dict[str, bytes]:
    import openpyxl

    book, file = openpyxl.Workbook(), io.BytesIO()
    for line in csv().decode().splitlines():
        book.worksheets[0].append(line.split(","))
    book.save(file)
    with zipfile.ZipFile(file) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def xlsx(**replaced: bytes) -> bytes:
    """A workbook, of which some members are replaced."""
    paths = {"sheet": "xl/worksheets/sheet1.xml", "book": "xl/workbook.xml", "texts": "xl/sharedStrings.xml"}
    return npz_of(_workbook() | {paths[name]: content for name, content in replaced.items()})


def sheet_of(cells: list[tuple[str, str, str]]) -> bytes:
    """A sheet with cells of any reference, type and value, a row each."""
    row = '<row r="{}"><c r="{}" t="{}"><v>{}</v></c></row>'
    rows = "".join(row.format(i + 1, *cell) for i, cell in enumerate(cells))
    return (
        '<worksheet xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main">'
        f"<sheetData>{rows}</sheetData></worksheet>"
    ).encode("utf-8", "replace")


def png_of(header: bytes, pixels: bytes, extra: list[tuple[bytes, bytes]]) -> bytes:
    """An image of any chunks, with right checksums."""

    def chunk(name: bytes, content: bytes) -> bytes:
        return struct.pack(">I", len(content)) + name + content + struct.pack(">I", zlib.crc32(name + content))

    between = b"".join(chunk(name, content) for name, content in extra)
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", header)
        + between
        + chunk(b"IDAT", zlib.compress(pixels))
        + chunk(b"IEND", b"")
    )


@functools.cache
def png() -> bytes:
    return png_of(struct.pack(">IIBBBBB", 4, 4, 8, 0, 0, 0, 0), bytes(20), [])


def idx_of(magic: int, shape: list[int], content: bytes) -> bytes:
    return gzip.compress(struct.pack(f">{len(shape) + 1}I", magic, *shape) + content)


def tar_of(members: list[tuple[str, bytes, bytes]]) -> bytes:
    """A compressed tar archive of members of any name, type and content."""
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w:gz") as archive:
        for name, kind, content in members:
            member = tarfile.TarInfo(name)
            member.type, member.size = kind, len(content)
            archive.addfile(member, io.BytesIO(content))
    return file.getvalue()


def safetensors_of(header: Any, content: bytes) -> bytes:
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + content


def mutate(content: bytes, edits: list[tuple[str, float, bytes]]) -> bytes:
    """Change bytes, cut some out, repeat some, or put some in, at places between 0 and 1."""
    for kind, place, piece in edits:
        at = int(place * len(content))
        content = _edit(kind, content[:at], content[at:], piece)
    return content


def _edit(kind: str, before: bytes, after: bytes, piece: bytes) -> bytes:
    return {
        "replace": before + piece + after[len(piece) :],
        "insert": before + piece + after,
        "cut": before + after[16 * len(piece) :],
        "repeat": before + after[: len(piece)] + after,
        "truncate": before,
    }[kind]
