"""Learn u(x, t) from samples of it: squared errors, deviations in percent, points that no path reaches."""

from pathlib import Path
from typing import Any, Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from charax.data import DataError, Samples, SolutionData, read_points
from charax.models import AbstractRegressor, EquationRegressor, Part, PathRegressor, Scaling, TimeRegressor
from charax.models._regressor import DEFAULT_SOLVER
from charax.pde import AbstractProblem
from charax.solve import Solver
from charax.train._stored_solver import solver_from_json, solver_to_json
from charax.train._task import AbstractTask, Predictions

PDEMethod = Literal["c-node", "node", "node-fair", "equation"]
Coefficients = dict[str, Float[np.ndarray, "points"]]
_APART = 0.25
"""How close neighbouring paths may come, beside where they started, before it costs."""
_LOST = 0.9
"""The share of points without a foot point from which on a step is not made."""


def build_regressor(
    method: str,
    scaling: Scaling,
    *,
    width: int,
    velocity_reads: tuple[Part, ...] = ("u",),
    source_reads: tuple[Part, ...] = ("u",),
    key: PRNGKeyArray,
) -> AbstractRegressor:
    """A new model by the name of its method; what it `reads` matters to `equation` only."""
    match method:
        case "c-node":
            return PathRegressor.build(scaling, width=width, key=key)
        case "equation":
            reads = {"velocity_reads": velocity_reads, "source_reads": source_reads}
            return EquationRegressor.build(scaling, width=width, **reads, key=key)
        case "node" | "node-fair":
            return TimeRegressor.build(scaling, width=width, fair=method == "node-fair", key=key)
    raise ValueError(f"unknown method {method!r}; choose from c-node, node, node-fair, equation")


def crossing_penalty(spread: Float[Array, "points"]) -> Float[Array, "points"]:
    """Paths that cross leave places that have several values or none: they are kept apart."""
    return jnp.square(jax.nn.relu(_APART - spread))


