"""Files that ask for more than any machine has, most of them a few kilobytes long."""

import gzip
import io
import os
import socket
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path

import numpy as np

_CHUNK = 1 << 20


def deflated(byte: bytes, megabytes: int) -> bytes:
    """A deflate stream that unpacks to one byte again and again. One block is compressed once, and repeated."""
    compressor = zlib.compressobj(9, zlib.DEFLATED, -15)
    block = compressor.compress(byte * _CHUNK) + compressor.flush(zlib.Z_FULL_FLUSH)
    return block * megabytes + zlib.compressobj(9, zlib.DEFLATED, -15).flush()


def gzipped(byte: bytes, megabytes: int, first: bytes = b"") -> bytes:
    header = gzip.compress(first) if first else b""
    return header + b"\x1f\x8b\x08\0\0\0\0\0\0\xff" + deflated(byte, megabytes) + struct.pack("<II", 0, 0)


def zipped(members: dict[str, tuple[bytes, int]]) -> bytes:
    """A zip archive of deflate streams with the sizes that they are said to unpack to, below 4 GB."""
    body, directory = b"", b""
    for name, (content, size) in members.items():
        fields = struct.pack("<HHHHHIIIHH", 20, 0, 8, 0, 0, 0, len(content), size, len(name), 0)
        directory += b"PK\x01\x02" + struct.pack("<H", 20) + fields + struct.pack("<HHHII", 0, 0, 0, 0, len(body))
        directory += name.encode()
        body += b"PK\x03\x04" + fields + name.encode() + content
    end = struct.pack("<HHHHIIH", 0, 0, len(members), len(members), len(directory), len(body), 0)
    return body + directory + b"PK\x05\x06" + end


def npy_header(shape: tuple[int, ...], descr: str = "|u1") -> bytes:
    file = io.BytesIO()
    np.lib.format.write_array_header_1_0(file, {"descr": descr, "fortran_order": False, "shape": shape})
    return file.getvalue()


def npz_of_zeros(path: Path) -> None:
    """4 GB of zeros, all of which are there."""
    header = npy_header((3996 << 20, 1))
    compressor = zlib.compressobj(9, zlib.DEFLATED, -15)
    start = compressor.compress(header) + compressor.flush(zlib.Z_FULL_FLUSH)
    member = (start + deflated(b"\0", 3996), len(header) + (3996 << 20))
    path.write_bytes(zipped({"x.npy": member, "y.npy": member}))


def npz_with_a_header_that_lies(path: Path) -> None:
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("x.npy", npy_header((2**40, 2**20)) + bytes(100))
        archive.writestr("y.npy", npy_header((2**40,)) + bytes(100))


def npz_of_many_members(path: Path) -> None:
    entry = b"PK\x01\x02" + struct.pack("<HHHHHHIIIHHHHHII", 20, 20, 0, 0, 0, 0, 0, 0, 0, 4, 0, 0, 0, 0, 0, 0) + b"x.np"
    directory = entry * 60_000
    end = struct.pack("<HHHHIIH", 0, 0, 65535, 65535, len(directory), 0, 0)
    path.write_bytes(directory + b"PK\x05\x06" + end)


def table_with_holes(path: Path) -> None:
    """A file of 100 GB that takes no space."""
    with path.open("wb") as file:
        file.write(b"a,target\n1,b\n")
        file.truncate(100 << 30)


def table_of_empty_lines(path: Path) -> None:
    path.write_bytes(gzipped(b"\n", 10_000, b"a,target\n1,b\n"))


def table_of_one_line(path: Path) -> None:
    path.write_bytes(gzipped(b"0", 10_000, b"a,target\n"))


def table_of_short_lines(path: Path) -> None:
    """Rows of one cell, which have 9,000 cells each in memory."""
    path.write_text(",".join(f"c{i}" for i in range(8_999)) + ",target\n" + "1,2\n" * 20 + "1\n" * 1_000_000)


def table_of_columns(path: Path) -> None:
    path.write_text("," * 500_000 + "\n" + "1," * 500_000 + "\n")


def table_of_one_number(path: Path) -> None:
    """A text for which a pattern with two ways to read digits takes minutes."""
    path.write_text("a,target\n" + "".join(f"{'1' * 200_000}x,{i % 2}\n" for i in range(20)))


