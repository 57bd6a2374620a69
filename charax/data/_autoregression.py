"""A linear forecast of irregular series, which a forecaster starts from and corrects."""

from dataclasses import dataclass, field
from types import ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from jaxtyping import Bool, Float

if TYPE_CHECKING:
    from charax.data._windows import ForecastWindows, WindowUnits

ORDERS = (1, 2, 3, 5, 9, 12, 18)
"""Numbers of past observations, of which validation chooses."""
_RELAXATIONS = 5
"""The number of time constants; validation may choose every other one."""
RIDGES = (1e-3, 1e-1, 1.0, 10.0, 100.0)
"""Weights of the ridge penalty, of which validation chooses."""
_SLOWEST = 4.0
"""The longest time constant, in units of the longest time ahead in training: nearly a straight line until then."""
_OSCILLATIONS = (2, 4)
"""Numbers of damped oscillations instead of relaxations, of which validation chooses: half periods in the longest time
ahead in training."""
_DAMPING = 2.0
"""The time constant of their damping, in units of that time."""
_AVERAGED = 10
"""The best settings, which are averaged: with few series, or a later time to forecast, which one is best is a matter of
luck."""
_AGES = 3
"""Time constants of how long ago a series began."""
_MAX_WINDOWS = 2_000
"""Windows of which the coefficients are fitted."""


@dataclass(frozen=True)
class Autoregression:
    """A forecast that is linear in the last observations, and continues from the last value as a linear ODE does.

    What is added to the last value is a sum of 1, of 1 − exp(−t / τ) for a few time constants τ, and of oscillations
    exp(−t / δ) cos ωt − 1 and exp(−t / δ) sin ωt, where t is the time ahead. Their coefficients are linear in the last
    `order` values of all channels, the gaps between them, the inverse number of past observations, and, since what
    follows depends on how long ago a short series began, exp(−T / θ) and its products with the last values, where T is
    the time from the first to the last past observation. The known
    columns at time t are added. Unlike an autoregression of equal time steps it forecasts any time from observations at
    any times.

    ```python
    import numpy as np
    from charax.data import Autoregression

    last = Autoregression.persistence(1)  # the last value, at all times
    past = np.array([[0.0, 1.0]]), np.array([[[3.0], [4.0]]]), np.array([2])
    assert last.forecast(*past, np.array([[0.5, 9.0]]), np.zeros((1, 2, 0))).ravel().tolist() == [4, 4]
    ```
    """

    order: int
    """The number of past observations."""
    time_constants: tuple[float, ...]
    """The time constants τ of what follows, in scaled units."""
    ages: tuple[float, ...]
    """The time constants θ of how long ago a series began, in scaled units."""
    weights: tuple[tuple[float, ...], ...] = field(repr=False)
    """The coefficients of each value."""
    frequencies: tuple[float, ...] = field(default=(), metadata={"added_later": True})
    """The angular frequencies ω of oscillations, in scaled units."""
    damping: float = field(default=1.0, metadata={"added_later": True})
    """The time constant δ of their damping, in scaled units."""

    @classmethod
    def persistence(cls, values: int, known: int = 0) -> "Autoregression":
        """The forecast that nothing changes.

        Args:
            values: The number of values to forecast.
            known: The number of known columns.

        Returns:
            The autoregression that repeats the last values.
        """
        return cls(1, (), (), ((0.0,) * (2 + values + known),) * values)

    def forecast(
        self, past_times: Any, past_values: Any, past_lengths: Any, times: Any, known: Any, *, xp: ModuleType = np
    ) -> Any:
        """Forecast the values of windows, in scaled units.

        Args:
            past_times: The times of the past observations, of shape (windows, history).
            past_values: Values, then known columns; NaN where one is missing. Shape (windows, history, channels).
            past_lengths: The number of past observations of each window.
            times: The times of the forecasts since the last observation, of shape (windows, horizon).
            known: The known columns at these times, of shape (windows, horizon, known).
            xp: `numpy`, or `jax.numpy`.

        Returns:
            The forecasts, of shape (windows, horizon, values).
        """
        past = past_times, past_values[:, :, : len(self.weights)], past_lengths
        features, last = _features(past, times, known, self.order, self._basis, xp)
        return last + features @ xp.asarray(self.weights, features.dtype).T

    @property
    def _basis(self) -> "_Basis":
        return _Basis(self.time_constants, self.frequencies, self.damping, self.ages)


