"""Windows of series: what belongs to which split, what is missing, and what is refused."""

from pathlib import Path

import numpy as np
import pytest

from charax.data import DataError, load_forecast_windows, read_window_request
from charax.data.sources._dynamics import sample_dynamics


def write(path: Path, *rows: str, header: str = "series,time,u,warm") -> Path:
    path.write_text("\n".join([header, *rows]))
    return path


@pytest.fixture
def table(tmp_path) -> Path:
    """Two series whose value is 100 times the series plus the row, at irregular times; some values are missing."""
    rows = []
    for name, number in (("a", 1), ("b", 2)):
        for row in range(20):
            value = "" if row % 7 == 3 else f"{100 * number + row}"
            rows.append(f"{name},{row**1.5:.3f},{value},{row % 2}")
    return write(tmp_path / "two.csv", *rows)


def load(table: Path, **other):
    return load_forecast_windows(str(table), **{"context": ("warm",), "history": 4, "horizon": 3} | other)


def unscale(data, values: np.ndarray) -> np.ndarray:
    scale = data.units.value_standardizer
    return values * scale.std[0] + scale.mean[0]


def test_no_window_forecasts_into_the_next_split(table):
    data = load(table)
    rows = {}
    for name in ("train", "validation", "test"):
        split = getattr(data, name)
        found = unscale(data, split.values[:, :, 0]) % 100
        rows[name] = found[~np.isnan(found)].round()
    # 19 rows after the first: the last 3 are for the test, the one before them is for validation
    assert (rows["train"].max(), rows["validation"].min(), rows["validation"].max()) == (15, 16, 16)
    assert (rows["test"].min(), rows["test"].max()) == (18, 19)  # row 17 has no value


def test_a_window_is_the_past_and_then_what_follows(table):
    data = load(table)
    one = data.train.take(np.flatnonzero((data.train.series == 1) & (data.train.origin == 6)))
    past = unscale(data, one.past_values[0, :, 0])
    np.testing.assert_allclose(past, [np.nan, 204, 205, 206], rtol=1e-5)
    np.testing.assert_allclose(unscale(data, one.values[0, :, 0]), [207, 208, 209], rtol=1e-5)
    clock = np.arange(20) ** 1.5
    np.testing.assert_allclose(one.times[0] * data.units.time_unit, (clock[7:10] - clock[6]).round(3), rtol=1e-4)
    np.testing.assert_allclose(one.past_times[0] * data.units.time_unit, clock[3:7] - clock[3], rtol=1e-3, atol=1e-3)
    known = one.known[0, :, 0] * data.units.standardizer.std[1] + data.units.standardizer.mean[1]
    np.testing.assert_allclose(known, [1, 0, 1], atol=1e-5)
    assert data.units.values == ("u",)
    assert data.units.known == ("warm",)


def test_the_first_windows_of_a_series_are_shorter(table):
    first = load(table).train.take(np.array([0]))
    assert first.past_lengths.tolist() == [1]
    assert np.isnan(first.past_values[0, 1:]).all()
    assert (np.diff(first.past_times[0]) > 0).all()


def test_whole_series_are_held_out():
    data = load_forecast_windows("pendulum", history=5, horizon=3, hold_out="series")
    train, validation, test = (set(split.series.tolist()) for split in (data.train, data.validation, data.test))
    assert (len(train), len(validation), len(test)) == (64, 16, 20)
    assert not train & validation
    assert not test & (train | validation)
    other = load_forecast_windows("pendulum", history=5, horizon=3, hold_out="series", seed=1)
    assert set(other.test.series.tolist()) != test


def test_simulated_series_follow_their_equations():
    data = load_forecast_windows("lotka-volterra", history=5, horizon=3)
    assert data.units.values == ("prey", "predators")
    assert min(data.units.standardizer.mean) == pytest.approx(1, abs=0.3)  # the mean over a period is the equilibrium
    missing = np.isnan(data.train.past_values[data.train.past_lengths == 5]).mean()
    assert 0.05 < missing < 0.15


@pytest.mark.parametrize(("name", "seed"), [("lotka-volterra", 4), ("lotka-volterra", 7), ("pendulum", 0)])
def test_random_times_differ_in_single_precision(name, seed):
    """Two times of Lotka–Volterra's seed 4 are drawn 5e-7 apart."""
    raw = sample_dynamics(name, seed)
    assert min(np.diff(times).min() for times in raw.times) > 1.9e-6
    data = load_forecast_windows(name, history=20, horizon=2, hold_out="series", seed=seed)
    assert all((np.diff(part.past_times, axis=1) > 0).all() for part in (data.train, data.validation, data.test))


