"""`charax train forecast`, from series to forecasts with prediction intervals."""

import csv
from dataclasses import replace
from pathlib import Path

import jax
import numpy as np
import pytest

from charax.cli import main
from charax.tasks.forecast import ForecastConfig
from charax.train import LoopConfig, OptimizerConfig, load_model, load_run
from tests.tasks.fields import Case, changed_parts, fields_of, shared_cases
from tests.train.commands import assert_explained


def rows_of(path: Path) -> list[dict[str, str]]:
    with path.open() as file:
        return list(csv.DictReader(file))


@pytest.fixture(scope="session")
def series(tmp_path_factory) -> Path:
    """Two decaying series at irregular times, with a column that is known from the start."""
    times = np.cumsum(np.random.default_rng(0).uniform(0.05, 0.2, 30))
    rows = [f"{name},{t:.4f},{np.exp(-t) * scale:.4f},{scale}" for name, scale in (("a", 1), ("b", 2)) for t in times]
    path = tmp_path_factory.mktemp("data") / "series.csv"
    path.write_text("\n".join(["series,time,u,size", *rows]))
    return path


@pytest.fixture(scope="session")
def forecaster(series, tmp_path_factory) -> Path:
    """The folder of a finished run that learned hardly anything."""
    folder = tmp_path_factory.mktemp("runs")
    flags = "--context size --method node-fair --width 2 --augment-dim 0 --epochs 1 --batch-size 16 --name one"
    assert main(["train", "forecast", "--data", str(series), "--output", str(folder), *flags.split()]) == 0
    return folder / "one"


def test_a_forecast_has_a_prediction_interval(forecaster, tmp_path, ask):
    (tmp_path / "new.csv").write_text("series,time,u,size\nc,10,1.5,1\nc,11,,1\nc,12.5,,1\n")
    answer = ask("predict", forecaster, tmp_path / "new.csv", "--output", tmp_path / "out.csv")
    assert answer["predictions"] == 3
    first, *later = rows_of(tmp_path / "out.csv")
    assert list(first) == ["series", "time", "u", "lower u", "upper u"]
    assert first["series"] == "c"
    assert float(first["lower u"]) < float(first["u"]) == 1.5 < float(first["upper u"])
    assert [float(row["time"]) for row in later] == [11, 12.5]
    assert (forecaster / "plots" / "forecast.png").exists()


def test_a_forecast_far_after_the_trained_times_warns_and_its_interval_widens(forecaster, tmp_path, capsys):
    last = load_model(forecaster).task.spec.last_time
    times = [10, 10 + 0.5 * last, 10 + 4 * last]
    rows = "".join(f"c,{time},{1.5 if time == 10 else ''},1\n" for time in times)
    (tmp_path / "new.csv").write_text("series,time,u,size\n" + rows)
    assert main(["predict", str(forecaster), str(tmp_path / "new.csv"), "--output", str(tmp_path / "out.csv")]) == 0
    assert "1 of 3 forecasts are for more than 1.5 times the longest time" in capsys.readouterr().err
    widths = [float(row["upper u"]) - float(row["lower u"]) for row in rows_of(tmp_path / "out.csv")]
    assert widths[1] == pytest.approx(widths[0], rel=1e-3)
    assert widths[2] == pytest.approx(2 * widths[0], rel=1e-3)


def test_evaluate_repeats_the_errors_of_the_run(forecaster, ask):
    ended, evaluated = load_run(forecaster).summary(), ask("evaluate", forecaster)
    assert_explained("forecast", ended)
    assert ended.keys() >= {"deviation_percent", "error_percent", "validation_error_percent", "covered", "parameters"}
    assert evaluated["error_percent"] == pytest.approx(ended["error_percent"], rel=1e-5)


def test_a_series_whose_solve_fails_is_marked_and_the_others_are_answered(forecaster, tmp_path, ask, refuse):
    (tmp_path / "new.csv").write_text("series,time,u,size\nc,10,1.5,1\nc,11,,1\nd,10,3e38,1\nd,11,,1\n")
    answer = ask("predict", forecaster, tmp_path / "new.csv", "--output", tmp_path / "out.csv")
    rows = rows_of(tmp_path / "out.csv")
    failed = [row["series"] for row in rows if row["status"] != "ok"]
    assert failed
    assert set(failed) == {"d"}
    assert answer["failed"] == len(failed)
    assert all(row["u"] == "" for row in rows if row["status"] != "ok")
    reason = refuse("predict", forecaster, tmp_path / "new.csv", "--strict", status=1)
    assert "series 'd'" in reason


def test_the_loss_is_the_gaussian_likelihood_and_coverage_is_that_of_the_interval(forecaster):
    task, model = load_model(forecaster)
    observations = load_run(forecaster).splits.train
    batch = observations.take(np.arange(12))
    metrics = jax.jit(lambda batch: task.metrics(model, batch))(batch)
    mean, lower, upper = task.forecast(model, batch)
    inside = ((lower <= batch.value) & (batch.value <= upper)).mean(axis=1)
    np.testing.assert_allclose(metrics["covered"], inside)
    noise = (upper - lower) / (2 * 1.959964)
    scale = np.asarray(task.spec.scaling.value_scale)
    expected = np.mean(0.5 * ((mean - batch.value) / noise) ** 2 + np.log(noise / scale), axis=1)
    np.testing.assert_allclose(metrics["loss"], expected, rtol=1e-3, atol=1e-3)


