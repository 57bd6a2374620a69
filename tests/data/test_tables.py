"""Tables as people have them: every kind of text file, Parquet and Excel hold the same table."""

import gzip
import importlib.util
import os
from datetime import time
from decimal import Decimal
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from charax.data import DataError, load_dataset, load_density_data, load_series, load_solution, read_inputs
from charax.data._limits import most_cells
from charax.data.files._dispatch import read_table
from charax.data.files._layout import SEPARATORS
from charax.data.files._lines import check_lines
from charax.data.files._table import Table, TableRequest

PLAIN, LABELS = TableRequest(), TableRequest(labels=("kind",))


def has(module: str) -> bool:
    return importlib.util.find_spec(module) is not None


def text_writer(separator: str, decimal: str = ".", suffix: str = ".csv", **options):
    def write(frame: pd.DataFrame, folder: Path) -> Path:
        path = folder / f"table{suffix}"
        frame.to_csv(path, sep=separator, decimal=decimal, index=False, **options)
        return path

    return write


def write_parquet(frame: pd.DataFrame, folder: Path) -> Path:
    frame.to_parquet(folder / "table.parquet")
    return folder / "table.parquet"


def write_excel(frame: pd.DataFrame, folder: Path) -> Path:
    frame.to_excel(folder / "table.xlsx", index=False)
    return folder / "table.xlsx"


WRITERS = {
    **{f"csv separated by {name}": text_writer(separator) for name, separator in SEPARATORS.items()},
    **{
        f"decimal comma separated by {name}": text_writer(separator, ",")
        for name, separator in SEPARATORS.items()
        if name != ","
    },
    "decimal comma, quoted": text_writer(",", ",", quoting=2),
    "gz": text_writer(";", ",", ".csv.gz"),
    "tsv": text_writer("\t", suffix=".tsv"),
    "tsv.gz": text_writer("\t", suffix=".TSV.GZ", compression="gzip"),
    "txt": text_writer("|", suffix=".txt"),
    "Windows line ends": text_writer(";", lineterminator="\r\n"),
    "everything quoted": text_writer(",", quoting=1),
    **({"parquet": write_parquet} if has("pyarrow") else {}),
    **({"xlsx": write_excel} if has("openpyxl") else {}),
}
# Some decimals in every number, so that a comma between digits cannot stand for thousands.
numbers = st.integers(-(10**6), 10**6).map(lambda i: (2 * i + 1) / 32)
texts = st.text(st.characters(categories=("L",)), min_size=1, max_size=5).filter(
    lambda text: text.casefold() not in ("na", "nan", "none", "null", "inf", "infinity")
)
frames = st.lists(st.tuples(numbers, st.integers(-(10**9), 10**9), texts), min_size=2, max_size=12).map(
    lambda rows: pd.DataFrame(rows, columns=["weight in g", "count", "kind"])
)


@pytest.mark.parametrize("name", WRITERS)
@settings(max_examples=15, deadline=None)
@given(frame=frames)
def test_every_kind_of_file_holds_the_same_table(tmp_path_factory, name, frame):
    table = read_table(WRITERS[name](frame, tmp_path_factory.mktemp("table")), LABELS)
    assert table.names == list(frame.columns)
    weight, count, kind = (table.column(column) for column in frame.columns)
    assert (weight.kind, count.kind, kind.kind) == ("number", "number", "text")
    np.testing.assert_array_equal(weight.values, frame["weight in g"])
    np.testing.assert_array_equal(count.values, frame["count"])
    assert [kind.categories[code] for code in kind.values] == frame["kind"].tolist()
    assert len(table.numbers) == len(frame)


@settings(max_examples=50, deadline=None)
@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=20))
def test_every_number_is_the_one_that_python_reads(tmp_path_factory, values):
    path = tmp_path_factory.mktemp("numbers") / "t.csv"
    path.write_text("a,b\n" + "".join(f"{value!r},1\n" for value in values))
    np.testing.assert_array_equal(read_table(path, TableRequest()).column("a").values, values)


# ---- layout -----------------------------------------------------------------------------------------


def read_text(tmp_path: Path, content: str | bytes, request: TableRequest = PLAIN, name: str = "t.csv") -> Table:
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return read_table(path, request)


