"""Forecasts: Gaussian likelihood with an estimated noise, relative errors, coverage of the prediction intervals."""

import warnings
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from charax.data import DataWarning, Observations, SeriesColumns, SeriesData, TimeKind, read_forecast_times
from charax.models import Forecaster, ForecasterDesign, Scaling
from charax.plotting import Section
from charax.solve import Outcome, Solver
from charax.train import ADDED_LATER, AbstractTask, Predictions, Program, Splits, mark_failures, solve_in_batches

SHOWN_SERIES = 4
"""Series that a figure shows."""
_FAR = 1.5
"""Times the longest time in training, after which a forecast is far outside of it."""


@dataclass(frozen=True)
class ForecastSpec:
    """What a forecaster must know about its data.

    ```python
    import charax

    spec = charax.ForecastConfig(data="paper").load_data().spec
    assert spec.columns.values and spec.last_time > 0
    ```
    """

    scaling: Scaling
    """Units of context, time and values inside the networks."""
    typical_value: float
    """Mean norm of the values, in two digits, so that compiled programs are shared."""
    columns: SeriesColumns
    """Names of the columns."""
    last_time: float = 0.0
    """The longest time since the start of a series, in three digits."""
    names: tuple[str, ...] = ()
    """The names of the first series, which the figures show."""
    time_kind: TimeKind | None = field(default=None, metadata=ADDED_LATER)
    """What the times are; None for a run of an earlier version, which did not store it."""

    @classmethod
    def from_data(cls, loaded: SeriesData) -> "ForecastSpec":
        """Describe the train and the validation split.

        Args:
            loaded: The data.

        Returns:
            Their description.
        """
        start, t, context, value, _ = (
            np.concatenate(both) for both in zip(loaded.train, loaded.validation, strict=True)
        )
        return cls(
            scaling=Scaling.fit(context, t, np.concatenate([start, value])),
            typical_value=float(f"{np.linalg.norm(value, axis=1).mean():.1e}") or 1.0,
            columns=loaded.columns,
            last_time=float(f"{t.max():.2e}"),
            names=loaded.names[:SHOWN_SERIES],
            time_kind=loaded.time_kind,
        )


