"""`charax reproduce` for every experiment: what it prints, what it leaves, and what a second call does."""

import io
import json
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from charax.cli import main
from charax.paper import EXPERIMENTS


class Case(NamedTuple):
    """How an experiment is called, and what it leaves. Scripts rely on the keys: none may be lost or renamed."""

    flags: str
    rows: int
    keys: str
    record: str = ""
    """Keys of NAME.json in addition to those of the answer."""
    answer: str = "rows"
    figures: str = ""
    plotted: str = ""
    """Runs that get figures of their own."""
    other: str = "--epochs 2"
    """Another setting, which does not fit the runs in the folder."""


CASES = {
    "propositions": Case(
        "",
        0,
        "",
        answer="intersecting homeomorphism characteristics log_density",
        figures="intersecting.png homeomorphism.png characteristics.png log_density.png",
        other="",
    ),
    "separations": Case(
        "--problem swap --variant c-node-k2-u0 --seeds 1 --steps 2 --points 10",
        1,
        "problem method k reads_u0 error_mean error_sd nfe parameters seconds variant",
        record="seeds steps points",
        figures="separations.png",
        other="--steps 3",
    ),
    "table1": Case(
        "--budget smoke --method c-node --epochs 1",
        1,
        "dataset method parameters accuracy_mean accuracy_sd nfe seconds parameters_paper accuracy_paper nfe_paper",
        record="budget changed dynamics",
        figures="training-dynamics.png",
    ),
    "toy-flow": Case(
        "--iterations 2 --seeds 1",
        2,
        "dataset method parameters nll_mean nll_sd nfe seconds",
        record="recipe iterations",
        figures="toy-flow.png",
        plotted="density-circles-c-node-seed0 density-circles-node-seed0",
        other="--iterations 3",
    ),
    "tabular": Case(
        "--table iris --seeds 1 --epochs 1",
        1,
        "dataset dimensions method parameters log_likelihood_mean log_likelihood_sd log_likelihood_gaussian "
        "log_likelihood_kernel nfe seconds better_or_equal",
        record="seeds",
    ),
    "kinetic": Case(
        "--data POINTS --epochs 1 --seeds 1",
        2,
        "dataset method parameters nll_mean nll_sd nfe seconds kinetic nll_ratio nfe_ratio",
        record="sharpness",
        figures="kinetic.png",
    ),
    "table2": Case(
        "--budget smoke --method c-node",
        1,
        "dataset method parameters bits_per_dim_mean bits_per_dim_sd nfe seconds bits_per_dim_paper nfe_paper "
        "parameters_paper",
        record="budget changed",
        figures="table2.png",
        plotted="density-digits-by2-c-node-seed0",
    ),
    "pde": Case(
        "--budget smoke --method node-fair --epochs 1",
        1,
        "problem method parameters deviation_percent_mean deviation_percent_sd deviation_percent_paper "
        "extrapolation_percent_mean extrapolation_percent_sd extrapolation_lost_percent seconds",
        record="budget",
        figures="deviations.png",
        plotted="pde-paper-node-fair-seed0",
    ),
    "timeseries": Case(
        "--method node-fair --seeds 1 --epochs 1",
        6,
        "method interval parameters deviation_percent_mean deviation_percent_sd deviation_percent_paper "
        "deviation_percent_floor seconds",
        record="floor_percent",
        figures="intervals.png",
        plotted="forecast-paper-node-fair-seed0",
    ),
    "ablation": Case(
        "--k 1 2 --epochs 1",
        2,
        "dataset k parameters accuracy_mean accuracy_sd validation_mean validation_sd train_loss test_loss aic bic "
        "seconds",
        answer="rows picked",
        figures="ablation.png",
    ),
}


class Called(NamedTuple):
    status: int
    out: str
    err: str


def call(*arguments: object) -> Called:
    with redirect_stdout(io.StringIO()) as out, redirect_stderr(io.StringIO()) as err:
        status = main([str(argument) for argument in arguments])
    return Called(status, out.getvalue(), err.getvalue())


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


def reproduce(name: str, folder: Path) -> tuple[list[str], Called]:
    points = folder / "points.npz"
    np.savez(points, x=np.random.default_rng(0).normal(size=(80, 2)))
    flags = [
        "reproduce",
        name,
        *CASES[name].flags.replace("POINTS", str(points)).split(),
        "--output",
        str(folder / "r"),
    ]
    return flags, call(*flags, "--json")


@pytest.fixture(scope="module", params=list(EXPERIMENTS))
def reproduced(request, tmp_path_factory, small_models) -> Reproduced:
    """One experiment, reproduced once for all tests below."""
    assert request.param in CASES, f"a case is missing for the new experiment {request.param}"
    folder = tmp_path_factory.mktemp(request.param)
    small_models.clear()
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


