"""Windows of new files for a trained forecaster: to forecast, or to evaluate it on."""

from pathlib import Path

import numpy as np

from charax.data._errors import DataError
from charax.data._forecast_windows import check_known, cut_window, select_channels
from charax.data._limits import check_limit
from charax.data._names import TimeKind
from charax.data._series_dataset import check_channels
from charax.data._windows import ForecastWindows, WindowRequest, WindowUnits
from charax.data.files._dispatch import find_path, read_raw_series
from charax.data.files._series import RawSeries, SeriesRequest
from charax.data.files._times import check_time_kind


def read_window_request(path: Path | str, units: WindowUnits, *, time_kind: TimeKind | None = None) -> WindowRequest:
    """Read past observations, and the times to forecast, from a file like the one that was learned from.

    Of each series, the rows after the last observed value are to be forecast; the known columns must be there.

    Args:
        path: A file as for `load_forecast_windows`.
        units: `ForecastWindowData.units` of the training data.
        time_kind: `ForecastWindowData.time_kind` of the training data; None to accept both kinds of times.

    Returns:
        What to forecast.

    Raises:
        DataError: If the file cannot be read or has another kind of times, a series has no observation or nothing to
            forecast, or a known column is empty.

    ```python
    import tempfile
    from pathlib import Path
    from charax.data import Standardizer, WindowUnits, read_window_request

    units = WindowUnits("series", "time", ("u",), (), Standardizer((0.0,), (1.0,)), 1.0, 8, 2, 2.0, 1.0)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "new.csv"
        path.write_text("series,time,u\\na,0,3\\na,1,4\\na,2.5,\\na,7,\\n")
        request = read_window_request(path, units)
    assert [time for _, _, time in request.rows] == ["2.5", "7"] and request.windows.past_lengths.tolist() == [2]
    ```
    """
    raw = _read_new(path, units, time_kind)
    count = len(units.values)
    lasts = []
    for i, values in enumerate(raw.values):
        seen = np.flatnonzero(~np.isnan(values[:, :count]).all(axis=1))
        if not len(seen):
            raise DataError(
                f"{raw.where(i, 0)}: series {raw.names[i]!r} has no observation to start from: add rows with "
                f"{', '.join(units.values)}, or remove the series"
            )
        if seen[-1] == len(values) - 1:
            raise DataError(
                f"{raw.where(i, len(values) - 1)}: series {raw.names[i]!r} has nothing to forecast: add rows with "
                f"later times and empty {', '.join(units.values)}"
            )
        lasts.append(int(seen[-1]))
    check_known(
        raw, count, [np.arange(max(0, last + 1 - units.history), len(raw.times[i])) for i, last in enumerate(lasts)]
    )
    longest = max(len(times) - 1 - last for times, last in zip(raw.times, lasts, strict=True))
    windows, rows = [], []
    for i, last in enumerate(lasts):
        end = len(raw.times[i])
        windows.append(cut_window(raw, i, units, np.array([last]), longest, end))
        rows += [(i, row - last - 1, raw.spell_time(i, row)) for row in range(last + 1, end)]
    return WindowRequest(ForecastWindows(*map(np.concatenate, zip(*windows, strict=True))), raw.names, rows)


def read_labelled_windows(
    path: Path | str, units: WindowUnits, *, time_kind: TimeKind | None = None
) -> ForecastWindows:
    """Read series, all of whose values are to be forecast from those before them, to evaluate a trained model on.

    Args:
        path: A file as for `load_forecast_windows`.
        units: `ForecastWindowData.units` of the training data.
        time_kind: `ForecastWindowData.time_kind` of the training data; None to accept both kinds of times.

    Returns:
        The windows that end at each of the rows, but the last one of a series.

    Raises:
        DataError: If the file cannot be read or has another kind of times, no series has two rows with values, or a
            known column is empty.

    ```python
    import tempfile
    from pathlib import Path
    from charax.data import Standardizer, WindowUnits, read_labelled_windows

    units = WindowUnits("series", "time", ("u",), (), Standardizer((0.0,), (1.0,)), 1.0, 8, 2, 2.0, 1.0)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "new.csv"
        path.write_text("series,time,u\\na,0,3\\na,1,4\\na,2.5,5\\n")
        windows = read_labelled_windows(path, units)
    assert windows.past_lengths.tolist() == [1, 2] and windows.values[0, :, 0].tolist() == [4, 5]
    ```
    """
    raw = _read_new(path, units, time_kind)
    check_known(raw, len(units.values), [np.arange(len(times)) for times in raw.times])
    found = []
    for i, times in enumerate(raw.times):
        found.append(cut_window(raw, i, units, np.arange(len(times) - 1), units.horizon, len(times)))
    windows = ForecastWindows(*map(np.concatenate, zip(*found, strict=True)))
    windows = windows.take(np.flatnonzero(np.isfinite(windows.values).any(axis=(1, 2))))
    if not len(windows.times):
        raise DataError(
            f"{raw.path} has no value to compare a forecast with: give a series of two rows or more, with values of "
            f"{', '.join(units.values)} after the first"
        )
    check_limit("cells", windows.past_values.size + windows.values.size, raw.path, "has in its windows")
    return windows


def _read_new(path: Path | str, units: WindowUnits, time_kind: TimeKind | None) -> RawSeries:
    """Series with the columns of the training data, the known ones last."""
    columns = units.values + units.known
    raw = read_raw_series(find_path(path), SeriesRequest(units.series, units.time, channels=columns))
    check_channels(raw, columns)
    check_time_kind(raw.path, raw.time_kind, time_kind)
    return select_channels(raw, units.known)[0]