@pytest.fixture(scope="module")
def cases(series, tmp_path_factory) -> dict[str, Case]:
    folder = tmp_path_factory.mktemp("data")
    text = series.read_text()
    (folder / "other.csv").write_text(text.replace("0.9", "0.8"))
    # Two columns that could name the series, and two of times.
    rows = [f"{i % 2},{i // 15 % 2},{i},{2 * i + i % 2},{np.cos(i):.4f}" for i in range(60)]
    (folder / "roles.csv").write_text("\n".join(["series,group,time,clock,u", *rows]))
    base = ForecastConfig(data=str(series), width=4, loop=LoopConfig(epochs=2, batch_size=16))
    roles, paper = replace(base, data=str(folder / "roles.csv")), replace(base, data="paper", points=20)
    windows = replace(base, history=3, horizon=3)
    (folder / "positive.csv").write_text(
        "\n".join(["series,time,u", *(f"a,{i},{2 + np.cos(i):.4f}" for i in range(40))])
    )
    positive = replace(windows, data=str(folder / "positive.csv"), transform="log")
    return {
        **shared_cases(base),
        "loop.seed": shared_cases(paper)["loop.seed"],  # a file is split by time
        "data": Case(base, {"data": str(folder / "other.csv")}, "data"),
        "series": Case(roles, {"series": "group"}, "spec"),
        "time": Case(roles, {"time": "clock"}, "spec"),
        "context": Case(base, {"context": ("size",)}, "spec"),
        "method": Case(base, {"method": "node-fair"}, "model"),
        "width": Case(base, {"width": 5}, "model"),
        "characteristic_dim": Case(base, {"characteristic_dim": 3}, "model"),
        "augment_dim": Case(base, {"augment_dim": 1}, "model"),
        "damping": Case(base, {"damping": 1.0}, "task"),
        "points": Case(paper, {"points": 30}, "data"),
        "history": Case(base, {"history": 4}, "data"),
        "horizon": Case(windows, {"horizon": 2}, "data"),
        "hold_out": Case(replace(windows, data="pendulum"), {"hold_out": "series"}, "data"),
        "folds": Case(windows, {"folds": 2}, "model"),
        "transform": Case(positive, {"transform": "sqrt"}, "spec"),
        "start": Case(windows, {"start": "last"}, "spec"),
        "latent": Case(windows, {"latent": True}, "model"),
        "state_dim": Case(windows, {"state_dim": 5}, "model"),
        "drop_augmentation": Case(windows, {"drop_augmentation": 0.5}, "task"),
    }


@pytest.mark.parametrize("field", fields_of(ForecastConfig))
def test_every_field_changes_what_it_is_for(cases, field):
    assert cases[field].part in changed_parts(cases[field])


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        ("--data nowhere.csv", "nowhere.csv"),
        ("--damping -1", "damping must be a number above 0"),
        ("--augment-dim -1", "augment_dim must be a number of at least 0"),
        ("--width 0", "width must be a number of at least 1"),
        ("--data pendulum --history 9 --augment-dim 3 --points 90", "augment_dim, points: forecasts from past observ"),
        ("--latent --start last --folds 3", "folds, start, latent: only forecasts from past observations have that"),
    ],
)
def test_a_bad_setting_is_a_sentence_and_leaves_nothing(flags, words, refuse, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert words in refuse("train", "forecast", *flags.split())
    assert not list(tmp_path.iterdir())


def test_points_of_a_file_are_not_chosen(series, refuse):
    assert "points: they are those of the paper's series" in refuse(
        "train", "forecast", "--data", series, "--points", "90"
    )


@pytest.mark.slow
def test_forecasts_of_the_hidden_series_stay_near_the_floor(tmp_path, ask):
    answer = ask("reproduce", "timeseries", "--method", "c-node", "--output", tmp_path)
    assert all(row["deviation_percent_mean"] <= 20 and row["parameters"] <= 9744 for row in answer["rows"])


def test_the_report_shows_every_series_with_its_interval(forecaster):
    run = load_run(forecaster)
    task, model = run.trained
    section, states = task.report(model, run.splits, data="series")
    assert (section.title, section.frame_label) == ("Forecasts", "series")
    assert [frame.name for frame in section.figure.frames] == ["1", "2"]
    interval, line, *observed = section.figure.frames[1].data
    assert [trace.name for trace in observed] == ["training", "validation", "test"]
    upper, lower = np.split(np.asarray(interval.y), 2)
    assert (lower[::-1] < line.y).all()
    assert (line.y < upper).all()
    assert max(map(np.max, (observed[0].x, observed[1].x))) <= np.min(observed[2].x)
    assert (states.title, len(states.figure.frames)) == ("Trajectories u(s)", 33)


def test_the_report_of_a_c_node_shows_its_characteristics(series):
    config = ForecastConfig(data=str(series), context=("size",), width=2, characteristic_dim=3)
    loaded = config.load_data()
    task = config.build_task(loaded.spec)
    model = task.build(jax.random.key(0))
    _, section, _ = task.report(model, loaded.splits, data="series")
    assert section.title == "Learned characteristics x(s)"
    heads = section.figure.frames[0].data
    assert all(np.allclose((head.x, head.y, head.z), 0) for head in heads)  # x(0) = 0
    assert not np.allclose(section.figure.frames[-1].data[0].x, 0)


def test_the_learning_rate_is_chosen_by_what_a_forecast_begins_with():
    """A first value alone, or a window of past observations; a rate that is given is kept."""
    rate = lambda **given: ForecastConfig(**given).optimizer.learning_rate
    assert rate() == 1e-3
    assert rate(data="pendulum", history=10) == 3e-3
    assert rate(optimizer=OptimizerConfig(learning_rate=0.5)) == 0.5
