"""Forecasts of new files: evaluated on series that were held out, and at times that are written as they were read."""

import csv
from itertools import chain
from pathlib import Path

import jax
import numpy as np
import pytest

import charax
from charax.tasks.forecast import ForecastConfig
from charax.train import LoopConfig, train


def rows_of(path: Path) -> list[dict[str, str]]:
    with path.open() as file:
        return list(csv.DictReader(file))


def write(path: Path, *rows: str) -> Path:
    path.write_text("\n".join(["city,day,rain,wind,holiday", *rows]))
    return path


@pytest.fixture(scope="module")
def lines() -> dict[str, list[str]]:
    """Of some cities, rows at irregular dates with missing values and a column that is known in advance."""
    generator, found = np.random.default_rng(0), {}
    for i, city in enumerate(("Aarhus", "Berlin", "Cairo", "Dakar", "Essen", "Florence")):
        days = np.datetime64("2024-02-20") + np.cumsum(generator.integers(1, 4, 20))
        rain, holiday = 3 + np.sin(np.arange(20) + i), generator.integers(0, 2, 20)
        cells = ["" if row % 7 == 3 else f"{rain[row]:.3f}" for row in range(20)]
        found[city] = [f"{city},{days[r]},{cells[r]},{rain[r] - 1 + r / 9:.3f},{holiday[r]}" for r in range(20)]
    return found


@pytest.fixture(scope="module")
def run(lines, tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("run")
    config = ForecastConfig(
        data=str(write(folder / "cities.csv", *chain(*lines.values()))),
        series="city",
        time="day",
        context=("holiday",),
        history=5,
        horizon=3,
        hold_out="series",
        folds=1,
        width=4,
        state_dim=4,
        characteristic_dim=2,
        loop=LoopConfig(epochs=1, batch_size=32),
    )
    return train(config, folder / "run").folder


def test_a_file_of_the_test_series_has_the_metrics_of_the_test_split(run, lines, tmp_path, ask):
    test = charax.load_run(run).splits.test
    held_out = [list(lines.values())[i] for i in np.unique(test.series)]
    new = write(tmp_path / "new.csv", *chain(*held_out))
    of_split, of_file = ask("evaluate", run), ask("evaluate", run, "--data", new)
    assert of_file.pop("data") == str(new)
    assert of_split.pop("split") == "test"
    assert [row["ahead"] for row in of_file["horizons"]] == [1, 2, 3] * 2
    assert of_file == of_split


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        (["Rome,2024-01-01,1,2,0"], "new.csv has no value to compare a forecast with: give a series of two rows"),
        (["Rome,2024-01-01,1,2,0", "Rome,2024-01-02,,,0"], "no value to compare a forecast with"),
        (["Rome,2024-01-01,1,2,0", "Rome,2024-01-02,1,2,"], "row 3: series 'Rome' has no 'holiday', which must be"),
        (["Rome,1,1,2,0", "Rome,2,1,2,0"], "has numbers as times where the training data have dates: give dates"),
    ],
)
def test_files_that_cannot_be_evaluated_on_are_a_sentence(run, rows, words, tmp_path, refuse):
    assert words in refuse("evaluate", run, "--data", write(tmp_path / "new.csv", *rows))


def test_forecasts_from_starting_values_say_that_they_need_past_observations(tmp_path):
    config = ForecastConfig(width=2)
    with pytest.raises(ValueError, match=r"forecasts without --history cannot be evaluated on new data, so new\.csv"):
        config.load_labelled(Path("new.csv"), config.load_data().spec)


def test_dates_of_forecasts_are_those_of_the_file(run, tmp_path, ask, refuse):
    past = ["Rome,30.12.2024,1,2,0", "Rome,31.12.2024,2,,1"]
    days = ["1.1.2025", "03.01.2025", "13.1.2025"]
    new = write(tmp_path / "new.csv", *past, *(f"Rome,{day},,,0" for day in days))
    answer = ask("predict", run, new, "--output", tmp_path / "out.csv")
    assert (answer["predictions"], answer["failed"]) == (3, 0)
    assert [row["day"] for row in rows_of(tmp_path / "out.csv")] == days
    assert charax.load_run(run).trained.task.spec.lead_label == "day since the last observation, in days"
    write(new, "Rome,1,1,2,0", "Rome,2,,,0")
    assert "give dates" in refuse("predict", run, new, "--output", tmp_path / "none.csv")


def test_windows_of_dates_are_named_by_the_date_of_their_last_observation(run, lines):
    loaded = charax.load_run(run)
    spec, test = loaded.trained.task.spec, loaded.splits.test
    dates = {tuple(line.split(",")[:2]) for line in chain(*lines.values())}
    for series, time in zip(test.series, test.origin_time, strict=True):
        name, date = spec.window_name(int(series), float(time)).split(", day ")
        assert (name, date) in dates
    assert spec.window_name(1, 0.75) == "Berlin, day 1970-01-01 18:00:00"


def test_a_known_column_that_is_missing_is_asked_for(run, tmp_path, refuse):
    (tmp_path / "new.csv").write_text("city,day,rain,wind\nRome,2024-01-01,1,2\nRome,2024-01-02,,\n")
    reason = refuse("predict", run, tmp_path / "new.csv", "--output", tmp_path / "none.csv")
    assert "no column 'holiday'; it has city, day, rain, wind: the training data have it; add it" in reason


START = {
    "seconds": ["1577836800", "1577836801", "1577836801.5", "1577836802"],
    "dates": ["2020-01-01", "2020-01-02 06:00", "2020-01-03", "2020-01-03 12:00"],
}


@pytest.mark.parametrize("kind", START)
@pytest.mark.parametrize("history", [None, 2])
def test_times_of_forecasts_equal_those_of_the_inputs(kind, history, tmp_path):
    rows = [f"a,{time},{i}" for i, time in enumerate(START[kind])]
    (tmp_path / "past.csv").write_text("\n".join(["series,time,u", *rows]))
    (tmp_path / "new.csv").write_text("\n".join(["series,time,u", *rows[:2], *(row[:-1] for row in rows[2:])]))
    config = ForecastConfig(data=str(tmp_path / "past.csv"), history=history, width=2, folds=history and 1)
    task = config.build_task(config.load_data().spec)
    predictions = task.predict(task.build(jax.random.key(0)), tmp_path / "new.csv")
    assert [row[1] for row in predictions.rows] == START[kind][2 if history else 0 :]
