"""Forecasts: Gaussian likelihood with an estimated noise, deviations in percent, how much the band holds."""

from dataclasses import asdict
from pathlib import Path
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from charax.data import Observations, SeriesColumns, SeriesData, read_asked
from charax.models import Forecaster, ForecasterDesign, Scaling
from charax.solve import Outcome, Solver
from charax.train._stored_solver import solver_from_json, solver_to_json
from charax.train._task import AbstractTask, Predictions


class ForecastTask(AbstractTask):
    """Learn how series go on from their starting values.

    ```python
    import jax
    from charax.data import load_series
    from charax.models import ForecasterDesign
    from charax.tasks.forecast import ForecastTask

    task = ForecastTask.of(load_series("paper"), ForecasterDesign(width=8))
    assert task.build(jax.random.key(0)).log_noise.shape == (1,)
    ```
    """

    design: ForecasterDesign = eqx.field(static=True)
    solver: Solver
    scaling: Scaling = eqx.field(static=True)
    typical: float = eqx.field(static=True)
    """The mean size of the values that were learned from, in two digits, so that programs are shared."""
    columns: SeriesColumns = eqx.field(static=True)

    @property
    def name(self) -> str:
        return "forecast"

    @property
    def chosen_by(self) -> str:
        return "loss"

    @property
    def higher_is_better(self) -> bool:
        return False

    @classmethod
    def of(cls, data: SeriesData, design: ForecasterDesign, solver: Solver | None = None) -> "ForecastTask":
        """The task of learning from some series."""
        seen = [np.concatenate(both) for both in zip(data.train, data.validation, strict=True)]
        start, t, context, value, _ = seen
        return cls(
            design=design,
            solver=default_solver() if solver is None else solver,
            scaling=Scaling.of(context, t, np.concatenate([start, value])),
            typical=float(f"{np.linalg.norm(value, axis=1).mean():.1e}") or 1.0,
            columns=data.columns,
        )

    def build(self, key: PRNGKeyArray) -> Forecaster:
        return self.design.build(self.scaling, key=key)

    def loss(
        self, model: eqx.Module, batch: Observations, key: PRNGKeyArray
    ) -> tuple[Float[Array, ""], dict[str, Float[Array, ""]]]:
        values = {name: value.mean() for name, value in self.measure(model, batch).items()}
        return values.pop("loss"), values

    def measure(self, model: eqx.Module, batch: Observations) -> dict[str, Float[Array, "batch"]]:
        out = model(batch.start, batch.t, batch.context, solver=self.solver)  # pyright: ignore[reportCallIssue]
        miss = jnp.linalg.norm(out.mean - batch.value, axis=1)
        relative = (out.mean - batch.value) / out.noise
        noise = jnp.log(out.noise / jnp.asarray(self.scaling.value_spread))
        lower, upper = out.band()
        each = lambda value: jnp.broadcast_to(value, miss.shape).astype(float)
        return {
            "loss": jnp.mean(0.5 * relative**2 + noise, axis=1),
            "deviation_percent": 100 * miss / jnp.linalg.norm(batch.value, axis=1),
            "error_percent": 100 * miss / self.typical,
            "covered": ((lower <= batch.value) & (batch.value <= upper)).mean(axis=1),
            "failed": each(out.solution.outcome != Outcome.SUCCESS),
        }

    def summarise(self, best: dict[str, Any], test: dict[str, Any]) -> dict[str, Any]:
        return {
            "deviation_percent": test["test_deviation_percent"],
            "error_percent": test["test_error_percent"],
            "validation_error_percent": best["validation_error_percent"],
            "covered": test["test_covered"],
        }

    def predict(self, model: eqx.Module, inputs: Path) -> Predictions:
        """Values and the band of 95% at the times of a file, whose series begin with their starting values."""
        asked = read_asked(inputs, self.columns)
        mean, lower, upper = self.forecast(model, asked.observations)
        failed = ~np.isfinite(mean).all(axis=1)
        if failed.any():
            first = int(np.argmax(failed))
            raise RuntimeError(
                f"{inputs}: the walk of series {asked.names[first]!r} to time {asked.times[first]:g} failed: it may be "
                "far from what the model learned from; ask for earlier times, or train with --damping 1"
            )
        names = self.columns.values
        header = [self.columns.series, self.columns.time]
        header += [word for name in names for word in (name, f"lower {name}", f"upper {name}")]
        rows = [
            [name, f"{time:.6g}", *(f"{part[i, j]:.6g}" for j in range(len(names)) for part in (mean, lower, upper))]
            for i, (name, time) in enumerate(zip(asked.names, asked.times, strict=True))
        ]
        return Predictions(header, rows)

    def forecast(
        self, model: eqx.Module, asked: Observations, *, batch_size: int = 256
    ) -> tuple[Float[np.ndarray, "n values"], Float[np.ndarray, "n values"], Float[np.ndarray, "n values"]]:
        """Mean, lower and upper end of the band of some observations, whose values are not looked at."""
        count = len(asked.t)
        # One compiled shape; wrapping around fills the last batch with real rows.
        rows = np.arange(-(-count // batch_size) * batch_size) % count
        parts = []
        for part in rows.reshape(-1, batch_size):
            start, t, context, _, _ = asked.take(part)
            parts.append(_forecast(model, jnp.asarray(start), jnp.asarray(t), jnp.asarray(context), self.solver))
        mean, lower, upper = (
            np.concatenate([np.asarray(piece) for piece in pieces])[:count] for pieces in zip(*parts, strict=True)
        )
        return mean, lower, upper

    def to_json(self) -> dict[str, Any]:
        return {
            "design": asdict(self.design),
            "solver": solver_to_json(self.solver),
            "scaling": self.scaling.to_json(),
            "typical": self.typical,
            "columns": self.columns._asdict(),
        }

    @classmethod
    def from_json(cls, stored: dict[str, Any]) -> "ForecastTask":
        columns = stored["columns"]
        return cls(
            design=ForecasterDesign(**stored["design"]),
            solver=solver_from_json(stored["solver"]),
            scaling=Scaling.from_json(stored["scaling"]),
            typical=stored["typical"],
            columns=SeriesColumns(
                columns["series"], columns["time"], tuple(columns["values"]), tuple(columns["context"])
            ),
        )


def default_solver() -> Solver:
    """More accurate than what is known of noisy series."""
    return Solver("midpoint", steps=16)


@eqx.filter_jit
def _forecast(model: eqx.Module, start: Array, t: Array, context: Array, solver: Solver) -> tuple[Array, Array, Array]:
    out = model(start, t, context, solver=solver)  # pyright: ignore[reportCallIssue]
    return out.mean, *out.band()