class PDETask(AbstractTask):
    """Learn a function of place and time.

    ```python
    import jax
    from charax.data import load_solution
    from charax.tasks.pde import PDETask

    task = PDETask.of(load_solution("paper"), "node-fair", width=8)
    assert task.build(jax.random.key(0)).initial is not None
    ```
    """

    method: PDEMethod = eqx.field(static=True)
    width: int = eqx.field(static=True)
    solver: Solver
    scaling: Scaling = eqx.field(static=True)
    typical: float = eqx.field(static=True)
    """The mean size of the values that were learned from, in two digits, so that programs are shared."""
    lower: tuple[float, ...] = eqx.field(static=True)
    """The least of each place and of the time that was learned from."""
    upper: tuple[float, ...] = eqx.field(static=True)
    value_range: tuple[float, float] = eqx.field(static=True)
    """The least and the greatest first value that was learned from."""
    places: tuple[str, ...] = eqx.field(static=True)
    values: tuple[str, ...] = eqx.field(static=True)
    velocity_reads: tuple[Part, ...] = eqx.field(static=True, default=("u",))
    source_reads: tuple[Part, ...] = eqx.field(static=True, default=("u",))
    extrapolate: bool = eqx.field(static=True, default=False)

    @property
    def name(self) -> str:
        return "regression"

    @property
    def chosen_by(self) -> str:
        return "loss"

    @property
    def higher_is_better(self) -> bool:
        return False

    @classmethod
    def of(
        cls,
        data: SolutionData,
        method: PDEMethod,
        *,
        width: int,
        solver: Solver | None = None,
        velocity_reads: tuple[Part, ...] = ("u",),
        source_reads: tuple[Part, ...] = ("u",),
        extrapolate: bool = False,
    ) -> "PDETask":
        """The task of learning from some samples."""
        seen = data.seen
        points = np.concatenate([seen.x, seen.t[:, None]], axis=1)
        return cls(
            method=method,
            width=width,
            solver=DEFAULT_SOLVER if solver is None else solver,
            scaling=Scaling.of(*seen),
            typical=float(f"{np.linalg.norm(seen.u, axis=1).mean():.1e}") or 1.0,
            lower=tuple(map(float, points.min(axis=0))),
            upper=tuple(map(float, points.max(axis=0))),
            value_range=(float(seen.u[:, 0].min()), float(seen.u[:, 0].max())),
            places=data.places,
            values=data.values,
            velocity_reads=velocity_reads,
            source_reads=source_reads,
            extrapolate=extrapolate,
        )

    def build(self, key: PRNGKeyArray) -> AbstractRegressor:
        reads = {"velocity_reads": self.velocity_reads, "source_reads": self.source_reads}
        return build_regressor(self.method, self.scaling, width=self.width, **reads, key=key)

    def loss(
        self, model: eqx.Module, batch: Samples, key: PRNGKeyArray
    ) -> tuple[Float[Array, ""], dict[str, Float[Array, ""]]]:
        out = model(batch.x, batch.t, solver=self.solver)  # pyright: ignore[reportCallIssue]
        # A path that was not found has nothing to say; the others go on learning without it.
        error = jnp.where(out.found, self._squared(out.u, batch.u), 0)
        lost = 1 - out.found.mean()
        loss = error.sum() / jnp.maximum(out.found.sum(), 1) + jnp.mean(crossing_penalty(out.spread))
        return loss, {"failed": (lost > _LOST).astype(float), "lost": lost}

    def measure(self, model: eqx.Module, batch: Samples) -> dict[str, Float[Array, "batch"]]:
        out = model(batch.x, batch.t, solver=self.solver)  # pyright: ignore[reportCallIssue]
        miss = jnp.linalg.norm(out.u - batch.u, axis=1)
        return {
            "loss": self._squared(out.u, batch.u),
            "deviation_percent": 100 * miss / jnp.linalg.norm(batch.u, axis=1),
            "error_percent": 100 * miss / self.typical,
            "lost": 1 - out.found.astype(float),
        }

    def _squared(
        self, u: Float[Array, "batch n"], truth: Float[Array | np.ndarray, "batch n"]
    ) -> Float[Array, "batch"]:
        return jnp.mean(((u - truth) / jnp.asarray(self.scaling.value_spread)) ** 2, axis=1)

    def summarise(self, best: dict[str, Any], test: dict[str, Any]) -> dict[str, Any]:
        return {
            "deviation_percent": test["test_deviation_percent"],
            "error_percent": test["test_error_percent"],
            "validation_error_percent": best["validation_error_percent"],
            "lost": test["test_lost"],
        }

    def predict(self, model: eqx.Module, inputs: Path) -> Predictions:
        """The values at the places and times of a file."""
        columns = read_points(inputs, self.places)
        if not self.extrapolate:
            self._check_range(columns.values, columns.row)
        u, found = self.evaluate(model, columns.values.astype(np.float32))
        if not found.all():
            raise RuntimeError(
                f"{columns.row(~found)}: no learned path leads to this point, the root finder did not converge. "
                "Learned paths cross there, or it is far from what was learned from: train longer or with another seed"
            )
        spell = lambda row: [f"{value:.6g}" for value in row]
        rows = [spell(point) + spell(value) for point, value in zip(columns.values, u, strict=True)]
        return Predictions([*self.places, "t", *self.values], rows)

    def evaluate(
        self, model: eqx.Module, points: Float[np.ndarray, "points dt"], *, batch_size: int = 256
    ) -> tuple[Float[np.ndarray, "points n"], Bool[np.ndarray, "points"]]:
        """The values at points (x, t), and which of them a path was found to."""
        # One compiled shape; wrapping around fills the last batch with real points.
        rows = np.arange(-(-len(points) // batch_size) * batch_size) % len(points)
        parts = [_evaluate(model, jnp.asarray(points[part]), self.solver) for part in rows.reshape(-1, batch_size)]
        u, found = (
            np.concatenate([np.asarray(piece) for piece in pieces])[: len(points)]
            for pieces in zip(*parts, strict=True)
        )
        return u, found

    def tabulate_equation(
        self, model: eqx.Module, known: AbstractProblem | None = None, *, points: int = 101
    ) -> tuple[Float[np.ndarray, "points"], Coefficients, Coefficients | None]:
        """The learned `velocity` and `source` over the u of the data, in the middle of x and t; and the true ones."""
        place, time = ((low + high) / 2 for low, high in zip(self.lower, self.upper, strict=True))
        u = np.linspace(*self.value_range, points, dtype=np.float32)
        x, t = jnp.full((points, 1), place), jnp.full(points, time)
        column = lambda values: np.asarray(values).reshape(points)
        both = lambda it, u: {"velocity": column(it.velocity(x, t, u)), "source": column(it.source(x, t, u))}
        return u, both(model, jnp.asarray(u)[:, None]), None if known is None else both(known, jnp.asarray(u))

    def _check_range(self, points: np.ndarray, row) -> None:
        slack = 1e-6 * (np.asarray(self.upper) - self.lower)
        outside = (points < self.lower - slack) | (points > self.upper + slack)
        if not outside.any():
            return
        first = int(np.argmax(outside.any(axis=1)))
        column = int(np.argmax(outside[first]))
        raise DataError(
            f"{row(outside.any(axis=1))}: {(*self.places, 't')[column]} = {points[first, column]:g} is outside of what "
            f"the model learned from, {self.lower[column]:g} to {self.upper[column]:g}: leave the row out, or train "
            "with --extrapolate to be told what the model makes of it"
        )

    def to_json(self) -> dict[str, Any]:
        return {
            "method": self.method,
            "width": self.width,
            "solver": solver_to_json(self.solver),
            "scaling": self.scaling.to_json(),
            "typical": self.typical,
            **{name: list(getattr(self, name)) for name in _LISTS},
            "extrapolate": self.extrapolate,
        }

    @classmethod
    def from_json(cls, stored: dict[str, Any]) -> "PDETask":
        return cls(
            method=stored["method"],
            width=stored["width"],
            solver=solver_from_json(stored["solver"]),
            scaling=Scaling.from_json(stored["scaling"]),
            typical=stored["typical"],
            **{name: tuple(stored[name]) for name in _LISTS},
            extrapolate=stored["extrapolate"],
        )


_LISTS = ("lower", "upper", "value_range", "places", "values", "velocity_reads", "source_reads")


@eqx.filter_jit
def _evaluate(model: eqx.Module, points: Array, solver: Solver) -> tuple[Array, Array]:
    out = model(points[:, :-1], points[:, -1], solver=solver)  # pyright: ignore[reportCallIssue]
    return out.u, out.found