def parquet_of_nothing(path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet

    pa.parquet.write_table(pa.table({"target": pa.nulls(20_000_000)}), path)


def parquet_of_one_text(path: Path) -> None:
    """A text of 10 MB, 20,000 times: stored once."""
    import pyarrow as pa
    import pyarrow.parquet

    texts = pa.DictionaryArray.from_arrays(pa.array(np.zeros(20_000, np.int32)), ["a" * 10_000_000])
    table = pa.table({"a": texts, "target": pa.array(np.zeros(20_000))})
    pa.parquet.write_table(table, path, store_schema=False, write_statistics=False)


def parquet_page_that_lies(path: Path) -> None:
    """A page that unpacks to 1.9 GB, in a column that says to have 3 MB."""
    import pyarrow as pa
    import pyarrow.parquet

    rows, megabytes = 400_000, 1900
    values = np.random.default_rng(0).normal(size=rows)
    schema = pa.schema([pa.field("target", pa.float64()), pa.field("a", pa.float64(), nullable=False)])
    table = pa.table({"target": np.arange(rows) % 2.0, "a": values}, schema=schema)
    pa.parquet.write_table(table, path, compression="gzip", use_dictionary=False, data_page_size=1 << 30)
    start = pa.parquet.ParquetFile(path).metadata.row_group(0).column(1).data_page_offset
    page = gzipped(b"\0", megabytes)
    with path.open("r+b") as file:
        file.seek(start)
        file.write(page_header(megabytes << 20, len(page), rows) + page)


def page_header(unpacked: int, packed: int, values: int, encoding: int = 0) -> bytes:
    """The header of a data page, in Thrift's compact protocol."""

    def number(value: int) -> bytes:
        value, digits = value << 1, b""
        while value > 127:
            digits, value = digits + bytes([value & 127 | 128]), value >> 7
        return digits + bytes([value])

    counts = b"".join(b"\x15" + number(value) for value in (values, encoding, 3, 3))
    return b"\x15\0\x15" + number(unpacked) + b"\x15" + number(packed) + b"\x2c" + counts + b"\0\0"


def parquet_of_prefixes(path: Path) -> None:
    """1,000 texts of 1 MB, each of which is stored as what differs from the text before it."""
    import pyarrow as pa
    import pyarrow.parquet

    schema = pa.schema([("target", pa.float64()), ("a", pa.string())])
    encodings = {"a": "DELTA_BYTE_ARRAY", "target": "PLAIN"}
    options = {"use_dictionary": False, "write_statistics": False, "store_schema": False, "data_page_size": 1 << 30}
    texts = pa.array(["a" * 1_000_000 + str(i) for i in range(50)])
    batch = pa.record_batch({"target": np.arange(50.0) % 2, "a": texts})
    with pa.parquet.ParquetWriter(path, schema, column_encoding=encodings, **options) as writer:
        for _ in range(20):
            writer.write_batch(batch)


def parquet_of_numbers(path: Path) -> None:
    """The largest table that is read, of 0 and 1 in columns of integers, decimals and floats: 1 MB."""
    import pyarrow as pa
    import pyarrow.parquet

    rows = 4_990_000
    bits = pa.array(np.arange(rows) % 2)
    decimals, floats = bits.cast(pa.decimal128(21, 2)), bits.cast(pa.float64())
    table = pa.table({"target": bits, "a": decimals, "b": floats, "c": floats})
    pa.parquet.write_table(table, path, store_schema=False)


def _workbook(path: Path, rows: str) -> None:
    import openpyxl

    book = openpyxl.Workbook()
    book.save(path)
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    members["xl/worksheets/sheet1.xml"] = (
        '<?xml version="1.0"?><worksheet xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main">'
        f"<sheetData>{rows}</sheetData></worksheet>"
    ).encode()
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)


def workbook_with_a_far_row(path: Path) -> None:
    _workbook(path, '<row r="1"><c r="A1"><v>1</v></c></row><row r="999999999999"><c><v>1</v></c></row>')


