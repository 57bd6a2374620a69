"""Dates as times of series: in text files and in Parquet, as they are read, and as they are written again."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from charax.data import (
    DataError,
    SeriesColumns,
    SeriesScaling,
    Standardizer,
    load_forecast_windows,
    load_series,
    load_series_dataset,
    read_forecast_times,
    read_labelled_series,
    read_labelled_windows,
    read_series,
    read_window_request,
)
from charax.data.files._dispatch import read_raw_series
from charax.data.files._series import SeriesRequest

DATES = {
    "ISO dates": ["2020-01-30", "2020-01-31", "2020-02-02"],
    "ISO times": ["2020-01-30T00:00:00", "2020-01-31T00:00:00", "2020-02-02T00:00:00"],
    "day.month.year": ["30.01.2020", "31.01.2020", "02.02.2020"],
    "month/day/year with the time": ["01/30/2020 00:00", "01/31/2020 00:00", "02/02/2020 00:00"],
}


def write(path: Path, times: list[str], *names: str) -> Path:
    rows = [f"{name},{time},{i}" for name in names or ("a",) for i, time in enumerate(times)]
    path.write_text("\n".join(["series,time,u", *rows]))
    return path


@pytest.mark.parametrize("dates", DATES)
def test_dates_are_days_and_are_spelled_as_in_the_file(dates, tmp_path):
    raw = read_raw_series(write(tmp_path / "a.csv", DATES[dates]), SeriesRequest())
    assert raw.times[0].tolist() == [18_291, 18_292, 18_294]
    assert raw.time_kind == "date"
    assert [raw.spell_time(0, row) for row in range(3)] == DATES[dates]


def test_dates_of_a_parquet_are_read_and_written_to_the_microsecond(tmp_path):
    texts = ["2020-01-30 00:00:00", "2020-01-30 12:00:00.125", "2020-02-02 06:30:00.000001"]
    times = pd.to_datetime(texts, format="ISO8601")
    pd.DataFrame({"series": "a", "time": times, "u": [1.0, 2.0, 3.0]}).to_parquet(tmp_path / "a.parquet")
    raw = read_raw_series(tmp_path / "a.parquet", SeriesRequest())
    assert raw.time_kind == "date"
    assert pd.to_datetime([raw.spell_time(0, row) for row in range(3)], format="ISO8601").equals(times)


@pytest.mark.parametrize("time", ["1577836801", "0.1", "1577836801.25", "1e-07", "-3", "123456789012345680"])
def test_a_number_is_written_as_the_same_number(time, tmp_path):
    raw = read_raw_series(write(tmp_path / "a.csv", [time]), SeriesRequest())
    assert raw.time_kind == "number"
    assert raw.spell_time(0, 0) == (time if len(time) < 17 else "1.2345678901234568e+17")
    assert float(raw.spell_time(0, 0)) == float(time)


BAD = {
    "day or month": (["01/02/2020", "01/03/2020"], r"row 2: column 'time' has the date '01/02/2020', with the day or"),
    "a word among dates": (["2020-01-01", "soon"], r"row 3: column 'time' has 'soon', not a finite number or a date"),
    "a word among numbers": (["1", "soon"], r"row 3: column 'time' has 'soon', not a finite number or a date"),
    "infinity": (["1", "inf"], r"row 3: column 'time' has 'inf', not a finite number or a date"),
    "nothing": (["2020-01-01", ""], r"row 3: series 'a' has no finite time there: fill it in, or remove the row"),
    "back": (["2020-02-01", "2020-01-31"], r"row 3: series 'a' goes back in time from 2020-02-01 to 2020-01-31: sort"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_times_are_named_as_the_file_spells_them(name, tmp_path):
    times, words = BAD[name]
    with pytest.raises(DataError, match=words):
        read_raw_series(write(tmp_path / "a.csv", times), SeriesRequest())


def test_forecasts_from_starting_values_have_dates_too(tmp_path):
    times = [f"2020-01-{day:02}" for day in range(1, 9)]
    data = load_series(str(write(tmp_path / "a.csv", times)))
    assert data.time_kind == "date"
    assert data.test.t.tolist() == [7]  # days since the start
    request = read_forecast_times(write(tmp_path / "new.csv", ["3.1.2021", "13.1.2021"]), data.columns)
    assert request.observations.t.tolist() == [0, 10]
    assert request.times == ["3.1.2021", "13.1.2021"]
    with pytest.raises(DataError, match="row 3: column 'time' has nothing, not a finite number or a date"):
        load_series(str(write(tmp_path / "a.csv", [*times[:1], "", *times[1:]])))


UNITS = load_forecast_windows("pendulum", history=3, horizon=2).units
SCALING = SeriesScaling(("u",), Standardizer((0.0,), (1.0,)), duration=4.0, length=3.0)
READERS = {
    "series": lambda path, kind: read_series(path, SCALING, time_kind=kind),
    "labelled series": lambda path, kind: read_labelled_series(path, SCALING, classes=("0", "1"), time_kind=kind),
    "forecasts": lambda path, kind: read_forecast_times(path, SeriesColumns("series", "time", ("u",)), time_kind=kind),
    "windows": lambda path, kind: read_window_request(path, UNITS, time_kind=kind),
    "labelled windows": lambda path, kind: read_labelled_windows(path, UNITS, time_kind=kind),
}


@pytest.mark.parametrize("reader", READERS)
def test_times_of_the_other_kind_are_refused(reader, tmp_path):
    """Days would be read as hours, or whatever the unit of the numbers was in training."""
    columns = ",".join(("series", "time", "u", *UNITS.values, "label"))
    for name, times in (("number", ("1", "2", "3")), ("date", ("2020-01-01", "2020-01-02", "2020-01-03"))):
        rows = [f"a,{time},1,{value},{value},1" for time, value in zip(times, ("1", "2", ""), strict=True)]
        (tmp_path / f"{name}.csv").write_text("\n".join([columns, *rows]))
    read = READERS[reader]
    for kind in ("number", "date"):
        read(tmp_path / f"{kind}.csv", kind)
        read(tmp_path / f"{kind}.csv", None)  # a run of an earlier version
    with pytest.raises(DataError, match=r"date\.csv has dates as times where the training data have numbers: give n"):
        read(tmp_path / "date.csv", "number")
    with pytest.raises(DataError, match=r"number\.csv has numbers as times where the training data have dates: give d"):
        read(tmp_path / "number.csv", "date")


def test_test_series_have_the_times_of_the_others(tmp_path):
    for name, times in (("days", ["2020-01-01", "2020-01-02"]), ("numbers", ["1", "2"])):
        rows = [f"{i},{time},{np.sin(i):.3f},{i % 2}" for i in range(20) for time in times]
        (tmp_path / f"{name}.csv").write_text("\n".join(["series,time,u,label", *rows]))
    days, numbers = (str(tmp_path / f"{name}.csv") for name in ("days", "numbers"))
    assert load_series_dataset(days, test=days).time_kind == "date"
    with pytest.raises(DataError, match=r"numbers\.csv has numbers as times"):
        load_series_dataset(days, test=numbers)