def fit_autoregressions(
    train: "ForecastWindows", validation: "ForecastWindows", units: "WindowUnits", members: int
) -> tuple[tuple[Autoregression, ...], float]:
    """Fit by ridge regression, once for each fold of values that are left out, and average over the settings that
    forecast these values best: the order, time constants or oscillations, the penalty and whether the known columns are
    of use. If nothing is better than the last value, that is the forecast.

    Known columns that do not change within any series, such as a weight or a dose, are left to what corrects the linear
    forecast: it could only add a constant for each.

    Args:
        train: The windows to fit; the values of fold k are left out for member k.
        validation: The windows that choose; the values of fold k are forecast by member k.
        units: The units of the windows.
        members: The number of folds.

    Returns:
        One autoregression per fold, and their squared error on the values that were left out.

    ```python
    from charax.data import fit_autoregressions, load_forecast_windows

    data = load_forecast_windows("pendulum", history=5, horizon=3, hold_out="series")
    (linear,), error = fit_autoregressions(data.train, data.validation, data.units, 1)
    assert linear.order <= 5 and error < 1
    ```
    """
    spread = lambda windows: windows.take(
        np.unique(np.linspace(0, len(windows.times) - 1, min(_MAX_WINDOWS, len(windows.times))).astype(int))
    )
    train, validation = spread(train), spread(validation)
    span = float(train.times.max()) or 1.0
    gaps = np.diff(train.past_times, axis=1)[np.arange(1, train.past_times.shape[1]) < train.past_lengths[:, None]]
    shortest = float(np.quantile(gaps, 0.1)) if len(gaps) else 0.1 * span
    values, known = train.values.shape[2], train.known.shape[2]
    ages = _rounded(np.geomspace(shortest, span, _AGES))
    relaxations = _rounded(np.geomspace(shortest, _SLOWEST * span, _RELAXATIONS))
    (damping,) = _rounded(np.array([_DAMPING * span]))
    bases = [_Basis(each, (), damping, ages) for each in (relaxations, relaxations[::2])]
    frequencies = _rounded(np.pi / span * np.arange(1, 1 + max(_OSCILLATIONS, default=0)))
    bases += [_Basis((), frequencies[:count], damping, ages) for count in _OSCILLATIONS]
    held_out = [validation.take((validation.fold == k).any(axis=1)) for k in range(members)]
    changing = _changing(train)
    best: list[tuple[float, list[np.ndarray], list[Autoregression]]] = []
    for order in (order for order in ORDERS if order <= train.past_times.shape[1]):
        for basis in bases:
            for used in (changing, np.zeros_like(changing))[: 1 + changing.any()]:
                sums = _gram_matrices(train, order, basis, used, members)
                asked = [_features(_past(part), part.times, used * part.known, order, basis, np) for part in held_out]
                for ridge in RIDGES:
                    weights = [_solve(sums, ridge, k) for k in range(members)]
                    forecasts = [
                        start + features @ rows.T.astype(features.dtype)
                        for (features, start), rows in zip(asked, weights, strict=True)
                    ]
                    each = [_autoregression(order, basis, rows) for rows in weights]
                    best.append((_error(forecasts, held_out, units), forecasts, each))
                    best = sorted(best, key=lambda one: one[0])[:_AVERAGED]
    forecasts = [np.mean(part, axis=0) for part in zip(*(one[1] for one in best), strict=True)]
    averages = tuple(_average([one[2][k] for one in best], values, known) for k in range(members))
    last = Autoregression.persistence(values, known)
    return min(
        ((last,) * members, _error([last.forecast(*part[:5]) for part in held_out], held_out, units)),
        (averages, _error(forecasts, held_out, units)),
        key=lambda one: one[1],
    )


def _rounded(numbers: np.ndarray) -> tuple[float, ...]:
    return tuple(float(f"{each:.4g}") for each in numbers)


def _changing(windows: "ForecastWindows") -> Bool[np.ndarray, "known"]:
    """Which of the known columns change within a series."""
    last = windows.past_values[np.arange(len(windows.times)), windows.past_lengths - 1, windows.values.shape[2] :]
    return (windows.known != last[:, None]).any(axis=(0, 1))


def _autoregression(order: int, basis: "_Basis", rows: np.ndarray) -> Autoregression:
    weights = tuple(map(tuple, rows.tolist()))
    return Autoregression(order, basis.time_constants, basis.ages, weights, basis.frequencies, basis.damping)


def _average(each: list[Autoregression], values: int, known: int) -> Autoregression:
    """The average of linear forecasts is a linear forecast, with the most past observations, time constants and
    frequencies of any of them: the coefficients of what one of them lacks are 0."""
    order, first = max(one.order for one in each), each[0]
    constants = max((one.time_constants for one in each), key=len)
    frequencies = max((one.frequencies for one in each), key=len)
    basis = _Basis(constants, frequencies, first.damping, first.ages)
    columns = lambda order: 1 + order * values + order + len(basis.ages) * (1 + values)
    total = np.zeros((values, basis.size, columns(order)))
    known_total = np.zeros((values, known))
    for one in each:
        rows = np.asarray(one.weights)
        split = one._basis.size * columns(one.order)
        products = rows[:, :split].reshape(values, -1, columns(one.order))
        # Values, gaps, and what does not depend on the order.
        ends = [1 + one.order * values, (1 + one.order * values) + one.order - 1]
        parts = np.split(products, ends, axis=2)
        more = order - one.order
        padded = [
            np.pad(part, ((0, 0), (0, 0), (0, size)))
            for part, size in zip(parts, (more * values, more, 0), strict=True)
        ]
        total[:, basis.places(one._basis)] += np.concatenate(padded, axis=2)
        known_total += rows[:, split:]
    weights = np.concatenate([total.reshape(values, -1), known_total], axis=1) / len(each)
    return _autoregression(order, basis, weights)


