"""`charax reproduce` with the models, solvers and figures of the experiments themselves."""

import json

import pytest

from tests.paper.cases import CASES, call, reproduce


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