LAYOUTS = {
    "commas in the header": ("height, cm;width, cm\n1,5;2\n3,5;4\n", ["height, cm", "width, cm"]),
    "commas in texts": ("a;b\nx, y;1\nz, w;2\n", ["a", "b"]),
    "semicolons in texts": ("a,b\nx;y,1\nz,2\n", ["a", "b"]),
    "quoted separators": ('a,b\n"x,y",1\n', ["a", "b"]),
    "quoted after a space": ('a, b\n1, "x, y"\n2, "z"\n', ["a", "b"]),
    "one column": ("a\n1\n2\n", ["a"]),
    "a byte order mark": ("\ufeffa;b\n1;2\n", ["a", "b"]),
    "an index": (",a,b\n0,1,2\n1,3,4\n", ["a", "b"]),
    "an index that was written twice": ("Unnamed: 0,a,b\n0,1,2\n", ["a", "b"]),
    "row names, as R writes them": ('"a","b"\n"1",1,2\n"2",3,4\n', ["a", "b"]),
    "a separator at the end of rows": ("a,b\n1,2,\n3,4,\n", ["a", "b"]),
    "a separator at the end of lines": ("a,b,\n1,2,\n3,4,\n", ["a", "b"]),
    "old line ends": ("a,b\r1,2\r3,4\r", ["a", "b"]),
    "a line break in the header": ('"a\nb",c\n1,2\n', ["a\nb", "c"]),
    "many columns": (
        ",".join(f"column number {i}" for i in range(3000)) + "\n" + ",".join("1" * 3000) + "\n",
        [f"column number {i}" for i in range(3000)],
    ),
}


@pytest.mark.parametrize("case", LAYOUTS)
def test_the_layout_of_a_text_file_is_found_out(tmp_path, case):
    content, names = LAYOUTS[case]
    assert read_text(tmp_path, content).names == names


def test_a_column_that_should_be_there_decides_about_the_separator(tmp_path):
    content = "a,b;target\n1,2;x\n3,4;y\n"
    assert read_text(tmp_path, content, TableRequest(expected=("target",))).names == ["a,b", "target"]
    assert read_text(tmp_path, content, TableRequest(separator=",")).names == ["a", "b;target"]
    assert read_text(tmp_path, "c,d|a;b\n1,2;3\n", TableRequest(expected=("d|a;b", "e"))).names == ["c", "d|a;b"]