class ForecastTask(AbstractTask):
    """Learn how series evolve from their starting values.

    ```python
    import jax
    import charax

    config = charax.ForecastConfig(width=8)
    model = config.build_task(config.load_data().spec).build(jax.random.key(0))
    assert model.log_noise.shape == (1,)
    ```
    """

    design: ForecasterDesign = eqx.field(static=True)
    """Sizes of the model."""
    solver: Solver
    """How to integrate."""
    spec: ForecastSpec = eqx.field(static=True)
    """The description of the data."""

    @property
    def monitor(self) -> str:
        return "loss"

    @property
    def higher_is_better(self) -> bool:
        return False

    def build(self, key: PRNGKeyArray) -> Forecaster:
        return self.design.build(self.spec.scaling, key=key)

    def loss(
        self, model: eqx.Module, batch: Observations, key: PRNGKeyArray
    ) -> tuple[Float[Array, ""], dict[str, Float[Array, ""]]]:
        values = {name: value.mean() for name, value in self.metrics(model, batch).items()}
        return values.pop("loss"), values

    def metrics(self, model: eqx.Module, batch: Observations) -> dict[str, Float[Array, "batch"]]:
        out = model(batch.start, batch.t, batch.context, solver=self.solver)  # pyright: ignore[reportCallIssue]
        error = jnp.linalg.norm(out.mean - batch.value, axis=1)
        standardized = (out.mean - batch.value) / out.noise
        log_noise = jnp.log(out.noise / jnp.asarray(self.spec.scaling.value_scale))
        lower, upper = out.prediction_interval()
        each = lambda value: jnp.broadcast_to(value, error.shape).astype(float)
        return {
            "loss": jnp.mean(0.5 * standardized**2 + log_noise, axis=1),
            "deviation_percent": 100 * error / jnp.linalg.norm(batch.value, axis=1),
            "error_percent": 100 * error / self.spec.typical_value,
            "covered": ((lower <= batch.value) & (batch.value <= upper)).mean(axis=1),
            "failed": each(out.solution.outcome != Outcome.SUCCESS),
            **({} if (nfe := out.solution.stats.nfe) is None else {"nfe": each(nfe)}),
        }

    def summary(self, best: dict[str, Any], test: dict[str, Any]) -> dict[str, Any]:
        return {
            "deviation_percent": test["test_deviation_percent"],
            "error_percent": test["test_error_percent"],
            "validation_error_percent": best["validation_error_percent"],
            "covered": test["test_covered"],
        }

    def predict(
        self, model: eqx.Module, inputs: Path, *, strict: bool = False, class_name: str | None = None
    ) -> Predictions:
        """Forecast the values and their 95% prediction intervals at the times of a file."""
        columns = self.spec.columns
        request = read_forecast_times(inputs, columns, time_kind=self.spec.time_kind)
        mean, lower, upper = self.forecast(model, request.observations)
        far = request.observations.t > _FAR * self.spec.last_time
        if far.any() and self.spec.last_time > 0:
            warnings.warn(
                f"{inputs}: {int(far.sum())} of {len(far)} forecasts are for more than {_FAR:g} times the longest time "
                f"since the start of a series in training ({self.spec.last_time:g}): they are extrapolations, and "
                "their intervals are widened by a rule of thumb",
                DataWarning,
                stacklevel=2,
            )
        names = columns.values
        header = [columns.series, columns.time]
        header += [word for name in names for word in (name, f"lower {name}", f"upper {name}")]
        rows = [
            [name, time, *(f"{part[i, j]:.6g}" for j in range(len(names)) for part in (mean, lower, upper))]
            for i, (name, time) in enumerate(zip(request.names, request.times, strict=True))
        ]
        return mark_failures(
            Predictions(
                header,
                rows,
                inputs=2,
                meanings=(
                    f"{columns.series}, {columns.time}: the series and the time",
                    f"{', '.join(names)}: the expected value",
                    "lower …, upper …: the 95% prediction interval",
                ),
            ),
            np.asarray(~np.isfinite(mean).all(axis=1)),
            inputs=2,
            names=[
                f"{inputs}: series {name!r} at time {time}"
                for name, time in zip(request.names, request.times, strict=True)
            ],
            reason="the solve failed: the forecast may be far from the training data; ask for earlier times, or train "
            "with --damping 1",
            strict=strict,
        )

    def forecast(
        self, model: eqx.Module, observations: Observations, *, batch_size: int = 256
    ) -> tuple[Float[np.ndarray, "n values"], Float[np.ndarray, "n values"], Float[np.ndarray, "n values"]]:
        """Forecast the values of observations.

        After the longest time in training the variance grows in proportion to the time, as that of a random walk does:
        a rule of thumb, because no data say how wrong a model is there.

        Args:
            model: The trained model.
            observations: Starting values, times and context; the values themselves are not read.
            batch_size: Observations per solve.

        Returns:
            The mean, and the lower and upper end of the 95% prediction interval; NaN where the solve failed.
        """

        def solve(rows: np.ndarray, solver: Solver) -> tuple[Array, Array, Array]:
            start, t, context, _, _ = observations.take(rows)
            return _forecast(model, jnp.asarray(start), jnp.asarray(t), jnp.asarray(context), solver)

        mean, lower, upper = solve_in_batches(solve, len(observations.t), self.solver, batch_size=batch_size)
        last = self.spec.last_time
        wider = np.sqrt(np.maximum(observations.t / last, 1.0))[:, None] if last > 0 else 1.0
        return mean, mean - wider * (mean - lower), mean + wider * (upper - mean)

    def programs(self, model: eqx.Module) -> dict[str, Program]:
        spec, columns = self.spec, self.spec.columns

        def forecast(start: Array, time: Array, context: Array | None = None) -> tuple[Array, Array, Array]:
            given = jnp.zeros((time.shape[0], 0)) if context is None else context
            mean, lower, upper = _forecast(model, start, time, given, self.solver)
            wider = jnp.sqrt(jnp.maximum(time / spec.last_time, 1.0))[:, None] if spec.last_time > 0 else 1.0
            return mean, mean - wider * (mean - lower), mean + wider * (upper - mean)

        inputs: dict[str, tuple[int, ...]] = {"start": (spec.scaling.values,), "time": ()}
        context = {"context": (spec.scaling.dim,)} if spec.scaling.dim else {}
        return {
            "forecast": Program(
                forecast,
                inputs | context,
                f"The expected {', '.join(columns.values)}, and the lower and the upper end of the 95% prediction "
                "interval, from the values at the start of a series, and the time since then"
                + f", given {', '.join(columns.context)}" * bool(columns.context)
                + ".",
            )
        }

    def plot(self, model: eqx.Module, splits: Splits, folder: Path, *, data: str) -> list[Path]:
        from charax.tasks.forecast._plots import plot_forecasts

        return [plot_forecasts(self, model, splits, folder / "forecast.png")]

    def report(self, model: eqx.Module, splits: Splits, *, data: str) -> list[Section]:
        from charax.tasks.forecast._report import report_forecasts

        return report_forecasts(self, model, splits)


@eqx.filter_jit
def _forecast(model: eqx.Module, start: Array, t: Array, context: Array, solver: Solver) -> tuple[Array, Array, Array]:
    out = model(start, t, context, solver=solver)  # pyright: ignore[reportCallIssue]
    return out.mean, *out.prediction_interval()
