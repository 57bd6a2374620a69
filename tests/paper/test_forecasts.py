"""The baselines of `charax reproduce forecasts`, where the right answer is known."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from charax.data import load_forecast_windows
from charax.paper import forecasts
from charax.paper._forecast_baselines import autoregression, persistence, seasonal_persistence
from charax.paper._forecast_origins import cut_series, pool_origins
from charax.paper.forecasts import SETTINGS, evaluate_origins, find_file


def write(path: Path, values: np.ndarray) -> str:
    rows = [f"{name},{t},{value}" for name, one in enumerate(values) for t, value in enumerate(one)]
    path.write_text("\n".join(["series,time,u", *rows]))
    return str(path)


def test_persistence_is_the_last_value_that_was_observed(tmp_path):
    values = np.arange(40.0).reshape(1, 40)
    text = Path(write(tmp_path / "line.csv", values)).read_text().replace("0,33,33.0", "0,33,")
    (tmp_path / "line.csv").write_text(text)
    data = load_forecast_windows(str(tmp_path / "line.csv"), history=4, horizon=2)
    scale = data.units.value_standardizer
    found = persistence(data).test[data.test.origin == 33] * scale.std[0] + scale.mean[0]
    np.testing.assert_allclose(found[0, :, 0], [32, 32], rtol=1e-5)


def test_the_season_before_is_exact_for_a_period_and_the_autoregression_for_a_recurrence(tmp_path):
    t = np.arange(60)
    wave = np.sin(2 * np.pi * (t + np.array([[0], [3], [5]])) / 12)
    data = load_forecast_windows(write(tmp_path / "waves.csv", wave), history=13, horizon=4)
    assert seasonal_persistence(data, 12.0).score(data)["rmse"] < 1e-3
    assert autoregression(data).score(data)["rmse"] < 1e-2  # u(t + h) is linear in two past values
    assert persistence(data).score(data)["rmse"] > 0.5


def test_intervals_of_baselines_cover_as_they_should(tmp_path):
    walks = np.random.default_rng(0).normal(size=(60, 40)).cumsum(axis=1)
    data = load_forecast_windows(write(tmp_path / "walks.csv", walks), history=3, horizon=3, hold_out="series")
    score = persistence(data).score(data)
    assert 0.92 < score["covered"] < 0.98


def test_missing_files_are_a_sentence(tmp_path, monkeypatch):
    monkeypatch.setenv("CHARAX_DATA", str(tmp_path))
    assert find_file("pendulum") == "pendulum"
    with pytest.raises(ValueError, match=r"theoph.csv does not exist: write R's data set there"):
        find_file("theoph.csv")


def test_a_table_ends_after_the_first_rows_of_each_series(tmp_path):
    (tmp_path / "a.csv").write_text("time,series,u\n0,x,1\n0,y,2\n1,x,3\n2,x,4\n1,y,5\n")
    cut = cut_series(tmp_path / "a.csv", tmp_path / "b.csv", 2)
    assert cut.read_text().split() == ["time,series,u", "0,x,1", "0,y,2", "1,x,3", "1,y,5"]


def test_values_count_the_same_at_every_origin():
    result = lambda values, error, covered: {
        "values": values,
        "methods": {"c-node": {"scaled_rmse": error, "covered": covered}},
        "parameters": 7,
        "seconds": 1.0,
    }
    assert pool_origins([result(18, 1.0, 1.0), result(6, 3.0, 0.5)]) == {
        "values": 24,
        "methods": {"c-node": {"scaled_rmse": pytest.approx(3**0.5), "covered": pytest.approx(21 / 24)}},
        "parameters": 7,
        "seconds": 2.0,
    }


def test_each_origin_has_a_file_that_ends_there(tmp_path, monkeypatch):
    """So that nothing later is known when its last times are tested."""
    monkeypatch.setenv("CHARAX_DATA", str(tmp_path))
    (tmp_path / "series").mkdir()
    write(tmp_path / "series" / "a.csv", np.arange(36.0).reshape(3, 12))
    last = []

    def evaluate(config, period, *, progress):
        last.append(Path(config.data).read_text().splitlines()[-1])
        scores = {"c-node": {"scaled_rmse": 1.0, "covered": 1.0}}
        return {"methods": scores, "values": 3, "parameters": 1, "seconds": 1.0}

    monkeypatch.setattr(forecasts, "evaluate", evaluate)
    found = evaluate_origins(replace(SETTINGS["indometh-origins"].config, data="a.csv"), None, (11, 8))
    assert [one["rows"] for one in found["origins"]] == [11, 8]
    assert last == ["2,10,34.0", "2,7,31.0"]
