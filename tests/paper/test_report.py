"""A report is the same on the terminal, as a page and as JSON."""

import json

import pytest

from charax.cli._print import print_report
from charax.paper import Column, Report

REPORT = Report(
    name="results",
    title="Results",
    columns=[Column("method", "method"), Column("NLL", "nll_mean", ".2f", "nll_sd"), Column("paper's", "paper", ".1%")],
    answer={"rows": [{"method": "c-node [bold]", "nll_mean": 1.25, "nll_sd": 0.5, "paper": None}]},
    note="A note.",
    record={"budget": "smoke"},
)


def test_the_page_has_a_title_a_note_and_the_table(tmp_path):
    assert REPORT.write(tmp_path) == [tmp_path / "results.json", tmp_path / "results.md"]
    assert (tmp_path / "results.md").read_text().splitlines() == [
        "# Results",
        "",
        "A note.",
        "",
        "| method | NLL | paper's |",
        "| --- | --- | --- |",
        "| c-node [bold] | 1.25 ± 0.50 | - |",
    ]


def test_the_record_is_stored_with_the_answer_and_not_printed(tmp_path, capsys):
    REPORT.write(tmp_path)
    print_report(REPORT, [], as_json=True)
    answer = json.loads(capsys.readouterr().out)
    assert answer == REPORT.answer
    assert json.loads((tmp_path / "results.json").read_text()) == {"budget": "smoke", **answer}


def test_the_terminal_shows_the_same_and_where_it_is_stored(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "50")
    path = tmp_path / "a folder with a name that is longer than a line" / "results.md"
    print_report(REPORT, [path], as_json=False)
    shown = capsys.readouterr().out
    assert all(text in shown for text in ("Results", "c-node [bold]", "1.25 ± 0.50", "paper's", "A note."))
    assert f"Written: {path}\n" in shown


@pytest.mark.parametrize(
    ("value", "sd", "text"), [(1.25, 0.5, "1.25 ± 0.50"), (1.25, None, "1.25"), (None, None, "-"), (0, None, "0.00")]
)
def test_a_cell_has_its_standard_deviation_if_there_is_one(value, sd, text):
    assert Column("NLL", "nll", ".2f", "sd").text({"nll": value, "sd": sd}) == text


def test_rows_of_the_table_may_differ_from_those_of_the_answer():
    report = Report("r", "R", [Column("k", "k", "d")], answer={"picked": 2}, rows=[{"k": 2}])
    assert report.cells == [["2"]]


def test_figures_are_written_next_to_the_table(tmp_path):
    def save(path):
        path.write_bytes(b"figure")
        return path

    report = Report("r", "R", [], answer={"rows": []}, figures={"r.png": save})
    assert report.write(tmp_path / "new")[-1] == tmp_path / "new" / "r.png"
    assert (tmp_path / "new" / "r.png").read_bytes() == b"figure"
