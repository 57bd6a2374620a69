"""Odd files of data: random damage, and valid containers of wrong contents."""

import io
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from hypothesis import strategies as st

from charax.data import (
    DATASETS,
    SeriesColumns,
    load_dataset,
    load_density_data,
    load_regression,
    load_series,
    load_solution,
    read_forecast_times,
    read_inputs,
    read_points,
)
from tests.fuzz import containers


class Target(NamedTuple):
    """One kind of odd file."""

    make: st.SearchStrategy[Any]
    """What is drawn."""
    write: Callable[[Path, Any], tuple[Callable[[], object], str]]
    """Writes it into a folder; returns how it is read, and what a refusal names."""
    cases: int
    """How many there are in the fast tests."""


EDITS = st.lists(
    st.tuples(
        st.sampled_from(["replace", "insert", "cut", "repeat", "truncate"]),
        st.floats(0, 1, exclude_max=True),
        st.binary(min_size=1, max_size=8) | st.sampled_from([b"\xff" * 8, b"\0" * 8, b"\x7f\xff\xff\xff", b"\n", b","]),
    ),
    min_size=1,
    max_size=4,
)
CELLS_OF_TEXT = (
    *("", " ", "0", "1", "-1", "1,5", "1.234,5", "1e999", "-inf", "nan", "NA", "?", "true", "FALSE", "2020-01-31"),
    *("01/02/2020", "9999-99-99", "1" * 400, "9" * 5000, "\u0661", "\u22121", '"', '""', "'", "=1/0", "\0", "\ufeff"),
    *("\r", "a\rb", "x", "y", "0x10", "1_000", "½", "é" * 50, "{}", "<b>", "../..", "1970-01-01T00:00:00+99:99"),
)
ODD = st.sampled_from(CELLS_OF_TEXT)
COLUMN_NAMES = st.sampled_from(
    ["a", "b", "x", "x1", "x2", "t", "u", "u1", "series", "time", "target", "", "a ", "1", '"']
)
SERIES = SeriesColumns("series", "time", ("a",))
READERS: dict[str, Callable[[Path], object]] = {
    "dataset": lambda path: load_dataset(str(path)),
    "density": lambda path: load_density_data(str(path)),
    "labelled density": lambda path: load_density_data(str(path), labelled=True),
    "regression": lambda path: load_regression(str(path)),
    "series": lambda path: load_series(str(path)),
    "solution": lambda path: load_solution(str(path)),
    "inputs": lambda path: read_inputs(path, shape=(2,), columns=("a", "target")),
    "images": lambda path: read_inputs(path, shape=(4, 4, 1), max_value=255.0),
    "points": lambda path: read_points(path, ("x",)),
    "forecast times": lambda path: read_forecast_times(path, SERIES),
}
READER = st.sampled_from(list(READERS))


def a_file(name: str, content: st.SearchStrategy[bytes], cases: int) -> Target:
    """A file that any of the readers may be given."""

    def write(folder: Path, drawn: tuple[bytes, str]) -> tuple[Callable[[], object], str]:
        (folder / name).write_bytes(drawn[0])
        return lambda: READERS[drawn[1]](folder / name), name

    return Target(st.tuples(content, READER), write, cases)


def damaged(content: Callable[[], bytes]) -> st.SearchStrategy[bytes]:
    return st.builds(containers.mutate, st.builds(content), EDITS)


HEADERS = st.one_of(
    st.text(max_size=40),
    st.builds(
        "{{'descr': {}, 'fortran_order': {}, 'shape': {}, }}".format,
        st.sampled_from(
            ["'<f4'", "'|O'", "'<U9999999'", "'>f8'", "'<M8[ns]'", "[('a', '<f4')]", "'<c16'", "''", "3", "None"]
        ),
        st.sampled_from(["False", "True", "0", "'x'"]),
        st.sampled_from(
            ["(24, 2)", "(24,)", "()", "(0, 2)", "(-24, -2)", "(24, 2.0)", "(10**9, 10**9)", f"({2**61}, 8)", "None"]
        ),
    ),
)
ARRAYS = st.builds(
    containers.npy,
    HEADERS,
    st.sampled_from([b"", bytes(24), bytes(96), bytes(192), bytes(384), b"\xff" * 192]),
    st.sampled_from([(1, 0), (2, 0), (3, 0), (9, 9)]),
)
ARCHIVES = st.builds(
    containers.npz_of,
    st.dictionaries(
        st.sampled_from(["x.npy", "y.npy", "x", "../x.npy", "a.npy", "t.npy", "u.npy", ".npy"]), ARRAYS, max_size=4
    ),
)
TABLES = st.builds(
    containers.table_of,
    st.lists(COLUMN_NAMES, min_size=1, max_size=4),
    st.lists(st.lists(ODD, min_size=1, max_size=4), max_size=14),
    st.sampled_from([",", ";", "\t", "|", ", "]),
)
PLAIN = st.sampled_from([cell for cell in CELLS_OF_TEXT if not set(cell) & set('\r"\0,')])