def workbook_with_far_cells(path: Path) -> None:
    _workbook(path, "".join(f'<row r="{i}"><c r="MZZ{i}"><v>1</v></c></row>' for i in range(1, 6_000)))


def workbook_of_spaces(path: Path) -> None:
    path.write_bytes(zipped({"xl/worksheets/sheet1.xml": (deflated(b" ", 3000), 3000 << 20)}))


def _png(width: int, height: int) -> bytes:
    def chunk(name: bytes, content: bytes) -> bytes:
        return struct.pack(">I", len(content)) + name + content + struct.pack(">I", zlib.crc32(name + content))

    header = struct.pack(">IIBBBBB", width, height, 1, 0, 0, 0, 0)
    rows = zlib.compress(bytes(10_000))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", rows) + chunk(b"IEND", b"")


def folder_of_large_images(path: Path) -> None:
    for name in "ab":
        (path / name).mkdir(parents=True)
        for i in range(10):
            (path / name / f"{i}.png").write_bytes(_png(9_000, 9_000))


def folder_of_one_image(path: Path) -> None:
    for name in "ab":
        (path / name).mkdir(parents=True)
        (path / name / "0.png").write_bytes(_png(2**31 - 1, 2**31 - 1))


def folder_with_a_pipe(path: Path) -> None:
    (path / "a").mkdir(parents=True)
    os.mkfifo(path / "a" / "0.png")


def folder_with_a_device(path: Path) -> None:
    (path / "a").mkdir(parents=True)
    (path / "a" / "0.png").symlink_to("/dev/zero")


def folder_with_a_socket(path: Path) -> None:
    (path / "a").mkdir(parents=True)
    before = Path.cwd()
    os.chdir(path / "a")  # the path of a socket must be short
    try:
        with socket.socket(socket.AF_UNIX) as listening:
            listening.bind("0.png")
    finally:
        os.chdir(before)


def pipe(path: Path) -> None:
    os.mkfifo(path)


def device(path: Path) -> None:
    path.symlink_to("/dev/zero")


def folder(path: Path) -> None:
    path.mkdir()


FILES: dict[str, tuple[Callable[[Path], None], str]] = {
    "zeros.npz": (npz_of_zeros, "CHARAX_MAX_BYTES"),
    "lies.npz": (npz_with_a_header_that_lies, "CHARAX_MAX_BYTES"),
    "many.npz": (npz_of_many_members, "CHARAX_MAX_MEMBERS"),
    "holes.csv": (table_with_holes, "CHARAX_MAX_BYTES"),
    "lines.csv.gz": (table_of_empty_lines, "CHARAX_MAX_LINES"),
    "line.csv.gz": (table_of_one_line, "the line has more than"),
    "short.csv": (table_of_short_lines, "CHARAX_MAX_CELLS"),
    "columns.csv": (table_of_columns, "CHARAX_MAX_COLUMNS"),
    "number.csv": (table_of_one_number, ""),
    "nothing.parquet": (parquet_of_nothing, "CHARAX_MAX_LINES"),
    "text.parquet": (parquet_of_one_text, ""),
    "page.parquet": (parquet_page_that_lies, "CHARAX_MAX_MEMORY"),
    "prefixes.parquet": (parquet_of_prefixes, "DELTA_BYTE_ARRAY"),
    "numbers.parquet": (parquet_of_numbers, ""),
    "row.xlsx": (workbook_with_a_far_row, "where every sheet ends"),
    "cells.xlsx": (workbook_with_far_cells, "CHARAX_MAX_CELLS"),
    "spaces.xlsx": (workbook_of_spaces, "CHARAX_MAX_BYTES"),
    "large": (folder_of_large_images, "CHARAX_MAX_PIXELS"),
    "one": (folder_of_one_image, "0.png"),
    "pipes": (folder_with_a_pipe, "is a pipe, not a file"),
    "devices": (folder_with_a_device, "is a device, not a file"),
    "sockets": (folder_with_a_socket, "is a socket, not a file"),
    "pipe.csv": (pipe, "is a pipe, not a file"),
    "device.npz": (device, "is a device, not a file"),
    "folder.npz": (folder, "folder.npz"),
}
"""How each file is made, and a phrase of the sentence by which it is refused; it is read if there is none."""


