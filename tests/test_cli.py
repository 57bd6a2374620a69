"""The command line as a user meets it."""

import json

import pytest

from charax import cli
from charax.cli.app import Sheet, tell, with_spread


def test_models_prints_one_json_object_with_sixteen_rows(capsys):
    assert cli.main(["models", "--json"]) == 0
    out = capsys.readouterr().out
    rows = json.loads(out)["rows"]
    assert len(rows) == 16
    assert set(rows[0]) == {"dataset", "method", "parameters", "parameters_paper"}
    assert {row["dataset"] for row in rows} == {"mnist", "cifar10"}


def test_models_prints_a_table_for_people(capsys):
    assert cli.main(["models"]) == 0
    out = capsys.readouterr().out
    assert "83,041" in out
    assert "equal" in out


def test_propositions_reach_what_is_claimed_and_leave_numbers_and_pictures(capsys, tmp_path):
    assert cli.main(["reproduce", "propositions", "--json", "--output", str(tmp_path)]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert json.loads((tmp_path / "propositions.json").read_text()) == answer
    pictures = sorted(path.name for path in tmp_path.glob("*.png"))
    assert pictures == ["characteristics.png", "homeomorphism.png", "intersecting.png", "log_density.png"]

    crossing = answer["intersecting"]
    assert crossing["construction_error"] <= 1e-6
    assert crossing["c_node_error"] <= 0.01
    assert crossing["node_error"] >= 0.4
    assert crossing["node_parameters"] >= crossing["c_node_parameters"]
    assert answer["homeomorphism"]["forward_error"] <= 1e-5
    assert answer["homeomorphism"]["inverse_error"] <= 1e-5
    assert answer["characteristics"]["error"] <= 1e-6
    assert answer["log_density"]["error"] <= 1e-6
    assert answer["log_density"]["error_when_conditioned"] > 1e-2
    assert "may not read u0" in answer["log_density"]["refusal"]


@pytest.mark.parametrize("arguments", [[], ["nonsense"], ["models", "--nope"], ["reproduce", "table9"]])
def test_bad_usage_ends_with_status_2(arguments):
    with pytest.raises(SystemExit) as ended:
        cli.main(arguments)
    assert ended.value.code == 2


def test_bad_input_is_a_sentence_on_standard_error_and_status_2(capsys, tmp_path):
    occupied = tmp_path / "file"
    occupied.write_text("not a folder")
    assert cli.main(["reproduce", "propositions", "--output", str(occupied)]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "charax:" in captured.err
    assert "Traceback" not in captured.err


def test_a_sheet_is_the_same_on_the_terminal_and_as_a_page(capsys, tmp_path):
    sheet = Sheet("Results", ["method", "NLL"], [["c-node", with_spread(1.25, 0.5, ".2f")]], "A note.", words=1)
    tell({}, sheet.table("Pictures: here."), as_json=False)
    shown = capsys.readouterr().out
    assert all(part in shown for part in ("Results", "c-node", "1.25 ± 0.50", "A note. Pictures: here."))
    sheet.write(tmp_path / "page.md")
    assert (tmp_path / "page.md").read_text().splitlines() == [
        "# Results", "", "A note.", "", "| method | NLL |", "| --- | --- |", "| c-node | 1.25 ± 0.50 |"
    ]  # fmt: skip
    assert with_spread(1.25, None, ".2f") == "1.25"
    assert with_spread(None, None, ".2f") == "-"