def repeated_rows(header: list[str], cells: list[list[str]]) -> bytes:
    """Thirty rows, of which every column repeats a few odd cells."""
    rows = [[column[i % len(column)] for column in cells[: len(header)]] for i in range(30)]
    return containers.table_of(header, rows)


REPEATED = st.builds(
    repeated_rows,
    st.sampled_from(
        [["a", "target"], ["a", "b", "target"], ["x", "t", "u"], ["x1", "x2", "t", "u"], ["series", "time", "a"]]
    ),
    st.lists(st.lists(PLAIN, min_size=1, max_size=8), min_size=4, max_size=4),
)
ODD_NUMBERS = (0, 1, -1, 0.5, 255, 256, 1e30, -1e30, 1e308, float("inf"), float("nan"), 2**31, 2**63, 2**64 - 1)
DTYPES = ("<f4", ">f8", "<f2", "<i8", "|u1", "<u8", "|b1", "<U3", "<c16", "<M8[s]", "|S4", "<i2")
SHAPES = (
    (24, 2),
    (24, 1),
    (24,),
    (24, 4, 4),
    (24, 4, 4, 1),
    (24, 1, 8, 8),
    (12, 2),
    (1, 2),
    (0, 2),
    (24, 0),
    (24, 2, 2),
)


def odd_array(dtype: str, shape: tuple[int, ...], numbers: list[float]) -> bytes:
    """A valid array of odd values."""
    with np.errstate(all="ignore"):
        count = int(np.prod(shape))
        values = np.resize(np.asarray(numbers, float), count) if numbers else np.arange(count) % 2
        if dtype == "<M8[s]":
            values = np.nan_to_num(values, posinf=0, neginf=0).clip(-1e9, 1e9).astype(np.int64)
        array = values.astype(dtype).reshape(shape)
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


VALUES = st.builds(
    odd_array, st.sampled_from(DTYPES), st.sampled_from(SHAPES), st.lists(st.sampled_from(ODD_NUMBERS), max_size=3)
)
ROWS = st.builds(odd_array, st.sampled_from(DTYPES), st.just((24,)), st.lists(st.sampled_from(ODD_NUMBERS), max_size=3))
ODD_VALUES = st.one_of(
    st.builds(lambda x, y: containers.npz_of({"x.npy": x, "y.npy": y}), VALUES, ROWS),
    st.builds(lambda x, t, u: containers.npz_of({"x.npy": x, "t.npy": t, "u.npy": u}), ROWS, ROWS, ROWS),
    st.builds(
        lambda names, t, a: containers.npz_of({"series.npy": names, "time.npy": t, "a.npy": a}), ROWS, ROWS, VALUES
    ),
)


def arrow_table(drawn: list[tuple[str, str]]) -> bytes:
    """A Parquet file of columns of any type."""
    import pyarrow as pa
    import pyarrow.parquet

    make = {
        "int": lambda: pa.array(range(24)),
        "bool": lambda: pa.array([True, False] * 12),
        "text": lambda: pa.array(["a", None] * 12),
        "list": lambda: pa.array([[1], []] * 12),
        "struct": lambda: pa.array([{"a": 1}] * 24),
        "null": lambda: pa.nulls(24),
        "binary": lambda: pa.array([b"\xff"] * 24),
        "decimal": lambda: pa.array([1] * 24, pa.decimal128(38, 3)),
        "date": lambda: pa.array([0, 2**31 - 1] * 12, pa.date32()),
        "time": lambda: pa.array([0] * 24, pa.time64("ns")),
        "timestamp": lambda: pa.array([0, 2**62] * 12, pa.timestamp("ms", "UTC")),
        "duration": lambda: pa.array([2**62] * 24, pa.duration("s")),
        "half": lambda: pa.array([0.5] * 24).cast(pa.float16()),
        "unsigned": lambda: pa.array([2**64 - 1] * 24, pa.uint64()),
        "category": lambda: pa.array(["a", "b"] * 12).dictionary_encode(),
        "empty": lambda: pa.array([float("nan")] * 24),
    }
    file = io.BytesIO()
    columns = [make[kind]() for _, kind in drawn]
    pa.parquet.write_table(pa.Table.from_arrays(columns, names=[name for name, _ in drawn]), file)
    return file.getvalue()


