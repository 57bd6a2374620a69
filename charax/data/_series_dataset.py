"""Whole series with a class or a number each: from a file to three splits that are ready to train on."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from jaxtyping import Float64, Int, Int32

from charax.data._errors import DataError
from charax.data._names import TimeKind
from charax.data._raw import sort_classes
from charax.data._series_arrays import SeriesScaling, SeriesSplit
from charax.data._splitting import stratified_split
from charax.data._standardizer import Standardizer
from charax.data.files._dispatch import find_path, read_raw_series
from charax.data.files._layout import Separator
from charax.data.files._numbers import parse_numbers
from charax.data.files._series import RawSeries, SeriesRequest
from charax.data.files._times import check_time_kind
from charax.data.sources._turns import TURNS, sample_turns

_MIN_SERIES = 10
_MAX_FRACTION_OF_CLASSES = 0.5
"""A target with more distinct values than this fraction of the series is not one of a few classes."""


@dataclass(frozen=True)
class SeriesDataset:
    """Series in three splits, standardized as it suits the first of them.

    ```python
    from charax.data import load_series_dataset

    data = load_series_dataset("turns")
    assert data.classes == ("left", "right") and data.train.values.shape[2] == 2
    ```
    """

    name: str
    """The path by which it was loaded."""
    train: SeriesSplit
    """The training split."""
    validation: SeriesSplit
    """The split on which the best weights are selected."""
    test: SeriesSplit
    """The test split."""
    classes: tuple[str, ...]
    """The names of the classes; empty if the target is a number."""
    scaling: SeriesScaling
    """The channels and their units."""
    target_standardizer: Standardizer | None
    """How numbers to predict were scaled; None for classes."""
    notes: tuple[str, ...] = ()
    """What to know about the data, one line each."""
    time_kind: TimeKind = "number"
    """What the times are."""


def load_series_dataset(
    name: str,
    *,
    test: str | None = None,
    target: str = "label",
    series: str = "series",
    time: str = "time",
    regression: bool = False,
    dropped_percent: float = 0.0,
    separator: Separator | None = None,
    seed: int = 0,
    validation_fraction: float = 0.15,
    test_fraction: float = 0.2,
) -> SeriesDataset:
    """Load whole series with a class or a number each.

    A file is a `.ts` of the UEA and UCR archives (also `.ts.gz`); an `.npz` with `x` [n, length, channels], in which
    NaN is a missing value, `y`, and perhaps the times `t` and the `lengths`; or a long table with a row per series and
    time, a column per channel, empty cells where a value is missing, and a target that does not change within a series.

    Channels are standardized over all observed values of the training split. Times count from the first observation of
    a series, in units of the mean duration of a training series. Splits are made by series.

    Args:
        name: The path of the file, or "turns" for 300 built-in series: circles that are run through to the left or to
            the right.
        test: The path of a file of test series; a part of the first file if left out.
        target: The column of the class or the number in a table; other files have one place for it.
        series: The column that names the series, in a table.
        time: The column of times or dates, in a table.
        regression: Whether the target is a number to predict instead of a class.
        dropped_percent: Remove this many percent of all observations at random, chosen by the seed, to see what a
            model can do without them.
        separator: The separator of a text file; found out if left out.
        seed: Seed of the splits and of the removed observations.
        validation_fraction: The size of the validation split, as a fraction of the series in the first file.
        test_fraction: The size of the test split, where there is no file for it.

    Returns:
        The data set.

    Raises:
        DataError: If a file cannot be read or split, the times of a series do not increase, a channel has no value at
            all, or the test series have other channels or classes; the message names the file, the row and the fix.

    ```python
    import tempfile
    from pathlib import Path
    import numpy as np
    from charax.data import load_series_dataset

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "waves.npz"
        np.savez(path, x=np.random.default_rng(0).normal(size=(20, 7, 2)), y=np.arange(20) % 2)
        data = load_series_dataset(str(path))
    assert data.classes == ("0", "1") and data.train.values.shape == (12, 7, 2)
    ```
    """
    request = SeriesRequest(series, time, target, separator=separator)
    raw = sample_turns(seed) if name == TURNS else read_raw_series(find_path(name, (TURNS,)), request)
    held_out = None if test is None else read_raw_series(find_path(test), request._replace(channels=raw.channels))
    if held_out is not None:
        check_channels(held_out, raw.channels)
        check_time_kind(held_out.path, held_out.time_kind, raw.time_kind)
    if regression:
        classes, targets = (), [read_numbers(each, target) for each in (raw, held_out) if each is not None]
    else:
        classes = _find_classes(raw, target)
        targets = [_read_classes(each, classes) for each in (raw, held_out) if each is not None]
    fractions = [validation_fraction] if held_out is not None else [validation_fraction, test_fraction]
    rows = _split(raw, targets[0], classes, fractions, seed)
    parts = [_Part(raw, targets[0], each) for each in rows]
    if held_out is not None:
        parts.append(_Part(held_out, targets[1], np.arange(len(held_out.names))))
    observed = [_drop(part, dropped_percent, [seed, number]) for number, part in enumerate(parts)]
    scaling = SeriesScaling.fit(raw.channels, [raw.times[i] for i in rows[0]], observed[0], raw.path)
    length = max(len(values) for part in observed for values in part)
    standardizer = Standardizer.fit(parts[0].chosen[:, None]) if regression else None
    splits = [
        scaling.split(part.raw, part.rows, values, length=length)._replace(
            targets=part.chosen if standardizer is None else standardizer.apply(part.chosen[:, None])[:, 0]
        )
        for part, values in zip(parts, observed, strict=True)
    ]
    short = sum(len(times) == 1 for times in raw.times)
    notes = (f"{short} series have a single observation: their path does not move",) if short else ()
    return SeriesDataset(
        name,
        *splits,
        classes=classes,
        scaling=scaling,
        target_standardizer=standardizer,
        notes=notes,
        time_kind=raw.time_kind,
    )


def read_series(
    path: Path | str,
    scaling: SeriesScaling,
    *,
    series: str = "series",
    time: str = "time",
    time_kind: TimeKind | None = None,
) -> "NamedSeries":
    """Read series for a trained model. Labels are not needed; series may be longer than those trained on.

    Args:
        path: A file as for `load_series_dataset`.
        scaling: `SeriesDataset.scaling` of the training data.
        series: The column that names the series, in a table.
        time: The column of times or dates, in a table.
        time_kind: `SeriesDataset.time_kind` of the training data; None to accept both kinds of times.

    Returns:
        The series, ready for the model.

    Raises:
        DataError: If the file cannot be read, has other channels or another kind of times, or the times of a series
            do not increase.

    ```python
    import tempfile
    from pathlib import Path
    from charax.data import SeriesScaling, Standardizer, read_series

    scaling = SeriesScaling(("height",), Standardizer((0.0,), (2.0,)), duration=4.0, length=3.0)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "new.csv"
        path.write_text("series,time,height\\na,3,1\\na,5,\\nb,0,8\\n")
        new = read_series(path, scaling)
    assert new.names == ["a", "b"] and new.split.lengths.tolist() == [2, 1]
    ```
    """
    raw = _read_new(path, SeriesRequest(series, time, channels=scaling.channels), time_kind)
    rows = np.arange(len(raw.names))
    split = scaling.split(raw, rows, raw.values, length=max(len(values) for values in raw.values))
    return NamedSeries(split, raw.names)


def read_labelled_series(
    path: Path | str,
    scaling: SeriesScaling,
    *,
    classes: Sequence[str] = (),
    target_standardizer: Standardizer | None = None,
    target: str = "label",
    series: str = "series",
    time: str = "time",
    time_kind: TimeKind | None = None,
) -> SeriesSplit:
    """Read series with their classes or numbers, to evaluate a trained model on.

    Args:
        path: A file as for `load_series_dataset`.
        scaling: `SeriesDataset.scaling` of the training data.
        classes: `SeriesDataset.classes` of the training data; empty for numbers.
        target_standardizer: `SeriesDataset.target_standardizer` of the training data; None for classes.
        target: The column of the class or the number, in a table.
        series: The column that names the series, in a table.
        time: The column of times or dates, in a table.
        time_kind: `SeriesDataset.time_kind` of the training data; None to accept both kinds of times.

    Returns:
        The series.

    Raises:
        DataError: If the file cannot be read, has other channels, another kind of times or a class that no training
            series had, or the times of a series do not increase.

    ```python
    import tempfile
    from pathlib import Path
    from charax.data import SeriesScaling, Standardizer, read_labelled_series

    scaling = SeriesScaling(("height",), Standardizer((0.0,), (2.0,)), duration=4.0, length=3.0)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "new.csv"
        path.write_text("series,time,height,label\\na,3,1,up\\na,5,,up\\nb,0,8,down\\n")
        new = read_labelled_series(path, scaling, classes=("down", "up"))
    assert new.targets.tolist() == [1, 0]
    ```
    """
    raw = _read_new(path, SeriesRequest(series, time, target, channels=scaling.channels), time_kind)
    if target_standardizer is None:
        targets = _read_classes(raw, tuple(classes))
    else:
        targets = target_standardizer.apply(read_numbers(raw, target)[:, None])[:, 0]
    split = scaling.split(raw, np.arange(len(raw.names)), raw.values, length=max(len(values) for values in raw.values))
    return split._replace(targets=targets)


@dataclass(frozen=True)
class NamedSeries:
    """Series for a trained model, and what they are called.

    ```python
    from charax.data import NamedSeries

    assert {"split", "names"} <= set(NamedSeries.__dataclass_fields__)
    ```
    """

    split: SeriesSplit
    """The series; their targets are zeros."""
    names: list[str]
    """What each of them is called: a name, or a number in the file."""


@dataclass(frozen=True)
class _Part:
    """Some series of a file."""

    raw: RawSeries
    targets: np.ndarray
    rows: Int[np.ndarray, "n"]

    @property
    def chosen(self) -> np.ndarray:
        return self.targets[self.rows]


def _read_new(path: Path | str, request: SeriesRequest, time_kind: TimeKind | None) -> RawSeries:
    """Series like those of the training data."""
    raw = read_raw_series(find_path(path), request)
    check_channels(raw, request.channels)
    check_time_kind(raw.path, raw.time_kind, time_kind)
    return raw


def check_channels(raw: RawSeries, channels: Sequence[str]) -> None:
    """Refuse series with another number of channels."""
    if len(raw.channels) != len(channels):
        raise DataError(
            f"{raw.path} has series of {len(raw.channels)} channels where {len(channels)} are expected: give the "
            "channels of the training data, in the same order"
        )


def read_numbers(raw: RawSeries, target: str) -> Float64[np.ndarray, "n"]:
    """The numbers to predict."""
    labels = raw.labels or []
    numbers = parse_numbers(labels)
    if numbers is None or not np.isfinite(numbers).all():
        wrong = next(i for i, text in enumerate(labels) if not np.isfinite((parse_numbers([text]) or [np.nan])[0]))
        raise DataError(
            f"{raw.where(wrong, 0)}: the target {target!r} of series {raw.names[wrong]!r} is {labels[wrong]!r}, not a "
            "finite number: leave out --regression if these are classes"
        )
    return np.asarray(numbers)


def _find_classes(raw: RawSeries, target: str) -> tuple[str, ...]:
    labels = raw.labels or []
    classes = sort_classes(set(labels))
    if len(classes) < 2:
        raise DataError(f"{raw.path} has only the class {''.join(classes)!r}: a classifier needs two or more")
    if len(classes) > max(2, _MAX_FRACTION_OF_CLASSES * len(labels)):
        hint = ": add --regression if they are numbers to predict" if parse_numbers(labels) is not None else ""
        raise DataError(
            f"{raw.path}: the target {target!r} has {len(classes)} different values in {len(labels)} series{hint}"
        )
    return classes


def _read_classes(raw: RawSeries, classes: tuple[str, ...]) -> Int32[np.ndarray, "n"]:
    index = {name: i for i, name in enumerate(classes)}
    for i, label in enumerate(raw.labels or []):
        if label not in index:
            raise DataError(
                f"{raw.where(i, 0)}: series {raw.names[i]!r} has the class {label!r}, which no training series has; "
                f"they have {', '.join(classes)}"
            )
    return np.asarray([index[label] for label in raw.labels or []], np.int32)


def _split(
    raw: RawSeries, targets: np.ndarray, classes: tuple[str, ...], fractions: list[float], seed: int
) -> list[Int[np.ndarray, "_"]]:
    if classes:
        return stratified_split(targets, fractions, seed=seed, classes=classes, source=str(raw.path))
    count = len(targets)
    if count < _MIN_SERIES:
        raise DataError(f"{raw.path} has {count} series: give at least {_MIN_SERIES}, to train, validate and test")
    order = np.random.default_rng(seed).permutation(count)
    cuts = np.cumsum([max(1, round(fraction * count)) for fraction in fractions])
    return [order[cuts[-1] :], *np.split(order[: cuts[-1]], cuts[:-1])]


def _drop(part: _Part, percent: float, seed: list[int]) -> list[Float64[np.ndarray, "_ channels"]]:
    """The values of the chosen series without some of them."""
    generator = np.random.default_rng(seed)
    values = [part.raw.values[i] for i in part.rows]
    if not percent:
        return values
    return [np.where(generator.uniform(size=each.shape) < percent / 100, np.nan, each) for each in values]
