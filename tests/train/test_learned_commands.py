"""`charax train pde` and `charax train forecast`, from data to predictions."""

import csv
import json

import numpy as np
import pytest

from charax.cli import main


def ask(capsys, *arguments) -> dict:
    assert main([*map(str, arguments), "--json"]) == 0
    return json.loads(capsys.readouterr().out)


@pytest.fixture(scope="module")
def learned(tmp_path_factory):
    """A run that learned hardly anything, from a plain model, which is quick to compile."""
    folder = tmp_path_factory.mktemp("runs")
    settings = "--method node-fair --width 2 --epochs 1 --batch-size 20 --points 30 --name one"
    assert main(["train", "pde", "--output", str(folder), *settings.split(), "--json"]) == 0
    return folder / "one"


def test_predictions_are_a_table_of_points_and_values(learned, tmp_path, capsys):
    (tmp_path / "new.csv").write_text("x,t\n1.5,0.5\n1.4,0.2\n")
    answer = ask(capsys, "predict", learned, tmp_path / "new.csv", "--output", tmp_path / "out.csv")
    assert answer["predictions"] == 2
    with (tmp_path / "out.csv").open() as file:
        header, first, _ = csv.reader(file)
    assert header == ["x", "t", "u"]
    assert first[:2] == ["1.5", "0.5"]
    assert {path.name for path in (learned / "plots").iterdir()} == {"training.png", "fit.png", "solution.png"}


@pytest.mark.parametrize(
    ("row", "words"),
    [("5,0.5", "row 3: x = 5 is outside"), ("1.5,-1", "row 3: t = -1 lies before"), ("1.5,", "row 3: column 't'")],
)
def test_point_that_cannot_be_predicted_is_named_and_nothing_is_written(learned, row, words, tmp_path, capsys):
    (tmp_path / "new.csv").write_text(f"x,t\n1.5,0.5\n{row}\n")
    assert main(["predict", str(learned), str(tmp_path / "new.csv"), "--output", str(tmp_path / "out.csv")]) == 2
    assert words in capsys.readouterr().err
    assert not (tmp_path / "out.csv").exists()


def test_forecast_of_own_series_has_a_band(tmp_path, capsys):
    times = np.cumsum(np.random.default_rng(0).uniform(0.05, 0.2, 30))
    rows = [f"{name},{t:.4f},{np.exp(-t) * scale:.4f}" for name, scale in (("a", 1), ("b", 2)) for t in times]
    (tmp_path / "s.csv").write_text("\n".join(["series,time,u", *rows]))
    settings = "--method node-fair --width 2 --augment-dim 0 --epochs 1 --batch-size 16 --name one"
    ask(capsys, "train", "forecast", "--data", tmp_path / "s.csv", "--output", tmp_path, *settings.split())
    (tmp_path / "new.csv").write_text("series,time,u\nc,10,1.5\nc,11,\nc,12.5,\n")
    ask(capsys, "predict", tmp_path / "one", tmp_path / "new.csv", "--output", tmp_path / "out.csv")
    with (tmp_path / "out.csv").open() as file:
        first, *_ = csv.DictReader(file)
    assert first["series"] == "c"
    assert float(first["lower u"]) < float(first["u"]) == 1.5 < float(first["upper u"])
    assert (tmp_path / "one" / "plots" / "forecast.png").exists()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["train", "pde", "--data", "nowhere.csv"], "nowhere.csv"),
        (["train", "pde", "--width", "0"], "width"),
        (["train", "forecast", "--data", "nowhere.csv"], "nowhere.csv"),
        (["train", "forecast", "--damping", "-1"], "damping"),
        (["reproduce", "pde", "--problem", "nothing"], "nothing"),
    ],
)
def test_bad_settings_are_a_sentence_and_leave_nothing(arguments, words, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(arguments) == 2
    assert words in capsys.readouterr().err.replace("\n", " ")
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
def test_c_node_learns_the_papers_problem(tmp_path, capsys):
    answer = ask(capsys, "reproduce", "pde", "--problem", "paper", "--method", "c-node", "--output", tmp_path)
    (row,) = answer["rows"]
    assert row["parameters"] <= 809
    assert row["deviation_percent_mean"] <= 0.25


@pytest.mark.slow
def test_structured_form_learns_burgers_equation(tmp_path, capsys):
    answer = ask(capsys, "reproduce", "pde", "--method", "equation", "--seeds", "1", "--output", tmp_path)
    assert answer["equation"]["velocity_error_percent_max"] <= 2


@pytest.mark.slow
def test_forecasts_of_the_hidden_series_stay_near_the_floor(tmp_path, capsys):
    answer = ask(capsys, "reproduce", "timeseries", "--method", "c-node", "--output", tmp_path)
    assert all(row["deviation_percent_mean"] <= 20 and row["parameters"] <= 9744 for row in answer["rows"])
