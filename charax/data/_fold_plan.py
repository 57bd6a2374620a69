"""What of each series is to be forecast in which split, and which member of a model must not learn it."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Int

from charax.data._errors import DataError
from charax.data.files._series import RawSeries

_MIN_ROWS = 4
_MIN_SERIES = 3
_FOLDS, _MANY_SERIES = 5, 50
"""Fewer series than this are cross-fitted in five folds; of more, some are set aside for validation."""
_EARLIER_ORIGINS = 3
"""How many times training times are held out, too, to choose a transform."""

Cut = tuple[tuple[int, int], tuple[int, int], tuple[int, int]]
"""For train, validation and test: the first row to forecast, and the one after the last."""


def cut_times(raw: RawSeries) -> list[Cut]:
    cuts = []
    for i, times in enumerate(raw.times):
        count = len(times)
        if count < _MIN_ROWS:
            raise DataError(
                f"{raw.where(i, count - 1)}: series {raw.names[i]!r} has too few rows, {count}; at least {_MIN_ROWS} "
                "are needed, to start from, to train, to validate and to test: add some, or remove the series"
            )
        test = max(1, (count - 1) // 5)
        held_out = test + max(1, test // 2)
        cuts.append(((1, count - held_out), (count - held_out, count - test), (count - test, count)))
    return cuts


def cut_series(raw: RawSeries, seed: int) -> list[Cut]:
    count = len(raw.names)
    if count < _MIN_SERIES:
        raise DataError(
            f"{raw.path} has {count} series: give at least {_MIN_SERIES} to hold some out, or hold out times"
        )
    order = np.random.default_rng(seed).permutation(count)
    test = max(1, count // 5)
    validation = max(1, count // 6)
    split = np.zeros(count, int)
    split[order[:test]], split[order[test : test + validation]] = 2, 1
    everything = lambda i, number: (1, len(raw.times[i])) if split[i] == number else (1, 1)
    return [(everything(i, 0), everything(i, 1), everything(i, 2)) for i in range(count)]


@dataclass(frozen=True)
class FoldPlan:
    """What is to be forecast in each split, and which member of a model must not learn it."""

    cuts: list[Cut]
    folds: list[Int[np.ndarray, "rows"]]
    """The fold of every row of every series; -1 for none."""
    members: int

    @classmethod
    def make_all(
        cls, raw: RawSeries, cuts: list[Cut], *, by_series: bool, folds: int | None, seed: int
    ) -> "list[FoldPlan]":
        """The plan, and where times are held out some that end earlier, by half of a test split each."""
        plans = [cls.make(raw, cuts, by_series=by_series, folds=folds, seed=seed)]
        for back in range(1, 1 + (0 if by_series else _EARLIER_ORIGINS)):
            earlier = [_end_earlier(cut, back) for cut in cuts]
            if 2 * sum(test[0] < test[1] for *_, test in earlier) < len(cuts):
                break
            plans.append(cls.make(raw, earlier, by_series=by_series, folds=folds, seed=seed))
        return plans

    @classmethod
    def make(cls, raw: RawSeries, cuts: list[Cut], *, by_series: bool, folds: int | None, seed: int) -> "FoldPlan":
        used = [
            i for i, (train, validation, _) in enumerate(cuts) if train[0] < train[1] or validation[0] < validation[1]
        ]
        given, folds = folds, folds or (_FOLDS if len(used) < _MANY_SERIES else 1)
        none = [np.full(len(times), -1, np.int32) for times in raw.times]
        if folds == 1:
            for rows, (_, (start, end), _) in zip(none, cuts, strict=True):
                rows[start:end] = 0
            return cls(cuts, none, 1)
        joined: list[Cut] = []
        for train, validation, test in cuts:
            both = [part for part in (train, validation) if part[0] < part[1]]
            whole = (both[0][0], both[-1][1]) if both else (1, 1)
            joined.append((whole, whole, test))
        if by_series and given is not None and given > len(used):
            raise DataError(f"{raw.path} has {len(used)} series to learn from: {given} folds are too many, give fewer")
        blocks = not by_series and len(used) < folds
        folds = folds if blocks else min(folds, len(used))
        order = np.random.default_rng([seed, 1]).permutation(len(used))
        for place, i in zip(order, used, strict=True):
            start, end = joined[i][0]
            rows = np.arange(start, end)
            none[i][start:end] = (rows - start) * folds // (end - start) if blocks else place % folds
        return cls(joined, none, folds)


def _end_earlier(cut: Cut, back: int) -> Cut:
    """All splits of a series earlier by this many halves of its test split; empty if little is left to learn from."""
    (start, first), (_, second), (_, end) = cut
    shift = back * max(1, (end - second) // 2)
    if first - shift < _MIN_ROWS:
        return (1, 1), (1, 1), (1, 1)
    return (start, first - shift), (first - shift, second - shift), (second - shift, end - shift)
