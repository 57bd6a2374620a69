"""The baselines of `charax reproduce forecasts`, where the right answer is known."""

from pathlib import Path

import numpy as np
import pytest

from charax.data import load_forecast_windows
from charax.paper._forecast_baselines import autoregression, persistence, seasonal_persistence
from charax.paper.forecasts import find_file


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
