"""`charax reproduce` for every experiment: what it prints, what it leaves, and what a second call does."""

import json
import shutil
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from charax.paper import EXPERIMENTS
from tests.paper.cases import CASES, Called, Case, call, reproduce, write_concentrations, write_motions
from tests.paper.claims import CLAIMS


class Reproduced(NamedTuple):
    name: str
    case: Case
    flags: list[str]
    folder: Path
    called: Called
    plotted: list[str]

    @property
    def report_files(self) -> set[Path]:
        return {self.folder / f"{self.name}{suffix}" for suffix in (".json", ".md")} | {
            self.folder / figure for figure in self.case.figures.split()
        }

    @property
    def results(self) -> dict[Path, int]:
        """What was computed, without the report on it: every file, and when it was written."""
        files = {path for path in self.folder.rglob("*") if path.is_file()} - self.report_files
        return {path: path.stat().st_mtime_ns for path in files}

    @property
    def stored(self) -> dict[str, Any]:
        return json.loads((self.folder / f"{self.name}.json").read_text())


@pytest.fixture(scope="module", params=list(EXPERIMENTS))
def reproduced(request, tmp_path_factory, small_models) -> Reproduced:
    """One experiment, reproduced once for all tests below."""
    assert request.param in CASES, f"a case is missing for the new experiment {request.param}"
    folder = tmp_path_factory.mktemp(request.param)
    small_models.clear()
    write_motions(folder)
    write_concentrations(folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CHARAX_DATA", str(folder))
        flags, called = reproduce(request.param, folder)
    return Reproduced(request.param, CASES[request.param], flags, folder / "r", called, list(small_models))


def test_it_prints_one_json_object_and_leaves_a_record_a_page_and_figures(reproduced: Reproduced):
    name, case, _, folder, (status, out, err), plotted = reproduced
    assert status == 0, err
    (line,) = out.splitlines()
    answer = json.loads(line, parse_constant=pytest.fail)  # JSON has no NaN and no infinity
    assert list(answer) == case.answer.split()
    rows = answer.get("rows", [])
    assert len(rows) == case.rows
    assert all(set(row) == set(case.keys.split()) for row in rows)
    assert reproduced.stored.keys() - answer.keys() == set(case.record.split())
    assert {key: reproduced.stored[key] for key in answer} == answer
    assert {path for path in folder.iterdir() if path.suffix in (".md", ".png")} <= reproduced.report_files
    assert all(path.stat().st_size > 0 for path in reproduced.report_files)
    assert (folder / f"{name}.md").read_text().count("\n| ") >= case.rows + 2
    assert plotted == case.plotted.split()


def test_called_again_it_computes_nothing_and_prints_the_same(reproduced: Reproduced, monkeypatch):
    if not reproduced.case.other:
        pytest.skip("nothing is stored but the report")
    monkeypatch.setenv("COLUMNS", "40")  # a narrow terminal folds neither the title nor the paths
    before, stored = reproduced.results, reproduced.stored
    status, out, _ = call(*reproduced.flags)
    assert status == 0
    assert before
    assert reproduced.results == before
    assert reproduced.stored == stored
    title = (reproduced.folder / f"{reproduced.name}.md").read_text().splitlines()[0]
    lines = out.splitlines()
    assert lines[0] == title.removeprefix("# ")
    assert lines[-1].startswith("Written: ")
    assert {Path(path) for path in lines[-1].removeprefix("Written: ").split(", ")} == reproduced.report_files


def test_its_figures_can_be_drawn_again_from_the_json_and_the_weights_alone(
    reproduced: Reproduced, small_models, tmp_path
):
    name, case = reproduced.name, reproduced.case
    small_models.clear()
    for run in case.plotted.split():
        kept = shutil.ignore_patterns("checkpoints", "plots")
        (shutil.copytree(reproduced.folder / run, tmp_path / run, ignore=kept) / "plots").mkdir()
    (tmp_path / f"{name}.json").write_text(json.dumps(reproduced.stored))
    status, out, err = call("reproduce", name, "--redraw", "--output", tmp_path, "--json")
    if name in ("propositions", "tabular", "uci"):  # computed whole in seconds, or without a figure
        assert (status, out) == (2, "")
        assert "leave --redraw out" in err
        return
    assert [Path(path).name for path in json.loads(out)["figures"]] == case.figures.split()
    for figure in case.figures.split():
        assert (tmp_path / figure).read_bytes() == (reproduced.folder / figure).read_bytes()
    assert small_models == sorted(case.plotted.split())


def test_other_settings_in_the_same_folder_are_refused_by_name(reproduced: Reproduced):
    if not reproduced.case.other:
        pytest.skip("nothing is stored but the report")
    before, stored = reproduced.results, reproduced.stored
    flag, value = reproduced.case.other.split()
    status, out, err = call(*reproduced.flags, flag, value, "--json")
    assert (status, out) == (2, "")
    named = {"--iterations": "epochs"}.get(flag, flag.removeprefix("--"))
    assert "other settings" in err
    assert f"{named} (" in err
    assert f"{value} here)" in err
    assert "--output" in err
    assert (reproduced.results, reproduced.stored) == (before, stored)


def test_its_numbers_are_those_claimed(reproduced: Reproduced):
    assert CLAIMS[reproduced.name](reproduced.stored) in (None, True)


def test_every_experiment_has_a_case():
    assert set(CASES) == set(CLAIMS) == set(EXPERIMENTS)


def test_table_only_leaves_out_the_second_training(small_models, tmp_path):
    flags = ["--method", "c-node", "--epochs", "1", "--table-only", "--output", tmp_path]
    assert call("reproduce", "table1", *flags).status == 0
    assert [path.name for path in tmp_path.iterdir() if path.is_dir()] == ["classify-digits-c-node-seed0"]
    stored = json.loads((tmp_path / "table1.json").read_text())
    assert [each["training"] for each in stored["dynamics"]] == ["Euler"]
