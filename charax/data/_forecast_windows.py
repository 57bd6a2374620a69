"""Windows of series: past observations, from which the state is inferred, and the observations that follow."""

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from jaxtyping import Float64, Int

from charax.data._autoregression import fit_autoregressions
from charax.data._errors import DataError
from charax.data._fold_plan import Cut, FoldPlan, cut_series, cut_times
from charax.data._limits import check_limit
from charax.data._names import HoldOut, Transform, TransformChoice
from charax.data._standardizer import Standardizer
from charax.data._transform import TRANSFORMS, ValueTransform
from charax.data._windows import ForecastWindowData, ForecastWindows, WindowUnits
from charax.data.files._dispatch import find_path, read_raw_series
from charax.data.files._series import RawSeries, SeriesRequest
from charax.data.sources._dynamics import DYNAMICS, sample_dynamics


def load_forecast_windows(
    name: str,
    *,
    series: str = "series",
    time: str = "time",
    context: Sequence[str] = (),
    history: int,
    horizon: int,
    hold_out: HoldOut = "times",
    folds: int | None = 1,
    transform: TransformChoice = "identity",
    seed: int = 0,
) -> ForecastWindowData:
    """Load series, and cut them into windows of past observations with the ones that follow.

    A file is a long table with a row per series and time, or an `.npz` with `x` and perhaps `t` and `lengths`; empty
    cells, or NaN, are missing values. Every row but the last of a series is the end of a window. Where the last times
    are held out, the last fifth of the rows of a series is for the test, and the part before it, half as long, for
    validation: a window belongs to the split of what is to be forecast from it, and never reaches into the next split.
    With several folds, the training and the validation split are both all that is not for the test: each value is in
    the fold of its series, or, where the times of fewer series than folds are held out, in one of consecutive blocks of
    time; member k of a model learns from all other folds and is validated on fold k.

    Args:
        name: The path of the file, or "pendulum" or "lotka-volterra" for simulated series with irregular times and
            noise.
        series: The column that names the series, in a table.
        time: The column of times or dates, in a table.
        context: Columns that are known at all times, also in the future; all others are values to forecast.
        history: The maximum number of past observations.
        horizon: The maximum number of observations to forecast.
        hold_out: "times": the last times of every series are for the test. "series": a fifth of the series.
        folds: The number of folds; 1 for a validation split. None: 5 for fewer than 50 series, else 1.
        transform: What is applied to values before they are scaled. "auto": the one with the least error of the linear
            forecast, for values that are never negative: on validation, or, where the last times are held out, on the
            training times before them, forecast from what is known earlier (rolling origins).
        seed: Seed of the held-out series, and of simulated ones.

    Returns:
        The windows.

    Raises:
        DataError: If the file cannot be read, has too few rows or series, the times of a series do not increase, a
            column is missing, or a known column has an empty cell; the message names the file, the row and the fix.

    ```python
    from charax.data import load_forecast_windows

    data = load_forecast_windows("pendulum", history=5, horizon=3, hold_out="series")
    assert set(data.test.series).isdisjoint(data.train.series)
    ```
    """
    if name in DYNAMICS:
        raw = sample_dynamics(name, seed)
    else:
        raw = read_raw_series(find_path(name, DYNAMICS), SeriesRequest(series, time))
    raw, values, known = select_channels(raw, context)
    check_known(raw, len(values), [np.arange(len(times)) for times in raw.times])
    cuts = cut_times(raw) if hold_out == "times" else cut_series(raw, seed)
    plans = FoldPlan.make_all(raw, cuts, by_series=hold_out == "series", folds=folds, seed=seed)
    return fit_windows(raw, plans, (series, time, values, known), history, horizon, transform)


Names = tuple[str, str, tuple[str, ...], tuple[str, ...]]
"""The columns of the series and of the times, the values and the known columns."""