def check_propositions(answer: dict[str, Any]) -> None:
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


def check_table1(answer: dict[str, Any]) -> None:
    (row,) = answer["rows"]
    assert (row["dataset"], row["method"], row["nfe"]) == ("digits", "c-node", 2)  # two Euler steps
    assert [(each["training"], each["method"]) for each in answer["dynamics"]] == [
        ("adjoint", "c-node"),
        ("Euler", "c-node"),
    ]
    assert all(len(curve) == 1 for each in answer["dynamics"] for curve in each["validation_accuracy"])


def check_kinetic(answer: dict[str, Any]) -> None:
    plain, regularized = answer["rows"]
    assert (plain["kinetic"], plain["nll_ratio"], plain["nfe_ratio"]) == (0, 1, 1)
    assert regularized["kinetic"] == 1.5
    assert regularized["nll_ratio"] == regularized["nll_mean"] / plain["nll_mean"] != 1


def check_pde(answer: dict[str, Any]) -> None:
    (row,) = answer["rows"]
    assert (row["problem"], row["method"], row["deviation_percent_paper"]) == ("paper", "node-fair", None)
    assert row["extrapolation_percent_mean"] > 0
    assert row["parameters"] == 770


def check_timeseries(answer: dict[str, Any]) -> None:
    assert [row["interval"] for row in answer["rows"]] == [[n, n + 1] for n in range(6)]
    assert {round(row["deviation_percent_floor"], 2) for row in answer["rows"]} == {17.16}
    # No prediction can be better, but for the sampling error of 2,000 points.
    assert all(row["deviation_percent_mean"] > 0.95 * row["deviation_percent_floor"] for row in answer["rows"])
    assert {row["parameters"] for row in answer["rows"]} == {898}


def check_ablation(answer: dict[str, Any]) -> None:
    rows = answer["rows"]
    assert [row["k"] for row in rows] == [1, 2]
    assert rows[1]["parameters"] > rows[0]["parameters"]
    assert answer["picked"] == {
        "validation": max(rows, key=lambda row: row["validation_mean"])["k"],
        "aic": min(rows, key=lambda row: row["aic"])["k"],
        "bic": min(rows, key=lambda row: row["bic"])["k"],
    }


CLAIMS = {
    "propositions": check_propositions,
    "table1": check_table1,
    "kinetic": check_kinetic,
    "pde": check_pde,
    "timeseries": check_timeseries,
    "ablation": check_ablation,
    "separations": lambda answer: [(row["variant"], row["k"]) for row in answer["rows"]] == [("c-node-k2-u0", 2)],
    "toy-flow": lambda answer: [row["method"] for row in answer["rows"]] == ["c-node", "node"],
    "tabular": lambda answer: [(row["dataset"], row["dimensions"]) for row in answer["rows"]] == [("iris", 4)],
    "table2": lambda answer: 0 < answer["rows"][0]["bits_per_dim_mean"] < 10,
}


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


@pytest.mark.slow
@pytest.mark.parametrize("name", ["separations", "toy-flow", "tabular", "kinetic", "table2", "pde", "timeseries"])
def test_it_works_with_the_models_and_figures_of_the_experiment(name, tmp_path):
    """The same without `small_models`."""
    _, (status, _, err) = reproduce(name, tmp_path)
    assert status == 0, err
    for run in CASES[name].plotted.split():
        run = run.replace("-by2", "")  # the small model's
        plots = {path.name for path in (tmp_path / "r" / run / "plots").iterdir()}
        assert "training.png" in plots
        assert len(plots) > 1


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "flags", "methods"),
    [
        ("table1", "--method node c-node --epochs 1 --table-only", ["node", "c-node"]),
        ("table2", "", ["node", "c-node"]),
        ("pde", "--budget smoke --epochs 1 --method c-node node equation --seeds 1", ["c-node", "node"]),
        ("timeseries", "--epochs 1 --seeds 1", ["c-node"] * 6 + ["node"] * 6 + ["node-fair"] * 6),
    ],
)
def test_every_method_of_a_table_gets_its_rows(name, flags, methods, tmp_path):
    status, out, err = call("reproduce", name, *flags.split(), "--output", tmp_path, "--json")
    assert status == 0, err
    answer = json.loads(out)
    assert [row["method"] for row in answer["rows"]] == methods
    if name == "pde":
        keys = (
            "problem seeds parameters u_range velocity_error_percent_mean velocity_error_percent_max source_largest "
            "deviation_percent seconds"
        )
        assert answer["equation"].keys() == set(keys.split())