def _past(windows: "ForecastWindows") -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    return windows.past_times, windows.past_values[:, :, : windows.values.shape[2]], windows.past_lengths


def _error(forecasts: list[np.ndarray], windows: "list[ForecastWindows]", units: "WindowUnits") -> float:
    """The squared error of the values that each member has not seen, in standard deviations of the raw values."""
    total, count = 0.0, 0
    for k, (forecast, part) in enumerate(zip(forecasts, windows, strict=True)):
        error = (units.restore(forecast) - units.restore(part.values)) / np.asarray(units.value_scale)
        used = ~np.isnan(error) & (part.fold == k)[:, :, None]
        total, count = total + float(np.square(error[used]).sum()), count + int(used.sum())
    return total / max(count, 1)


class _Basis(NamedTuple):
    """What a forecast can add to the last values, as functions of the time ahead."""

    time_constants: tuple[float, ...]
    frequencies: tuple[float, ...]
    damping: float
    ages: tuple[float, ...]
    """Time constants of how long ago a series began."""

    @property
    def size(self) -> int:
        return 1 + len(self.time_constants) + 2 * len(self.frequencies)

    def places(self, other: "_Basis") -> list[int]:
        """Where the functions of another basis are among those of this one."""
        start = 1 + len(self.time_constants)
        relaxed = [1 + self.time_constants.index(each) for each in other.time_constants]
        found = [start + self.frequencies.index(each) for each in other.frequencies]
        return [0, *relaxed, *found, *(len(self.frequencies) + place for place in found)]

    def __call__(self, times: Any, xp: ModuleType) -> Any:
        """The functions at some times, in a new last axis."""
        damped = xp.exp(-times / self.damping)
        found = [xp.ones_like(times), *(-xp.expm1(-times / constant) for constant in self.time_constants)]
        found += [damped * xp.cos(frequency * times) - 1 for frequency in self.frequencies]
        found += [damped * xp.sin(frequency * times) for frequency in self.frequencies]
        return xp.stack(found, axis=2)


class _Sums(NamedTuple):
    """For each value and fold: X'X and X'y of the rows of all other folds."""

    gram: list[list[np.ndarray]]
    moments: list[list[np.ndarray]]


def _gram_matrices(
    train: "ForecastWindows", order: int, basis: _Basis, used: Bool[np.ndarray, "known"], members: int
) -> _Sums:
    features, last = _features(_past(train), train.times, used * train.known, order, basis, np)
    targets = (train.values - last).astype(np.float64)
    sums = _Sums([], [])
    for j in range(targets.shape[2]):
        observed = ~np.isnan(targets[:, :, j])
        rows, answers, folds = features[observed].astype(np.float64), targets[observed][:, j], train.fold[observed]
        total = rows.T @ rows, rows.T @ answers
        left = [folds == k for k in range(members)]
        sums.gram.append([total[0] - rows[k].T @ rows[k] for k in left])
        sums.moments.append([total[1] - rows[k].T @ answers[k] for k in left])
    return sums


def _solve(sums: _Sums, ridge: float, member: int) -> np.ndarray:
    penalty = ridge * np.eye(len(sums.gram[0][member]))
    return np.stack(
        [np.linalg.solve(gram[member] + penalty, moments[member]) for gram, moments in zip(*sums, strict=True)]
    )


def _features(
    past: tuple[Any, Any, Any], times: Any, known: Any, order: int, basis: _Basis, xp: ModuleType
) -> tuple[Any, Any]:
    """The features of every forecast, and the last values."""
    past_times, past_values, past_lengths = past
    back = xp.maximum(past_lengths[:, None] - 1 - xp.arange(order), 0)
    values = xp.take_along_axis(_fill_forward(past_values, xp), back[:, :, None], axis=1)
    clock = xp.take_along_axis(past_times, back, axis=1)
    begun = [xp.exp(-clock[:, :1] / age) for age in basis.ages]
    parts = (
        xp.ones_like(clock[:, :1]),
        values.reshape(values.shape[0], order * values.shape[2]),
        clock[:, :1] - clock[:, 1:],
        (1 / past_lengths[:, None]).astype(clock.dtype),
        *begun,
        *(values[:, 0] * each for each in begun),
    )
    base = xp.concatenate(parts, axis=1)
    products = (basis(times, xp)[:, :, :, None] * base[:, None, None, :]).reshape(
        *times.shape, basis.size * base.shape[1]
    )
    return xp.concatenate([products, known], axis=2), values[:, :1]


def _fill_forward(values: Any, xp: ModuleType) -> Float[Any, "windows history values"]:
    """Values, with the last one where one is missing, and 0, the mean, before there is one."""
    last, filled = xp.zeros_like(values[:, 0]), []
    for row in range(values.shape[1]):
        last = xp.where(xp.isnan(values[:, row]), last, values[:, row])
        filled.append(last)
    return xp.stack(filled, axis=1)