def test_the_separator_can_be_said(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a,b|target\n" + "".join(f"{i},{i % 3}|{'xy'[i % 2]},\n" for i in range(30)))
    assert load_dataset(str(path), separator="|").columns == ("a,b",)
    assert load_density_data(write_rows(tmp_path / "d.txt", "a|b", "{0}|{1}"), separator="|").columns == ("a", "b")


def write_rows(path: Path, header: str, row: str) -> str:
    path.write_text(header + "\n" + "".join(row.format(i, i * i) + "\n" for i in range(30)))
    return str(path)


def test_blank_lines_and_rows_of_empty_cells_are_skipped_and_counted(tmp_path):
    table = read_text(tmp_path, 'a,b\n\n1,"x\nx"\n,\n  \n2,y\n')
    assert len(table) == 2
    assert table.numbers == [4, 7]
    assert table.row(1).endswith("t.csv, row 7")


def test_a_missing_cell_of_a_single_column_is_no_blank_line(tmp_path):
    table = read_text(tmp_path, 'a\n1\n\n""\n  \n2\nNA\n\n')
    np.testing.assert_array_equal(table.column("a").values, [1, np.nan, 2, np.nan])
    assert table.numbers == [2, 4, 6, 7]


def test_spaces_around_cells_are_not_part_of_them(tmp_path):
    table = read_text(tmp_path, "a , b\n 1 , x \n , y\n2,x\n")
    assert table.names == ["a", "b"]
    np.testing.assert_array_equal(table.column("a").values, [1, np.nan, 2])
    assert table.column("b").categories == ("x", "y")


def test_a_label_is_what_is_written_and_only_an_empty_one_is_missing(tmp_path):
    kinds = ["007", "1.0", "None", "NA", "True"]
    table = read_text(tmp_path, "kind,a\n" + "".join(f"{kind},1\n" for kind in kinds), LABELS)
    assert table.column("kind").categories == tuple(kinds)


def test_a_type_that_changes_late_in_a_large_file_is_that_of_the_whole_column(tmp_path):
    others = ",1" * 200  # so many columns that pandas infers the types of a few thousand rows at a time
    header = "a" + "".join(f",b{i}" for i in range(200))
    rows = "".join(f"{i:04d}{others}\n" for i in range(6_000))
    column = read_text(tmp_path, f"{header}\n{rows}last{others}\n").column("a")
    assert column.kind == "text"
    assert column.categories[7] == "0007"


def test_numbers_of_any_size_are_numbers(tmp_path):
    column = read_text(tmp_path, "a,b\n18446744073709551615,1\n-1,2\n1e3,3\n").column("a")
    assert column.values.tolist() == [2.0**64, -1.0, 1000.0]


def test_one_text_of_a_megabyte_is_a_text(tmp_path):
    table = read_text(tmp_path, "a,b\n" + "x" * 1_000_000 + ',1\n"y\n",2\n')
    assert [len(text) for text in table.column("a").categories] == [1_000_000, 1]
    assert table.numbers == [2, 4]


# ---- what is wrong ----------------------------------------------------------------------------------

ROWS = "".join(f"{i},x\n" for i in range(5000))
WRONG = {
    "a short row": ("a,b\n1,2\n3\n", "row 3: 1 cells where there are 2"),
    "a short row among empty cells": ("a,b\n1,\n\n3\n", "row 4: 1 cells where there are 2"),
    "a short row among quotes": ('a,b\n"1\n",\n3\n', "row 4: 1 cells where there are 2"),
    "a long first row": ("a,b\n1,2,3\n4,5\n", "row 2: 3 cells where there are 2"),
    "a long row": ("a,b\n1,2\n\n4,5,6\n", "row 4: 3 cells where there are 2"),
    "a long row after a line break": ('a,b\n"1\n",2\n4,5,6\n', "row 4: 3 cells where there are 2"),
    "a long row far down": (f"a,b\n{ROWS}1,2,3\n", "row 5002: 3 cells where there are 2"),
    "Latin letters": ("a,b\n1,é\n".encode("latin-1"), "row 2: not text in UTF-8"),
    "Latin letters far down": ((f"a,b\n{ROWS}1,é\n").encode("latin-1"), "row 5002: not text in UTF-8"),
    "UTF-16": ("a,b\n1,2\n".encode("utf-16"), "row 1: not text in UTF-8"),
    "decimals or thousands": ('a,b\n"1,234",2\n', r"row 2: column 'a' has '1,234', with decimals or thousands"),
    "thousands or decimals": ("a;b\n1,5;1.234\n2,5;2.345\n", r"row 2: column 'b' has '1\.234', with decimals"),
    "a quote that stays open": ('a,b\n1,2\n3,"4\n', "row 3: cannot be read: unexpected end of data"),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_is_wrong_with_a_text_file_is_a_sentence_with_the_row(tmp_path, case):
    content, message = WRONG[case]
    with pytest.raises(DataError, match=message):
        read_text(tmp_path, content)


def test_a_damaged_archive_is_named(tmp_path):
    whole = gzip.compress(ROWS.encode())
    for content in (b"a,b\n1,2\n", whole[:-20], whole[:50] + b"?" + whole[51:]):
        with pytest.raises(DataError, match=r"t\.csv\.gz cannot be read"):
            read_text(tmp_path, content, name="t.csv.gz")


def test_objects_in_a_column_are_refused(tmp_path):
    pytest.importorskip("pyarrow", reason="the extra charax[parquet] is not installed")
    pd.DataFrame({"a": [[1], [2, 3]]}).to_parquet(tmp_path / "t.parquet")
    with pytest.raises(DataError, match=r"column 'a' has lists"):
        read_table(tmp_path / "t.parquet", TableRequest())


def test_a_workbook_without_its_extra_names_the_command(tmp_path, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "openpyxl", None)
    (tmp_path / "t.xlsx").touch()
    with pytest.raises(DataError, match=r"pip install 'charax\[excel\]'"):
        load_dataset(str(tmp_path / "t.xlsx"))


def test_a_damaged_workbook_is_named(tmp_path):
    pytest.importorskip("openpyxl", reason="the extra charax[excel] is not installed")
    (tmp_path / "t.xlsx").write_bytes(b"PK not really")
    with pytest.raises(DataError, match=r"t\.xlsx cannot be read as an Excel workbook"):
        load_dataset(str(tmp_path / "t.xlsx"))


# ---- other readers ----------------------------------------------------------------------------------


def test_an_index_is_not_a_value_of_a_series(tmp_path):
    path = tmp_path / "s.csv"
    path.write_text(";series;time;u\n" + "".join(f"{i};a;{i},5;{i}\n" for i in range(8)))
    data = load_series(str(path))
    assert data.columns.values == ("u",)
    assert data.origins == (0.5,)


def test_a_solution_may_have_decimal_commas(tmp_path):
    path = tmp_path / "s.tsv"
    path.write_text("x\tt\tu\n" + "".join(f"{i},5\t{i}\t1\n" for i in range(10)))
    assert sorted(load_solution(str(path)).seen.x[:, 0] % 1) == [0.5] * 8


def test_inputs_are_named_by_their_lines(tmp_path):
    path = tmp_path / "new.csv"
    path.write_text("b;a\n1,5;2\n\n2,5;3\n")
    raw, names = read_inputs(path, shape=(2,), columns=("a", "b"))
    assert raw.tolist() == [[2, 1.5], [3, 2.5]]
    assert names == ["2", "4"]


def test_decimals_times_and_missing_booleans_of_parquet_are_read_by_their_values(tmp_path):
    arrow = pytest.importorskip("pyarrow", reason="the extra charax[parquet] is not installed")
    from pyarrow import parquet  # pyright: ignore[reportMissingImports]

    columns = {
        "price": arrow.array([Decimal("1.50"), None, Decimal("-2.25")]),
        "at": arrow.array([time(9, 30), time(10), None]),
        "paid": arrow.array([True, None, False]),
    }
    parquet.write_table(arrow.table(columns), tmp_path / "t.parquet")
    table = read_table(tmp_path / "t.parquet", TableRequest())
    np.testing.assert_equal(table.columns["price"].values, [1.5, np.nan, -2.25])
    times = table.columns["at"]
    assert [*(times.categories[code] for code in times.values[:2]), times.values[2]] == ["09:30:00", "10:00:00", -1]
    assert list(table.columns["paid"].missing) == [False, True, False]


def test_a_table_that_is_as_large_on_disk_may_have_more_cells_than_the_limit(tmp_path, monkeypatch):
    """21 million cells: honest ones are 42 MB of text; short lines would take as much memory for a third of that."""
    honest, short = tmp_path / "honest.csv", tmp_path / "short.csv"
    honest.write_bytes(b"a,b,c\n" + b"0,0,0\n" * 7_000_000)
    short.write_bytes(b"a,b,c\n" + b"0\n" * 7_000_000)
    check_lines(honest, 3)
    with pytest.raises(DataError, match=r"more than 20,000,000 cells, the limit: set CHARAX_MAX_CELLS"):
        check_lines(short, 3)
    monkeypatch.setenv("CHARAX_MAX_CELLS", "20000000")
    with pytest.raises(DataError, match="CHARAX_MAX_CELLS"):
        check_lines(honest, 3)


def test_the_memory_of_the_machine_bounds_the_cells_of_any_table(tmp_path, monkeypatch):
    (tmp_path / "large.csv").write_bytes(b"0,0,0\n" * 10_000_000)
    assert most_cells(tmp_path / "large.csv") == 30_000_000
    page = os.sysconf("SC_PAGE_SIZE")
    monkeypatch.setattr(os, "sysconf", {"SC_PAGE_SIZE": page, "SC_PHYS_PAGES": 2 * 10**9 // page}.__getitem__)
    assert 24_900_000 < most_cells(tmp_path / "large.csv") <= 25_000_000


def test_a_footer_of_parquet_that_would_end_the_process_is_refused(tmp_path):
    """pyarrow does not survive a column whose statistics do not suit the schema, as one byte may make them."""
    arrow = pytest.importorskip("pyarrow", reason="the extra charax[parquet] is not installed")
    from pyarrow import parquet  # pyright: ignore[reportMissingImports]

    path = tmp_path / "table.parquet"
    parquet.write_table(arrow.table({"a": [1.0, None, 2.0], "b": ["x", None, "y"]}), path)
    content = path.read_bytes()
    footer = len(content) - 8 - int.from_bytes(content[-8:-4], "little")
    reasons = []
    for at in range(footer, footer + 60):
        path.write_bytes(content[:at] + b"\x2a" + content[at + 1 :])
        try:
            read_table(path, TableRequest())
        except DataError as error:
            reasons.append(str(error))
    assert any("histogram size mismatch" in reason for reason in reasons)
    assert all(reason.startswith(str(path)) for reason in reasons)


def test_a_footer_beyond_the_limit_is_refused(tmp_path, monkeypatch):
    arrow = pytest.importorskip("pyarrow", reason="the extra charax[parquet] is not installed")
    from pyarrow import parquet  # pyright: ignore[reportMissingImports]

    parquet.write_table(arrow.table({"a": [1.0, 2.0]}), tmp_path / "table.parquet")
    monkeypatch.setenv("CHARAX_MAX_FOOTER", "100")
    with pytest.raises(DataError, match=r"bytes in its footer, more than the limit of 100: set CHARAX_MAX_FOOTER="):
        read_table(tmp_path / "table.parquet", TableRequest())
