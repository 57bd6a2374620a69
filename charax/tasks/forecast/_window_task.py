"""Forecasts from windows of past observations: squared errors, and prediction intervals that are calibrated."""

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import NormalDist
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from charax.data import DataWarning, ForecastWindows, Standardizer, TimeKind, WindowUnits, read_window_request
from charax.fields import Interpolation
from charax.models import (
    ForecastStart,
    WindowDesign,
    WindowEnsemble,
    WindowForecast,
    combine_forecasts,
    drop_values,
    forecast_losses,
)
from charax.plotting import Section
from charax.solve import Outcome, Solver
from charax.tasks.forecast._correction import choose_correction
from charax.train import (
    ADDED_LATER,
    AbstractTask,
    Predictions,
    Program,
    Splits,
    conformal_quantile,
    mark_failures,
    root_mean_square,
    scale_series,
    solve_in_batches,
    standardize,
)

LEVEL = 0.95
"""The probability of the prediction intervals."""
_HALF_WIDTH = NormalDist().inv_cdf(0.5 + LEVEL / 2)
_KEPT = (1.0, 0.75, 0.5, 0.25, 0.0)
"""Fractions of the learned difference from the linear forecast, of which validation chooses."""
_FAR = 1.5
"""Times the longest time in training, after which a forecast is far outside of it."""


@dataclass(frozen=True)
class WindowSpec:
    """What a forecaster with an inferred state must know about its data.

    ```python
    import charax

    spec = charax.ForecastConfig(data="pendulum", history=5).load_data().spec
    assert len(spec.units.values) == 2
    ```
    """

    units: WindowUnits
    """The columns and their units."""
    start: ForecastStart = field(default="linear", metadata=ADDED_LATER)
    """What the model learns to add to."""
    interpolation: Interpolation = field(default="hermite", metadata=ADDED_LATER)
    """The interpolation of past observations."""
    for_new_series: bool = field(default=False, metadata=ADDED_LATER)
    """Whether the intervals are for series that training does not have."""
    names: tuple[str, ...] = field(default=(), metadata=ADDED_LATER)
    """The names of the first 1,000 series, for figures."""
    time_kind: TimeKind | None = field(default=None, metadata=ADDED_LATER)
    """What the times are; None for a run of an earlier version, which did not store it."""

    @property
    def lead_label(self) -> str:
        """The label of an axis of times after the past observations."""
        unit = ", in days" if self.time_kind == "date" else ""
        return f"{self.units.time} since the last observation{unit}"

    def series_name(self, index: int) -> str:
        """Name a series of the data.

        Args:
            index: Its number, in the order of the file.

        Returns:
            Its name, or for one of many series its number.
        """
        return self.names[index] if index < len(self.names) else f"number {index + 1}"

    def window_name(self, index: int, origin_time: float) -> str:
        """Name a window by its series and the time of its last past observation.

        Args:
            index: The number of the series, in the order of the file.
            origin_time: The time, in units of the data; of dates the days since 1970.

        Returns:
            The name.
        """
        time = repr(origin_time).removesuffix(".0")
        if self.time_kind == "date":
            second = np.datetime64("1970-01-01", "s") + np.timedelta64(round(origin_time * 86_400), "s")
            time = str(second).replace("T", " ").removesuffix(" 00:00:00")
        return f"{self.series_name(index)}, {self.units.time} {time}"