def tar_with_holes(path: Path) -> None:
    """A member of 1 TB in a few hundred bytes, as GNU tar stores files with holes."""
    member = tarfile.TarInfo("cifar-10-batches-bin/data_batch_1.bin")
    member.type, member.size = tarfile.GNUTYPE_SPARSE, 0
    header = bytearray(member.tobuf(tarfile.GNU_FORMAT))
    header[386:398] = b"%011o\0" % 0  # the only piece, at 0, of length 0
    header[398:410] = b"%011o\0" % 0
    header[483:495] = b"%011o\0" % (2**33 - 1)  # the real size
    header[148:156] = b" " * 8
    header[148:156] = b"%06o\0 " % sum(header)
    path.write_bytes(gzip.compress(bytes(header) + bytes(1024)))


def tar_of_many_members(path: Path) -> None:
    path.write_bytes(gzip.compress(tarfile.TarInfo("x").tobuf() * 100_000 + bytes(1024), 1))


def tar_of_zeros(path: Path) -> None:
    member = tarfile.TarInfo("data_batch_1.bin")
    member.size = 2**33 - 1
    path.write_bytes(gzipped(b"\0", 8000, member.tobuf()))


def matrix_of_zeros(path: Path) -> None:
    """A matrix of 32 x 32 x 3 x 10^7 bytes, compressed."""
    element = lambda kind, content: struct.pack("<II", kind, len(content)) + content + bytes(-len(content) % 8)
    dims = element(5, struct.pack("<iiii", 32, 32, 3, 10_000_000))
    matrix = element(6, struct.pack("<II", 9, 0)) + dims + struct.pack("<HH4s", 1, 1, b"X") + b""
    matrix += struct.pack("<II", 2, 30_720_000_000 & 0xFFFFFFFF)
    stream = zlib.compress(struct.pack("<II", 14, len(matrix) + 2**31) + matrix + bytes(1 << 20))
    header = b"MATLAB 5.0 MAT-file".ljust(124) + struct.pack("<H2s", 0x0100, b"IM")
    path.write_bytes(header + struct.pack("<II", 15, len(stream)) + stream)


def lying_matrix(path: Path) -> None:
    """A matrix that says to be one number, and unpacks to 4 GB."""
    element = lambda kind, content: struct.pack("<II", kind, len(content)) + content + bytes(-len(content) % 8)
    matrix = element(6, struct.pack("<II", 6, 0)) + element(5, struct.pack("<ii", 1, 1))
    matrix += struct.pack("<HH4s", 1, 1, b"X") + struct.pack("<II", 9, 2**32 - 8)
    packer = zlib.compressobj(1)
    stream = packer.compress(struct.pack("<II", 14, 2**32 - 8) + matrix)
    stream += b"".join(packer.compress(bytes(1 << 24)) for _ in range(256)) + packer.flush()
    header = b"MATLAB 5.0 MAT-file".ljust(124) + struct.pack("<H2s", 0x0100, b"IM")
    path.write_bytes(header + struct.pack("<II", 15, len(stream)) + stream)


def images_of_zeros(path: Path) -> None:
    path.write_bytes(gzipped(b"\0", 8000, struct.pack(">IIII", 2051, 10**7, 28, 28)))


SOURCES: dict[str, tuple[str, str, Callable[[Path], None], str]] = {
    "holes": ("cifar10", "cifar-10-binary.tar.gz", tar_with_holes, "has holes"),
    "members": ("cifar10", "cifar-10-binary.tar.gz", tar_of_many_members, "CHARAX_MAX_MEMBERS"),
    "zeros": ("cifar10", "cifar-10-binary.tar.gz", tar_of_zeros, "CHARAX_MAX_BYTES"),
    "matrix": ("svhn", "train_32x32.mat", matrix_of_zeros, "CHARAX_MAX_BYTES"),
    "lying matrix": ("svhn", "train_32x32.mat", lying_matrix, "CHARAX_MAX_BYTES"),
    "images": ("mnist", "train-images-idx3-ubyte.gz", images_of_zeros, "CHARAX_MAX_BYTES"),
}
"""Files of named data sets: the data set, the file, how it is made, and a phrase of the sentence."""
