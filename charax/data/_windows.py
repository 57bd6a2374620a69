"""Windows of series: past observations, the ones that follow, and the units of both."""

import math
from dataclasses import dataclass
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float32, Float64, Int32

from charax.data._autoregression import Autoregression
from charax.data._names import TimeKind
from charax.data._standardizer import Standardizer
from charax.data._transform import ValueTransform


class ForecastWindows(NamedTuple):
    """Past observations and the ones that follow, in scaled units.

    ```python
    from charax.data import load_forecast_windows

    windows = load_forecast_windows("pendulum", history=5, horizon=3).train
    assert windows.past_values.shape[1:] == (5, 2) and windows.values.shape[1:] == (3, 2)
    ```
    """

    past_times: Float32[np.ndarray, "n history"]
    """The time since the first observation of the window; behind the end it increases further."""
    past_values: Float32[np.ndarray, "n history channels"]
    """The values and the known columns; NaN where one is missing, and behind the end."""
    past_lengths: Int32[np.ndarray, "n"]
    """The number of past observations."""
    times: Float32[np.ndarray, "n horizon"]
    """The time since the last past observation; the last one is repeated."""
    known: Float32[np.ndarray, "n horizon known"]
    """The known columns at these times."""
    anchor: Float32[np.ndarray, "n members horizon values"]
    """Linear forecasts of the values at these times, which the members of a model correct."""
    values: Float32[np.ndarray, "n horizon values"]
    """The values at these times; NaN where one is missing, and behind the end."""
    series: Int32[np.ndarray, "n"]
    """The number of the series, in the order of the file."""
    origin: Int32[np.ndarray, "n"]
    """The row of the last past observation within its series."""
    fold: Int32[np.ndarray, "n horizon"]
    """The member of a model that must not learn these values, so that it can be validated on them; -1 for none."""
    origin_time: Float64[np.ndarray, "n"]
    """The time of the last past observation, in units of the data; of dates the days since 1970."""

    def take(self, rows: np.ndarray) -> "ForecastWindows":
        """Select windows.

        Args:
            rows: Their indices, or a mask.

        Returns:
            The selected windows.
        """
        return ForecastWindows(*(part[rows] for part in self))

    def anchored(self, units: "WindowUnits") -> "ForecastWindows":
        """Make the linear forecasts anew, after the times or the autoregressions have changed.

        Args:
            units: The units, with the autoregressions.

        Returns:
            The windows with these forecasts.
        """
        found = [linear.forecast(*self[:5]) for linear in units.linear_forecasts]
        fold = self.fold if self.fold.shape == self.times.shape else np.full(self.times.shape, -1, np.int32)
        return self._replace(anchor=np.stack(found, axis=1).astype(np.float32), fold=fold)