def fit_windows(
    raw: RawSeries,
    plans: Sequence[FoldPlan],
    names: Names,
    history: int,
    horizon: int,
    transform: TransformChoice = "identity",
) -> ForecastWindowData:
    """Cut the windows by the first plan, choose the transform, by the other plans if there are any, and fit the linear
    forecasts that the members of a model correct."""
    kinds = TRANSFORMS if transform == "auto" else (transform,)
    plan, *earlier = plans
    fits = []
    for kind in kinds:
        units = fit_units(raw, plan.cuts, names, history, horizon, kind)
        if kind == kinds[0] or units.transforms:  # else there is nothing to transform
            fits.append((kind, *_fit_splits(raw, plan, units)))
    errors = [error for *_, error in fits]
    if len(fits) > 1:
        scale = np.asarray(fits[0][2].value_scale)
        later = [_later_errors(raw, earlier, names, history, horizon, kind, scale) for kind, *_ in fits]
        errors = [float(np.mean(each)) for each in later] if all(later) else errors
    _, (train, validation, test), units, _ = fits[int(np.argmin(errors))]
    own = np.take_along_axis(validation.anchor, np.maximum(validation.fold, 0)[:, None, :, None], axis=1)[:, 0]
    error, known = np.nan_to_num(own - validation.values), np.isfinite(validation.values).sum(axis=(0, 1))
    std = np.sqrt(np.square(error).sum(axis=(0, 1)) / np.maximum(known, 1))
    units = replace(units, linear_std=tuple(std.tolist()))
    return ForecastWindowData(train, validation, test, units, tuple(raw.names), raw.time_kind)


def _fit_splits(raw: RawSeries, plan: FoldPlan, units: WindowUnits) -> tuple[list[ForecastWindows], WindowUnits, float]:
    """The splits with their linear forecasts, the units with these, and their squared error on validation."""
    splits = [split_windows(raw, plan, number, units) for number in range(3)]
    linear, error = fit_autoregressions(splits[0], splits[1], units, plan.members)
    units = replace(units, autoregressions=linear)
    return [split.anchored(units) for split in splits], units, error


def _later_errors(
    raw: RawSeries,
    plans: Sequence[FoldPlan],
    names: Names,
    history: int,
    horizon: int,
    kind: Transform,
    scale: Float64[np.ndarray, "values"],
) -> list[float]:
    """The squared errors of the linear forecasts on the test splits of plans that leave enough to learn from."""
    errors = []
    for plan in plans:
        try:
            units = fit_units(raw, plan.cuts, names, history, horizon, kind)
            (_, _, test), units, _ = _fit_splits(raw, plan, units)
        except DataError:
            continue
        forecast = units.restore(test.anchor.mean(axis=1))
        errors.append(float(np.nanmean(np.square((forecast - units.restore(test.values)) / scale))))
    return errors


def select_channels(raw: RawSeries, context: Sequence[str]) -> tuple[RawSeries, tuple[str, ...], tuple[str, ...]]:
    """The series with the known columns last."""
    for name in context:
        if name not in raw.channels:
            raise DataError(
                f"{raw.path} has no column {name!r}; it has {', '.join(raw.channels)}: give --context the names of "
                "some of these"
            )
    values = tuple(name for name in raw.channels if name not in context)
    if not values:
        raise DataError(f"{raw.path} has no column of values besides {', '.join(context)}: add one")
    order = [raw.channels.index(name) for name in (*values, *context)]
    chosen = replace(raw, values=[each[:, order] for each in raw.values], channels=(*values, *context), labels=None)
    return chosen, values, tuple(context)


def check_known(raw: RawSeries, values: int, rows: Sequence[Int[np.ndarray, "_"]]) -> None:
    for i, chosen in enumerate(rows):
        empty = np.isnan(raw.values[i][chosen][:, values:])
        if empty.any():
            row, column = (int(index) for index in np.argwhere(empty)[0])
            raise DataError(
                f"{raw.where(i, int(chosen[row]))}: series {raw.names[i]!r} has no {raw.channels[values + column]!r}, "
                "which must be known at all times: fill it in"
            )


def fit_units(
    raw: RawSeries, cuts: list[Cut], names: Names, history: int, horizon: int, kind: Transform = "identity"
) -> WindowUnits:
    """From the rows that are to be forecast in training, and those before them."""
    ends = [end if end > start else 0 for (start, end), _, _ in cuts]
    seen = np.concatenate([values[:end] for values, end in zip(raw.values, ends, strict=True)])
    empty = np.isnan(seen).all(axis=0)
    if empty.any():
        raise DataError(
            f"{raw.path}: the column {raw.channels[int(np.argmax(empty))]!r} has no value in the training split: leave "
            "it out"
        )
    transforms = tuple(_fit_transform(kind, seen[:, j]) for j in range(len(names[2])))
    is_raw = all(each.kind == "identity" for each in transforms)
    _, raw_std = _moments(seen)
    columns = [each.apply(seen[:, j]) for j, each in enumerate(transforms)]
    mean, std = _moments(np.column_stack([*columns, seen[:, len(columns) :]]))
    used = [times[:end] for times, end in zip(raw.times, ends, strict=True) if end > 1]
    gaps = np.concatenate([np.diff(times) for times in used])
    last = max(
        float(np.max(times[np.minimum(np.arange(len(times)) + horizon, len(times) - 1)] - times)) for times in used
    )
    return WindowUnits(
        *names,
        Standardizer(tuple(mean.tolist()), tuple(std.tolist())),
        time_unit=_round(float(gaps.mean()) * max(history, horizon)),
        history=history,
        horizon=horizon,
        last_time=_round(last),
        longest_gap=_round(float(gaps.max())),
        transforms=() if is_raw else transforms,
        raw_std=() if is_raw else tuple(raw_std[: len(transforms)].tolist()),
    )