KINDS = st.sampled_from(
    (
        *("int", "bool", "text", "list", "struct", "null", "binary", "decimal", "date", "time", "timestamp"),
        *("duration", "half", "unsigned", "category", "empty"),
    )
)
COLUMNS = st.builds(arrow_table, st.lists(st.tuples(COLUMN_NAMES, KINDS), min_size=1, max_size=3))
CELLS = st.tuples(
    st.sampled_from(["A1", "B1", "A2", "C3", "B4", "XFD1048576", "A0", "", "1A", "A99999999999999999999"]),
    st.sampled_from(["n", "n", "s", "b", "str", "str", "e", "odd"]),
    st.sampled_from(["0", "1", "2", "-1", "99999999", "x", "", "1e999", "NaN", "target", "true", "&amp;"]),
)
SHEETS = st.one_of(
    st.builds(lambda cells: containers.xlsx(sheet=containers.sheet_of(cells)), st.lists(CELLS, max_size=6)),
    st.builds(lambda content: containers.xlsx(book=content), st.sampled_from([b"", b"<a/>", b"<a>", b"\xff"])),
    st.builds(lambda content: containers.xlsx(texts=content), st.sampled_from([b"", b"<sst/>", b"<sst><si/></sst>"])),
)
PICTURES = st.builds(
    containers.png_of,
    st.builds(
        struct.Struct(">IIBBBBB").pack,
        st.sampled_from([4, 4, 4, 1, 0, 10_000, 2**31 - 1]),
        st.sampled_from([4, 4, 4, 1, 10_000, 2**31 - 1]),
        st.sampled_from([8, 8, 8, 1, 2, 16, 99]),
        st.sampled_from([0, 2, 3, 4, 6, 9]),
        *[st.sampled_from([0, 0, 0, 0, 1])] * 3,
    ),
    st.builds(
        lambda byte, size: bytes([0]) + bytes([byte]) * size, st.integers(0, 255), st.sampled_from([9, 19, 67, 200])
    ),
    st.lists(
        st.tuples(st.sampled_from([b"tRNS", b"PLTE", b"gAMA", b"iCCP", b"zTXt", b"IDAT"]), st.binary(max_size=9)),
        max_size=2,
    ),
)


def a_folder_of_images(content: st.SearchStrategy[bytes], cases: int) -> Target:
    def write(folder: Path, drawn: tuple[bytes, str]) -> tuple[Callable[[], object], str]:
        for name in "ab":
            (folder / "images" / name).mkdir(parents=True)
            for i in range(3):
                (folder / "images" / name / f"{i}.png").write_bytes(containers.png())
        (folder / "images" / "b" / "2.png").write_bytes(drawn[0])
        return lambda: READERS[drawn[1]](folder / "images"), "images"

    return Target(st.tuples(content, st.sampled_from(["dataset", "density", "images"])), write, cases)


def a_source(source: str, file: str, content: st.SearchStrategy[bytes], cases: int) -> Target:
    def write(folder: Path, drawn: bytes) -> tuple[Callable[[], object], str]:
        for name in DATASETS[source].files:
            (folder / name).touch()
        (folder / file).write_bytes(drawn)
        return lambda: DATASETS[source].read(folder), str(folder)

    return Target(content, write, cases)


IDX = st.builds(
    containers.idx_of,
    st.sampled_from([2051, 2049, 0, 2**32 - 1]),
    st.lists(st.sampled_from([0, 1, 28, 2**31, 2**32 - 1]), max_size=4),
    st.sampled_from([b"", bytes(784), bytes(10)]),
)
TARS = st.builds(
    containers.tar_of,
    st.lists(
        st.tuples(
            st.sampled_from(["data_batch_1.bin", "test_batch.bin", "../data_batch_2.bin", "x", "a" * 200]),
            st.sampled_from([b"0", b"1", b"2", b"5", b"6", b"S", b"x", b"g", b"L", b"K", b"?"]),
            st.sampled_from([b"", bytes(3073), bytes(3072), b"\xff" * 3073, b"19 GNU.sparse.major=1\n"]),
        ),
        max_size=3,
    ),
)
