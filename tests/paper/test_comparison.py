"""Averages over seeds, also of runs whose metrics are not finite: a table must not fail after hours of training."""

from types import SimpleNamespace

import matplotlib.pyplot as plt
import numpy as np
import pytest

from charax.paper import Column, Report
from charax.paper import pde as paper_pde
from charax.paper._comparison import MethodResult, largest_width, plot_curve, plot_dynamics, record_curves
from charax.paper.kinetic import Kinetic


def make_result(method: str, *losses: float | None, curve: tuple[float | None, ...] = (3.0, 2.0)) -> MethodResult:
    """A result with the metrics of one run per loss."""
    summaries = [{"nll": loss, "nfe": 20.0, "parameters": 7, "seconds": 2.0} for loss in losses]
    epochs = [{"epoch": i, "validation_nll": value, "validation_nfe": 20.0} for i, value in enumerate(curve, start=1)]
    runs = [SimpleNamespace(summary=lambda each=each: each, epochs=epochs) for each in summaries]
    return MethodResult("moons", method, runs)


def test_a_row_is_the_mean_and_standard_deviation_over_seeds():
    assert make_result("node", 1.0, 2.0).row("nll") == {
        "dataset": "moons",
        "method": "node",
        "parameters": 7,
        "nll_mean": 1.5,
        "nll_sd": pytest.approx(0.5**0.5),
        "nfe": 20.0,
        "seconds": 4.0,
    }
    assert make_result("node", 1.0).row("nll")["nll_sd"] is None


def test_a_metric_that_was_not_finite_is_missing_from_the_table_and_the_figure(tmp_path):
    results = [make_result("node", 1.0, None, curve=(3.0, None)), make_result("c-node", 1.0)]
    row = results[0].row("nll")
    assert (row["nll_mean"], row["nll_sd"], row["nfe"]) == (None, None, 20.0)
    figures = {"dynamics.png": lambda path: plot_dynamics(record_curves({"": results}, "nll"), path, metric="nll")}
    report = Report("r", "R", [Column("NLL", "nll_mean", ".2f", "nll_sd")], answer={"rows": [row]}, figures=figures)
    assert report.cells == [["-"]]
    assert all(path.exists() for path in report.write(tmp_path))
    assert "NaN" not in (tmp_path / "r.json").read_text()  # which JSON does not have


def test_epochs_of_a_given_number_of_steps_are_shown_as_steps():
    figure, axes = plt.subplots()
    plot_curve(axes, [[1.0, 2.0, 3.0]], "red", "c-node", steps_per_epoch=70)
    assert axes.lines[0].get_xdata().tolist() == [70, 140, 210]
    plt.close(figure)


def test_the_kinetic_energy_of_a_flow_that_failed_has_no_ratio(tmp_path):
    results = [make_result("c-node", None), make_result("c-node", 1.0, curve=(None, 2.0))]
    rows = Kinetic()._rows(results)
    assert [row["nll_ratio"] for row in rows] == [None, None]
    assert [row["nfe_ratio"] for row in rows] == [1, 1]
    assert Kinetic().figures({"dynamics": Kinetic()._curves(results)})["kinetic.png"](tmp_path / "kinetic.png").exists()


@pytest.mark.parametrize("found", [0, 3])
def test_extrapolation_is_measured_where_a_characteristic_is_found(found, monkeypatch):
    where = np.arange(10) < found
    truth = SimpleNamespace(x=np.zeros((10, 1)), t=np.zeros(10), u=np.full((10, 1), 2.0))
    task = SimpleNamespace(evaluate=lambda model, points: (np.where(where[:, None], 1.0, np.nan), where))
    run = SimpleNamespace(trained=(task, None), config=SimpleNamespace(loop=SimpleNamespace(seed=0)))
    monkeypatch.setattr("charax.data.sample_problem", lambda *_, **__: truth)
    error, lost = paper_pde.extrapolate(run, "paper", points=10)
    assert error == (50.0 if found else None)
    assert lost == pytest.approx(100 - 10 * found)


def test_a_learned_pde_that_failed_has_no_bar(tmp_path):
    row = {"problem": "paper", "deviation_percent_sd": None, "deviation_percent_paper": None}
    rows = [
        {**row, "method": "c-node", "deviation_percent_mean": None},
        {**row, "method": "node", "deviation_percent_mean": 1.0},
    ]
    assert paper_pde.plot_errors(rows, tmp_path / "errors.png").exists()


@pytest.mark.parametrize("target", [1, 10, 99])
def test_the_largest_width_is_found(target):
    width = largest_width(lambda width: width**2, target)
    assert width**2 <= target < (width + 1) ** 2