def _moments(values: Float64[np.ndarray, "n channels"]) -> tuple[np.ndarray, np.ndarray]:
    """Means and standard deviations; a constant column keeps its unit."""
    mean, std = np.nanmean(values, axis=0), np.nanstd(values, axis=0)
    return mean, np.where(std > 1e-12 * np.abs(mean), std, 1.0)


def _fit_transform(kind: Transform, values: Float64[np.ndarray, "n"]) -> ValueTransform:
    """Values that are negative stay as they are."""
    is_positive = np.nanmin(values) >= 0 and np.nanmax(values) > 0
    return ValueTransform.fit(kind, values) if is_positive else ValueTransform()


def _round(number: float) -> float:
    """Three digits, so that compiled programs are shared."""
    return float(f"{number:.2e}") or 1.0


def split_windows(raw: RawSeries, plan: FoldPlan, number: int, units: WindowUnits) -> ForecastWindows:
    """All windows of the train (0), validation (1) or test split (2) that have a value to forecast."""
    found = []
    for i, cut in enumerate(plan.cuts):
        start, end = cut[number]
        found.append(cut_window(raw, i, units, np.arange(start - 1, end - 1), units.horizon, end, plan.folds[i]))
    joined = ForecastWindows(*map(np.concatenate, zip(*found, strict=True)))
    joined = joined.take(np.flatnonzero(np.isfinite(joined.values).any(axis=(1, 2))))
    if not len(joined.times):
        name = ("train", "validation", "test")[number]
        raise DataError(f"{raw.path} has no value to forecast in the {name} split: give longer series, or more")
    check_limit("cells", joined.past_values.size + joined.values.size, raw.path, "has in its windows")
    return joined


def cut_window(
    raw: RawSeries,
    i: int,
    units: WindowUnits,
    origins: Int[np.ndarray, "n"],
    horizon: int,
    end: int,
    folds: Int[np.ndarray, "rows"] | None = None,
) -> ForecastWindows:
    """The windows whose last past observations are in the rows `origins`; nothing from the row `end` on is forecast."""
    times: Float64[np.ndarray, "rows"] = raw.times[i]
    scaled = units.standardizer.apply(units.transform(raw.values[i])).astype(np.float32)
    count = len(units.values)
    first = np.maximum(origins - units.history + 1, 0)
    lengths = origins - first + 1
    place = np.arange(units.history)
    past = np.minimum(first[:, None] + place, origins[:, None])
    beyond = np.maximum(place - lengths[:, None] + 1, 0)
    past_times = (times[past] - times[first][:, None]) / units.time_unit + beyond
    past_values = np.where((beyond > 0)[:, :, None], np.nan, scaled[past])
    target = origins[:, None] + 1 + np.arange(horizon)
    inside = target < end
    target = np.minimum(target, max(end - 1, 0))
    lead = (times[target] - times[origins][:, None]) / units.time_unit
    single = lambda array: array.astype(np.float32)
    close = np.argwhere(np.diff(single(past_times), axis=1) <= 0)
    if len(close):
        row = int(past[close[0][0], close[0][1] + 1])
        raise DataError(
            f"{raw.where(i, row)}: series {raw.names[i]!r} has two times that are too close, next to a mean of "
            f"{units.time_unit:g} for a window: merge these rows"
        )
    windows = ForecastWindows(
        single(past_times),
        single(past_values),
        lengths.astype(np.int32),
        single(np.maximum(lead, 0)),
        scaled[target][:, :, count:],
        np.zeros((len(origins), len(units.linear_forecasts), horizon, count), np.float32),
        np.where(inside[:, :, None], scaled[target][:, :, :count], np.float32(math.nan)),
        np.full(len(origins), i, np.int32),
        origins.astype(np.int32),
        np.full(target.shape, -1, np.int32) if folds is None else folds[target].astype(np.int32),
        times[origins],
    )
    return windows.anchored(units)