@dataclass(frozen=True)
class WindowUnits:
    """The columns of windows and their units, as plain numbers.

    ```python
    from charax.data import Standardizer, WindowUnits

    units = WindowUnits("city", "day", ("rain",), ("week",), Standardizer((0.0, 3.0), (2.0, 1.0)), 7.0, 10, 5, 4.0, 1.0)
    assert units.value_standardizer.std == (2.0,)
    ```
    """

    series: str
    """The column that names the series."""
    time: str
    """The column of the times."""
    values: tuple[str, ...]
    """The columns to forecast."""
    known: tuple[str, ...]
    """The columns that are known at all times, also in the future."""
    standardizer: Standardizer
    """How the values and the known columns are scaled."""
    time_unit: float
    """The unit of time: as long as the longer one of history and horizon is on average."""
    history: int
    """The maximum number of past observations."""
    horizon: int
    """The number of observations to forecast in training."""
    last_time: float
    """The longest time between a window and a forecast in training, in units of the data."""
    longest_gap: float
    """The longest time between two observations in training, in units of the data."""
    transforms: tuple[ValueTransform, ...] = ()
    """What is applied to the values before they are scaled; nothing if empty."""
    raw_std: tuple[float, ...] = ()
    """The standard deviations of the values before they are transformed; those of the standardizer if empty."""
    autoregressions: tuple[Autoregression, ...] = ()
    """The linear forecasts that the members of a model correct, in scaled units; the last values if empty."""

    linear_std: tuple[float, ...] = ()
    """The standard deviations of the errors of the linear forecasts on validation, in scaled units."""

    @property
    def value_standardizer(self) -> Standardizer:
        """How the transformed values are scaled."""
        count = len(self.values)
        return Standardizer(self.standardizer.mean[:count], self.standardizer.std[:count])

    @property
    def value_scale(self) -> tuple[float, ...]:
        """The standard deviations of the values, in the units of the data."""
        return self.raw_std or self.value_standardizer.std

    @property
    def linear_forecasts(self) -> tuple[Autoregression, ...]:
        """The linear forecasts that the members of a model correct."""
        return self.autoregressions or (Autoregression.persistence(len(self.values), len(self.known)),)

    def transform(self, raw: Any, xp: ModuleType = np) -> Any:
        """Transform values, and leave known columns as they are.

        Args:
            raw: Values, then perhaps known columns, in the units of the data.
            xp: `numpy`, or `jax.numpy`.

        Returns:
            What the standardizer scales.
        """
        if not self.transforms:
            return raw
        columns = [each.apply(raw[..., j], xp) for j, each in enumerate(self.transforms)]
        return xp.concatenate([xp.stack(columns, axis=-1), raw[..., len(columns) :]], axis=-1)

    def restore(self, scaled: Any, xp: ModuleType = np) -> Any:
        """Put values into the units of the data.

        Args:
            scaled: Values in scaled units.
            xp: `numpy`, or `jax.numpy`.

        Returns:
            Values in the units of the data.
        """
        scale = self.value_standardizer
        values = xp.asarray(scale.mean) + xp.asarray(scale.std) * scaled
        if not self.transforms:
            return values
        return xp.stack([each.inverse(values[..., j], xp) for j, each in enumerate(self.transforms)], axis=-1)

    def widen(self, times: Any, std: Any, xp: ModuleType = np) -> Any:
        """Widen prediction intervals after the longest time in training: in proportion to the time, as an error in a
        rate grows, and from at least the errors of the linear forecasts, since what is learned may be sure of anything
        there.

        Args:
            times: The times since the last past observation, in scaled units, of shape (windows, horizon).
            std: Standard deviations in scaled units.
            xp: `numpy`, or `jax.numpy`.

        Returns:
            The standard deviations, as they are up to the longest time in training.
        """
        later = (times * (self.time_unit / self.last_time))[:, :, None]
        least = xp.asarray(self.linear_std or (0.0,) * len(self.values), std.dtype)
        return xp.where(later > 1, later * xp.maximum(std, least), std)

    def expect(self, mean: Any, std: Any, xp: ModuleType = np) -> Any:
        """Compute the expected values, in the units of the data, of forecasts that are normal in scaled units.

        Args:
            mean: Means in scaled units.
            std: Standard deviations in scaled units.
            xp: `numpy`, or `jax.numpy`.

        Returns:
            The expectations, by a quadrature of three points, which is exact for square roots.
        """
        if not self.transforms:
            return self.restore(mean, xp)
        step = math.sqrt(3) * std
        ends = self.restore(mean - step, xp) + self.restore(mean + step, xp)
        return (4 * self.restore(mean, xp) + ends) / 6


@dataclass(frozen=True)
class ForecastWindowData:
    """Windows in three splits.

    ```python
    from charax.data import load_forecast_windows

    data = load_forecast_windows("lotka-volterra", history=5, horizon=3)
    assert data.units.values == ("prey", "predators")
    ```
    """

    train: ForecastWindows
    """The training split."""
    validation: ForecastWindows
    """The split on which the best weights are selected and the prediction intervals are calibrated."""
    test: ForecastWindows
    """The test split."""
    units: WindowUnits
    """The columns and their units."""
    names: tuple[str, ...]
    """The names of the series, in the order of the file."""
    time_kind: TimeKind = "number"
    """What the times are."""


class WindowRequest(NamedTuple):
    """What to forecast: one window per series, and the rows of the answer.

    ```python
    from charax.data import WindowRequest

    assert WindowRequest._fields == ("windows", "names", "rows")
    ```
    """

    windows: ForecastWindows
    """One window per series."""
    names: list[str]
    """The names of the series."""
    rows: list[tuple[int, int, str]]
    """For every row of the answer its series, its position among the times of the window, and the time as the file
    spells it."""