class WindowForecastTask(AbstractTask):
    """Learn how series continue from windows of past observations.

    ```python
    import jax
    import charax

    config = charax.ForecastConfig(data="pendulum", history=5, width=8)
    model = config.build_task(config.load_data().spec).build(jax.random.key(0))
    assert model.calibration.tolist() == [1.0, 1.0]
    ```
    """

    design: WindowDesign = eqx.field(static=True)
    """Sizes of the model."""
    solver: Solver
    """How to integrate between two forecasts."""
    spec: WindowSpec = eqx.field(static=True)
    """The description of the data."""
    drop_augmentation: float = eqx.field(static=True, default=0.0)
    """Up to this fraction of the past values of a window is removed at random in each step of training."""

    @property
    def monitor(self) -> str:
        # The standard deviations are calibrated afterwards.
        return "squared_error"

    @property
    def higher_is_better(self) -> bool:
        return False

    def build(self, key: PRNGKeyArray) -> WindowEnsemble:
        units = self.spec.units
        return WindowEnsemble.build(
            self.design, len(units.linear_forecasts), len(units.values), len(units.known), key=key
        )

    def loss(
        self, model: eqx.Module, batch: ForecastWindows, key: PRNGKeyArray
    ) -> tuple[Float[Array, ""], dict[str, Float[Array, ""]]]:
        drop_key, state_key = jax.random.split(key)
        if self.drop_augmentation:
            past = drop_values(jnp.asarray(batch.past_values), self.drop_augmentation, drop_key)
            batch = batch._replace(past_values=past)
        values = {
            name: value.mean() for name, value in self._metrics(model, batch, state_key, is_training=True).items()
        }
        return values.pop("loss"), values

    def metrics(self, model: eqx.Module, batch: ForecastWindows) -> dict[str, Float[Array, "batch"]]:
        return self._metrics(model, batch, None, is_training=False)

    def _metrics(
        self, model: eqx.Module, batch: ForecastWindows, key: PRNGKeyArray | None, *, is_training: bool
    ) -> dict[str, Float[Array, "batch"]]:
        assert isinstance(model, WindowEnsemble)
        out = model(*map(jnp.asarray, batch[:6]), solver=self.solver, key=key)
        values, fold, units = jnp.asarray(batch.values), jnp.asarray(batch.fold), self.spec.units
        mean, std = combine_forecasts(out, fold)
        averaged = WindowForecast(mean, std, out.divergence.mean(axis=0), None, out.outcome.max())
        observed = ~jnp.isnan(values)
        count = jnp.maximum(observed.sum(axis=(1, 2)), 1)
        truth = jnp.where(observed, values, 0)
        error = jnp.where(observed, self._expect(model, mean, std, jnp) - units.restore(truth, jnp), 0)
        error = error / jnp.asarray(units.value_scale)
        inside = observed & (jnp.abs(truth - mean) <= _HALF_WIDTH * units.widen(jnp.asarray(batch.times), std, jnp))
        each = lambda value: jnp.broadcast_to(value.max(), len(values)).astype(float)
        counts = {} if out.nfe is None else {"nfe": each(out.nfe)}
        return {
            "loss": model.losses(out, values, fold) if is_training else forecast_losses(averaged, values),
            "squared_error": jnp.square(error).sum(axis=(1, 2)) / count,
            "covered": inside.sum(axis=(1, 2)) / count,
            "failed": each(out.outcome != Outcome.SUCCESS),
            **counts,
        }

    def summary(self, best: dict[str, Any], test: dict[str, Any]) -> dict[str, Any]:
        root = lambda error: None if error is None else math.sqrt(error)
        found = {
            "scaled_rmse": root(test["test_squared_error"]),
            "validation_scaled_rmse": root(best["validation_squared_error"]),
            "covered": test["test_covered"],
        }
        if len(self.spec.units.values) > 1:
            return found
        (scale,) = self.spec.units.value_scale
        return {"rmse": None if found["scaled_rmse"] is None else scale * found["scaled_rmse"], **found}

    def refine(
        self, model: eqx.Module, splits: Splits, say: Callable[[str], None]
    ) -> tuple[eqx.Module, dict[str, Any]]:
        """Choose on values that the members have not seen how much of their difference from the linear forecast to
        keep, and calibrate the prediction intervals there: split conformal, or with several members cross-conformal,
        and for new series with the quantiles of Student's t for as many series as there are."""
        assert isinstance(model, WindowEnsemble)
        windows: ForecastWindows = splits.validation
        mean, std = self._scaled(model, windows)
        linear, _ = self._scaled(model.scale_correction(0.0), windows)
        errors = {kept: self._squared_errors(model, windows, linear + kept * (mean - linear), std) for kept in _KEPT}
        kept = choose_correction(errors, windows.series)
        if kept < 1:
            say(f"Differences from the linear forecast are kept to {kept:.0%}, as validation asks for")
            model = model.scale_correction(kept)
            mean, std = self._scaled(model, windows)
        errors = np.abs(windows.values - mean)
        groups = len(np.unique(windows.series)) if self.spec.for_new_series else None
        scores = np.moveaxis(errors / std, 2, 0)
        factors = [conformal_quantile(each, LEVEL, groups=groups) / _HALF_WIDTH for each in scores]
        say(f"Prediction intervals calibrated on validation: {', '.join(f'{each:.2f}' for each in factors)}")
        ratios = [root_mean_square(each) / factor for each, factor in zip(scores, factors, strict=True)]
        return model.calibrate(jnp.asarray(factors, jnp.float32), jnp.asarray(ratios, jnp.float32)), {}

    def _squared_errors(
        self, model: WindowEnsemble, windows: ForecastWindows, mean: np.ndarray, std: np.ndarray
    ) -> Float[np.ndarray, "windows horizon values"]:
        units = self.spec.units
        error = self._expect(model, mean, std) - units.restore(windows.values)
        return np.square(error / np.asarray(units.value_scale))

    def _expect(self, model: WindowEnsemble, mean: Any, std: Any, xp: Any = np) -> Any:
        """Expected values, from the size of the errors: intervals are wider if few series calibrate them."""
        return self.spec.units.expect(mean, std * xp.asarray(model.error_ratio), xp)

    def forecast(
        self, model: eqx.Module, windows: ForecastWindows, *, batch_size: int = 256
    ) -> tuple[Float[np.ndarray, "n h v"], Float[np.ndarray, "n h v"], Float[np.ndarray, "n h v"]]:
        """Forecast the values of windows, in the units of the data.

        After the longest time in training the intervals widen, see `WindowUnits.widen`.

        Args:
            model: The trained model.
            windows: The windows; the values to forecast are not read.
            batch_size: Windows per solve.

        Returns:
            The mean, and the lower and upper end of the 95% prediction interval; NaN where the solve failed.
        """
        assert isinstance(model, WindowEnsemble)
        return self._with_interval(model, windows, *self._scaled(model, windows, batch_size=batch_size))

    def _with_interval(
        self, model: WindowEnsemble, windows: ForecastWindows, mean: np.ndarray, std: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        half = _HALF_WIDTH * self.spec.units.widen(windows.times, std)
        return self._restore(model, mean, std, half)

    def _restore(self, model: WindowEnsemble, mean: Any, std: Any, half: Any, xp: Any = np) -> tuple[Any, Any, Any]:
        """Into the units of the data; what is transformed was never negative in training, and is not in a forecast."""
        units = self.spec.units
        expected = self._expect(model, mean, std, xp)
        found = expected, units.restore(mean - half, xp), units.restore(mean + half, xp)
        return tuple(xp.maximum(part, 0) for part in found) if units.transforms else found  # pyright: ignore[reportReturnType]

    def _scaled(
        self, model: eqx.Module, windows: ForecastWindows, *, batch_size: int = 256
    ) -> tuple[np.ndarray, np.ndarray]:
        """Means and standard deviations, in scaled units."""
        assert isinstance(model, WindowEnsemble)
        solver, windows = self._solver_for(windows), windows.anchored(self.spec.units)

        def solve(rows: np.ndarray, solver: Solver) -> tuple[Array, Array]:
            part = windows.take(rows)
            return _forecast(model, tuple(map(jnp.asarray, (*part[:6], part.fold))), solver)

        count = len(windows.times)
        return solve_in_batches(solve, count, solver, batch_size=min(batch_size, count))  # pyright: ignore[reportReturnType]

    def _solver_for(self, windows: ForecastWindows) -> Solver:
        """More steps where forecasts are further apart than observations were in training."""
        if self.solver.steps is None or not windows.times.size:
            return self.solver
        units = self.spec.units
        gap = float(np.diff(windows.times, axis=1, prepend=np.float32(0)).max()) * units.time_unit
        return replace(self.solver, steps=self.solver.steps * max(1, math.ceil(gap / units.longest_gap - 1e-3)))

    def predict(
        self, model: eqx.Module, inputs: Path, *, strict: bool = False, class_name: str | None = None
    ) -> Predictions:
        """Forecast the rows after the last observation of each series in a file, with 95% prediction intervals."""
        units = self.spec.units
        request = read_window_request(inputs, units, time_kind=self.spec.time_kind)
        mean, lower, upper = self.forecast(model, request.windows)
        lead = request.windows.times * units.time_unit
        far = np.asarray([lead[i, j] > _FAR * units.last_time for i, j, _ in request.rows])
        if far.any():
            warnings.warn(
                f"{inputs}: {int(far.sum())} of {len(far)} forecasts are for more than {_FAR:g} times the longest time "
                f"after a window in training ({units.last_time:g}): they are extrapolations, and their intervals are "
                "widened by a rule of thumb",
                DataWarning,
                stacklevel=2,
            )
        names = units.values
        header = [units.series, units.time]
        header += [word for name in names for word in (name, f"lower {name}", f"upper {name}")]
        rows = [
            [
                request.names[i],
                time,
                *(f"{part[i, j, value]:.6g}" for value in range(len(names)) for part in (mean, lower, upper)),
            ]
            for i, j, time in request.rows
        ]
        meanings = (
            f"{units.series}, {units.time}: the series and the time",
            f"{', '.join(names)}: the expected value",
            "lower …, upper …: the 95% prediction interval",
        )
        return mark_failures(
            Predictions(header, rows, inputs=2, meanings=meanings),
            np.asarray([not np.isfinite(mean[i, j]).all() for i, j, _ in request.rows]),
            inputs=2,
            names=[f"{inputs}: series {request.names[i]!r} at time {time}" for i, _, time in request.rows],
            reason="the solve failed: the series may be far from the training data; check its scale",
            strict=strict,
        )

    def programs(self, model: eqx.Module) -> dict[str, Program]:
        assert isinstance(model, WindowEnsemble)
        units, solver = self.spec.units, replace(self.solver, adjoint="direct")
        count = len(units.values)
        known_scale = Standardizer(units.standardizer.mean[count:], units.standardizer.std[count:])

        def forecast(
            past_times: Array, past: Array, times: Array, known: Array | None = None
        ) -> tuple[Array, Array, Array]:
            windows = scale_series(past_times, units.transform(past, jnp), units.time_unit, units.standardizer)
            lead = jnp.maximum(times, 0)
            context = jnp.zeros((*lead.shape, 0)) if known is None else standardize(known, known_scale)
            inputs = (*windows, lead / units.time_unit, context)
            anchor = jnp.stack([linear.forecast(*inputs, xp=jnp) for linear in units.linear_forecasts], axis=1)
            mean, std = _forecast(model, (*inputs, anchor, jnp.full(lead.shape, -1)), solver)
            # The steps are those of training; `predict` takes more of them for longer gaps.
            is_fine = jnp.diff(lead, axis=1, prepend=0).max(axis=1) <= 1.001 * units.longest_gap
            mean = jnp.where(is_fine[:, None, None] | (solver.steps is None), mean, jnp.nan)
            half = _HALF_WIDTH * units.widen(lead / units.time_unit, std, jnp)
            return self._restore(model, mean, std, half, jnp)

        columns = {"known": ("horizon", len(units.known))} if units.known else {}
        return {
            "forecast": Program(
                forecast,
                {
                    "past_times": (units.history,),
                    "past": (units.history, len(units.standardizer.mean)),
                    "times": ("horizon",),
                    **columns,
                },
                f"The expected {', '.join(units.values)}, and the lower and the upper end of the 95% prediction "
                f"interval, from up to {units.history} past observations of {', '.join((*units.values, *units.known))} "
                "(NaN where one is missing, and behind the last one), the times since the last of them"
                + f", and {', '.join(units.known)} at these times" * bool(units.known)
                + f". NaN if two times are further apart than {units.longest_gap:g}: add times in between.",
            )
        }

    def evaluation_details(self, model: eqx.Module, split: ForecastWindows) -> dict[str, Any]:
        """The error, and that of each value with its coverage, by the number of observations that a forecast is
        ahead."""
        assert isinstance(model, WindowEnsemble)
        scaled, std = self._scaled(model, split)
        mean, lower, upper = self._with_interval(model, split, scaled, std)
        truth = self.spec.units.restore(split.values)
        # As in training, every window counts the same, however many of its values are observed.
        square = self._squared_errors(model, split, scaled, std)
        observed = ~np.isnan(truth)
        each = square.sum(axis=(1, 2), where=observed) / np.maximum(observed.sum(axis=(1, 2)), 1)
        rows = []
        for j, name in enumerate(self.spec.units.values):
            for ahead in range(truth.shape[1]):
                known = ~np.isnan(truth[:, ahead, j])
                if known.any():
                    true, at = truth[known, ahead, j], (known, ahead, j)
                    inside = (lower[at] <= true) & (true <= upper[at])
                    rows.append(
                        {
                            "value": name,
                            "ahead": ahead + 1,
                            "count": int(known.sum()),
                            "rmse": float(np.sqrt(np.mean((mean[at] - true) ** 2))),
                            "covered": float(inside.mean()),
                        }
                    )
        return {"scaled_rmse": float(np.sqrt(each.mean())), "horizons": rows}

    def plot(self, model: eqx.Module, splits: Splits, folder: Path, *, data: str) -> list[Path]:
        from charax.tasks.forecast._window_plots import plot_windows

        return [plot_windows(self, model, splits.test, folder / "forecast.png")]

    def report(self, model: eqx.Module, splits: Splits, *, data: str) -> list[Section]:
        from charax.tasks.forecast._window_report import report_windows

        return report_windows(self, model, splits)


@eqx.filter_jit
def _forecast(model: WindowEnsemble, windows: tuple[Array, ...], solver: Solver) -> tuple[Array, Array]:
    *inputs, fold = windows
    return combine_forecasts(model(*inputs, solver=solver), fold)  # pyright: ignore[reportArgumentType]