def test_a_request_has_the_last_observations_and_the_times_after_them(table, tmp_path):
    units = load(table).units
    rows = [f"c,{t},{'' if t > 6 or t == 2 else t},1" for t in range(10)]
    request = read_window_request(write(tmp_path / "new.csv", *rows, "d,5,3,0", "d,6,,0"), units)
    assert request.names == ["c", "d"]
    assert request.rows == [(0, 0, "7"), (0, 1, "8"), (0, 2, "9"), (1, 0, "6")]
    assert request.windows.past_lengths.tolist() == [4, 1]
    np.testing.assert_allclose(request.windows.times * units.time_unit, [[1, 2, 3], [1, 1, 1]], rtol=1e-5)


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        (["a,0,1,0", "a,2,2,0", "a,1,3,0", "a,3,4,0"], r"row 4.*goes back in time from 2 to 1"),
        (["a,0,1,0", "a,2,2,0", "a,2,3,0", "a,3,4,0"], r"row 4.*repeats the time 2"),
        (["a,0,1,0", "a,1,2,0", "a,2,3,0"], r"row 4.*series 'a' has too few rows, 3; at least 4"),
        (
            ["a,0,1,0", "a,1,2,0", "a,1.000000000001,3,0", "a,3,4,0", "a,4,4,0", "a,5,4,0"],
            r"row 4.*times that are too close",
        ),
        (["a,0,,0", "a,1,,0", "a,2,,0", "a,3,1,0"], r"'u' has no value in the training split"),
        (["a,0,1,0", "a,1,2,", "a,2,3,0", "a,3,4,0"], r"row 3.*has no 'warm', which must be known at all times"),
        (["a,0,1,0", "a,1,x,0", "a,2,3,0", "a,3,4,0"], r"row 3"),
    ],
)
def test_bad_files_are_refused_with_their_line(tmp_path, rows, words):
    with pytest.raises(DataError, match=words):
        load(write(tmp_path / "bad.csv", *rows))


def test_bad_columns_and_too_few_series_are_refused(table):
    with pytest.raises(DataError, match="no column 'cold'; it has u, warm: give --context the names"):
        load(table, context=("cold",))
    with pytest.raises(DataError, match="no column of values besides u, warm"):
        load(table, context=("u", "warm"))
    with pytest.raises(DataError, match="has 2 series: give at least 3"):
        load(table, hold_out="series")


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        (["c,0,,1", "c,1,,1"], "series 'c' has no observation to start from"),
        (["c,0,1,1", "c,1,2,1"], "row 3.*has nothing to forecast: add rows with later times and empty u"),
        (["c,0,1,1", "c,1,,"], "row 3.*has no 'warm'"),
        (["c,0,1,1", "c,1,2,1", "c,1.000000000001,3,1", "c,2,,1"], "row 4.*times that are too close"),
    ],
)
def test_bad_requests_are_refused(table, tmp_path, rows, words):
    with pytest.raises(DataError, match=words):
        read_window_request(write(tmp_path / "new.csv", *rows), load(table).units)


def write_series(path: Path, count: int, rows: int, value) -> str:
    lines = [f"{i},{t},{value(i, t)}" for i in range(count) for t in range(rows)]
    return str(write(path, *lines, header="series,time,u"))


def test_every_series_is_in_one_fold_and_test_series_are_in_none(tmp_path):
    path = write_series(tmp_path / "many.csv", 12, 8, lambda i, t: i + np.sin(t))
    data = load_forecast_windows(path, history=3, horizon=2, hold_out="series", folds=None)
    assert len(data.units.autoregressions) == data.train.anchor.shape[1] == 5  # fewer than 50 series
    np.testing.assert_array_equal(data.train.values, data.validation.values)
    folds = {i: set(data.train.fold[data.train.series == i].ravel().tolist()) for i in set(data.train.series.tolist())}
    assert all(len(found) == 1 for found in folds.values())
    assert set().union(*folds.values()) == set(range(5))
    assert (data.test.fold == -1).all()
    assert not set(data.test.series.tolist()) & set(folds)


def test_the_times_of_a_single_series_are_in_consecutive_folds(tmp_path):
    path = write_series(tmp_path / "one.csv", 1, 60, lambda i, t: np.sin(t))
    data = load_forecast_windows(path, history=3, horizon=2, folds=5)
    row = data.train.origin[:, None] + 1 + np.arange(2)
    inside = ~np.isnan(data.train.values[:, :, 0])
    first, last = row[inside].min(), row[inside].max()
    assert (first, last) == (1, 48)  # all but the last 11 of 59
    np.testing.assert_array_equal(data.train.fold[inside], (row[inside] - 1) * 5 // 48)


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (lambda i, t: np.exp(3 * np.sin(0.7 * t + i)), "log"),
        (lambda i, t: np.sin(t + i), None),  # negative values stay as they are
    ],
)
def test_validation_chooses_the_transform_and_values_can_be_restored(tmp_path, value, kind):
    path = write_series(tmp_path / "positive.csv", 6, 20, value)
    data = load_forecast_windows(path, history=4, horizon=2, folds=3, transform="auto")
    assert [each.kind for each in data.units.transforms] == ([kind] if kind else [])
    truth = np.array([[value(i, r + 1)] for i, r in zip(data.test.series, data.test.origin, strict=True)])
    np.testing.assert_allclose(data.units.restore(data.test.values[:, 0]), truth, rtol=1e-4, atol=1e-5)
    assert data.units.value_scale == pytest.approx([np.std([value(i, t) for i in range(6) for t in range(17)])])


def test_where_times_are_held_out_the_last_training_times_choose_the_transform(tmp_path):
    """Peaks, of which a transform is easier to forecast, become waves, of which none is."""
    value = lambda i, t: np.exp(3 * np.sin(0.7 * t + i)) if t < 22 else 10 + 9 * np.sin(0.7 * t + i)
    path = write_series(tmp_path / "peaks.csv", 8, 40, value)
    load = lambda hold_out: load_forecast_windows(
        path, history=4, horizon=2, hold_out=hold_out, folds=4, transform="auto"
    )
    assert not load("times").units.transforms
    assert load("series").units.transforms
