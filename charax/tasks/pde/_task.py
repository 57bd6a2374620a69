"""Learn u(x, t) from samples of it: squared errors, relative errors, points without a characteristic."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from charax.data import DataError, SolutionSamples, read_points
from charax.models import (
    AbstractRegressor,
    Dependence,
    EquationRegressor,
    FluxShape,
    LearnedProblem,
    PDEMethod,
    build_regressor,
    crossing_penalty,
    default_terms,
    flux_terms,
)
from charax.models._equation_field import name_variables
from charax.pde import AbstractProblem
from charax.pde._entropy import solve_entropy
from charax.pde._foot import PointStatus
from charax.plotting import Section
from charax.solve import Solver
from charax.tasks.pde._apply import BATCH, apply_model, model_at, quick_solves
from charax.tasks.pde._members import evaluate_model
from charax.tasks.pde._spec import PDESpec
from charax.train import AbstractTask, Predictions, Program, Splits, mark_failures, solve_in_batches

if TYPE_CHECKING:
    from charax.tasks.pde._interval import Interval

Coefficients = dict[str, Float[np.ndarray, "points"]]
_LARGEST_LOST_FRACTION = 0.9
"""A step is skipped if more points than this have no foot point."""


class PDETask(AbstractTask):
    """Learn a function of position and time.

    ```python
    import jax
    import charax

    config = charax.PDEConfig(data="paper", method="node-fair", width=8)
    model = config.build_task(config.load_data().spec).build(jax.random.key(0))
    assert model.initial is not None
    ```
    """

    method: PDEMethod = eqx.field(static=True)
    """Which model."""
    width: int = eqx.field(static=True)
    """Width of the networks."""
    solver: Solver
    """How to integrate."""
    spec: PDESpec = eqx.field(static=True)
    """The description of the data."""
    velocity_reads: tuple[Dependence, ...] = eqx.field(static=True, default=("u",))
    """What the velocity of `equation` depends on."""
    source_reads: tuple[Dependence, ...] = eqx.field(static=True, default=("u",))
    """What the source of `equation` depends on."""
    extrapolate: bool = eqx.field(static=True, default=False)
    """Predict outside of the range of the data, too."""
    is_refined: bool = eqx.field(static=True, default=True)
    """Whether `equation` is fitted by least squares and searched for a formula."""
    terms: tuple[str, ...] = eqx.field(static=True, default=())
    """Terms to search for in addition to the usual ones."""
    known_source: tuple[str, ...] = eqx.field(static=True, default=())
    """The source as a formula per value, if it is known."""
    known_initial: tuple[str, ...] = eqx.field(static=True, default=())
    """The initial value as a formula per value, if it is known."""
    period: tuple[float, ...] = eqx.field(static=True, default=())
    """The period of each position."""
    flux: FluxShape | None = eqx.field(static=True, default=None)
    """What is known about the flux whose derivative the velocity is."""

    @property
    def monitor(self) -> str:
        return "loss"

    @property
    def higher_is_better(self) -> bool:
        return False

    @property
    def compiler_options(self) -> Mapping[str, bool | int | str]:
        return quick_solves()

    def build(self, key: PRNGKeyArray) -> AbstractRegressor:
        structure: dict[str, Any] = {
            name: getattr(self, name)
            for name in ("velocity_reads", "source_reads", "known_source", "known_initial", "period", "flux")
        }
        if self.method == "equation" and self.is_refined:
            scaling = self.spec.scaling
            period = dict(zip(self.spec.position_columns, self.period, strict=False))
            library = lambda reads: (*default_terms(name_variables(reads, scaling), period=period), *self.terms)
            structure["velocity_terms"] = (
                library(self.velocity_reads) if self.flux is None else (*flux_terms(), *self.terms)
            )
            structure["source_terms"] = library(self.source_reads)
        return build_regressor(self.method, self.spec.scaling, width=self.width, key=key, **structure)

    def refine(
        self, model: eqx.Module, splits: Splits, say: Callable[[str], None]
    ) -> tuple[eqx.Module, dict[str, Any]]:
        """Fit an equation by least squares, and search for its formula."""
        if not (isinstance(model, EquationRegressor) and self.is_refined):
            return model, {}
        from charax.tasks.pde._refinement import refine_equation

        refined, found = refine_equation(model, splits, self.solver, self.find_domain, say)
        return refined, found | {
            "validation_error_percent": 100 * found.pop("validation_error") / self.spec.typical_value
        }

    def problem(self, model: eqx.Module) -> LearnedProblem:
        """Make a problem of the learned equation, on the part of space from which the data's characteristics start."""
        if not isinstance(model, EquationRegressor):
            return super().problem(model)
        return model.problem(*self.find_domain(model))

    def find_domain(self, model: eqx.Module) -> tuple[tuple[float, float], ...]:
        """Find the part of space from which the characteristics of the data start.

        Args:
            model: A trained `EquationRegressor`.

        Returns:
            (lower, upper) per space dimension; it includes the range of the data.
        """
        lower, upper = np.asarray(self.spec.lower), np.asarray(self.spec.upper)
        shares = np.random.default_rng(0).uniform(size=(BATCH, len(lower)))
        face = np.arange(BATCH) % (2 * len(lower) - 1)  # all faces of the box but the initial one
        shares[np.arange(BATCH), face // 2] = np.where(face == 2 * len(lower) - 2, 1.0, face % 2)
        points = (lower + shares * (upper - lower)).astype(np.float32)
        assert isinstance(model, EquationRegressor)
        values = evaluate_model(model, points, self.solver)
        ends = np.concatenate([values.foot_point[values.found], lower[None, :-1], upper[None, :-1]])
        if self.period:  # the initial value is known on the whole line
            ends = np.concatenate([ends, lower[None, :-1] - self.period, upper[None, :-1] + self.period])
        return tuple((float(low), float(high)) for low, high in zip(ends.min(axis=0), ends.max(axis=0), strict=True))

    def loss(
        self, model: eqx.Module, batch: SolutionSamples, key: PRNGKeyArray
    ) -> tuple[Float[Array, ""], dict[str, Float[Array, ""]]]:
        out = _without_formula(model)(batch.x, batch.t, solver=self.solver)  # pyright: ignore[reportCallIssue]
        # A characteristic that was not found has no gradient; the other points are learned without it.
        error = jnp.where(out.found, self._squared_error(out.u, batch.u), 0)
        lost = 1 - out.found.mean()
        loss = error.sum() / jnp.maximum(out.found.sum(), 1) + jnp.mean(crossing_penalty(out.jacobian_determinant))
        return loss, {"failed": (lost > _LARGEST_LOST_FRACTION).astype(float), "lost": lost}

    def metrics(self, model: eqx.Module, batch: SolutionSamples) -> dict[str, Float[Array, "batch"]]:
        out = model(batch.x, batch.t, solver=self.solver)  # pyright: ignore[reportCallIssue]
        error = jnp.linalg.norm(out.u - batch.u, axis=1)
        return {
            "loss": self._squared_error(out.u, batch.u),
            "deviation_percent": 100 * error / jnp.linalg.norm(batch.u, axis=1),
            "error_percent": 100 * error / self.spec.typical_value,
            "lost": 1 - out.found.astype(float),
        }

    def _squared_error(
        self, u: Float[Array, "batch n"], truth: Float[Array | np.ndarray, "batch n"]
    ) -> Float[Array, "batch"]:
        return jnp.mean(((u - truth) / jnp.asarray(self.spec.scaling.value_scale)) ** 2, axis=1)

    def summary(self, best: dict[str, Any], test: dict[str, Any]) -> dict[str, Any]:
        return {
            "deviation_percent": test["test_deviation_percent"],
            "error_percent": test["test_error_percent"],
            # Of the model that least squares made, if there is one, and else of the best epoch.
            "validation_error_percent": test.get("validation_error_percent", best["validation_error_percent"]),
            "lost": test["test_lost"],
            **{
                name: test[name]
                for name in ("equation", "terms", "shock_time", "shock_time_sd", "covered")
                if name in test
            },
        }

    def predict(
        self, model: eqx.Module, inputs: Path, *, strict: bool = False, class_name: str | None = None
    ) -> Predictions:
        """Predict the values at the positions and times of a file. Points without a characteristic are marked."""
        spec = self.spec
        columns = read_points(inputs, spec.position_columns)
        if not self.extrapolate:
            self._check_range(columns.values, columns.row)
        u, found = self.evaluate_past_shocks(model, columns.values.astype(np.float32))
        spell = lambda row: [f"{value:.6g}" for value in row]
        rows = [spell(point) + spell(value) for point, value in zip(columns.values, u, strict=True)]
        header = [*spec.position_columns, "t", *spec.value_columns]
        return mark_failures(
            Predictions(
                header,
                rows,
                inputs=len(spec.position_columns) + 1,
                meanings=(
                    f"{', '.join(spec.position_columns)}, t: the position and the time",
                    f"{', '.join(spec.value_columns)}: the value of the learned solution there",
                ),
            ),
            ~found,
            inputs=len(spec.position_columns) + 1,
            names=[f"{columns.path}, row {number}" for number in columns.numbers],
            reason="no learned characteristic leads to this point: train longer, or with another seed",
            strict=strict,
        )

    def evaluate(
        self, model: eqx.Module, points: Float[np.ndarray, "points dt"]
    ) -> tuple[Float[np.ndarray, "points n"], Bool[np.ndarray, "points"]]:
        """Evaluate the learned function.

        Args:
            model: The trained model.
            points: Positions and times (x, t).

        Returns:
            The values, and whether a characteristic was found for each point.
        """
        if isinstance(model, EquationRegressor):  # by the program that has fitted it
            values = evaluate_model(model, points, self.solver)
            return values.u, values.found
        solve = lambda rows, solver: apply_model(model, jnp.asarray(points[rows]), solver)
        _, u, found, _ = solve_in_batches(solve, len(points), self.solver, batch_size=BATCH)
        return u, found

    def evaluate_past_shocks(
        self, model: eqx.Module, points: Float[np.ndarray, "points dt"]
    ) -> tuple[Float[np.ndarray, "points n"], Bool[np.ndarray, "points"]]:
        """Evaluate the learned function, which past the first crossing of characteristics is the entropy solution.

        Args:
            model: The trained model.
            points: Positions and times (x, t).

        Returns:
            The values, and whether each point has one. A model without an equation, or with several values or
            dimensions, knows no shocks: it is evaluated as it is.
        """
        scaling = self.spec.scaling
        if not isinstance(model, EquationRegressor) or scaling.dim != 1 or scaling.values != 1:
            return self.evaluate(model, points)
        from charax.tasks.pde._posterior import find_shock_time

        problem, last = self.problem(model), float(points[:, 1].max())
        shock = find_shock_time(model, problem.domain[0], last) if last > 0 else np.inf
        late = points[:, 1] >= shock
        u, found = np.zeros((len(points), 1), np.float32), np.zeros(len(points), bool)
        if not late.all():
            u[~late], found[~late] = self.evaluate(model, points[~late])
        if late.any():
            x, t = jnp.asarray(self._wrap(points[late, :1])), jnp.asarray(points[late, 1])
            solved = solve_entropy(problem, x, t, None)
            u[late, 0], found[late] = np.asarray(solved.u), np.asarray(solved.status) == PointStatus.FOUND
        return u, found

    def interval(
        self, model: eqx.Module, splits: Splits, points: Float[np.ndarray, "points dt"], *, level: float = 0.95
    ) -> "Interval":
        """Compute intervals of the learned solution, calibrated on the validation split.

        Args:
            model: A trained `EquationRegressor`.
            splits: The data of the run, `run.splits`; the test split is not used.
            points: Positions and times (x, t), before characteristics cross.
            level: The share of solutions, or of samples, that should lie inside.

        Returns:
            The values, and half the widths of the intervals of the solution and of noisy samples of it.

        Raises:
            ValueError: If the model has not learned an equation, or the level is not between 0 and 1.
        """
        if not isinstance(model, EquationRegressor):
            raise ValueError(f"method={self.method!r} has no intervals: train with method='equation'")
        if not 0 < level < 1:
            raise ValueError(f"level must lie between 0 and 1, got {level}")
        from charax.tasks.pde._interval import find_interval
        from charax.tasks.pde._refinement import current_fit

        return find_interval(current_fit(model), splits, self.solver, points[:, :-1], points[:, -1], level=level)

    def tabulate_equation(
        self,
        model: eqx.Module,
        known: AbstractProblem | None = None,
        *,
        over: Dependence = "u",
        points: int = 101,
        margin: float = 0.0,
    ) -> tuple[Float[np.ndarray, "points"], Coefficients, Coefficients | None]:
        """Tabulate the learned velocity and source over one variable, the others at the middle of the data.

        Args:
            model: A trained `EquationRegressor`.
            known: The true equation, if there is one.
            over: The variable: u, or x or t.
            points: Number of values.
            margin: How far beyond the values of the data, relative to their range.

        Returns:
            The values of the variable, the learned `velocity` and `source` there, and the true ones.
        """
        spec = self.spec
        ranges = {"x": (spec.lower[0], spec.upper[0]), "t": (spec.lower[1], spec.upper[1]), "u": spec.value_range}
        values = {name: np.full(points, sum(ends) / 2, np.float32) for name, ends in ranges.items()}
        low, high = ranges[over]
        beyond = margin * (high - low)
        values[over] = np.linspace(low - beyond, high + beyond, points, dtype=np.float32)
        x, t, u = jnp.asarray(values["x"])[:, None], jnp.asarray(values["t"]), jnp.asarray(values["u"])
        column = lambda values: np.asarray(values).reshape(points)
        both = lambda it, u: {"velocity": column(it.velocity(x, t, u)), "source": column(it.source(x, t, u))}
        return values[over], both(model, u[:, None]), None if known is None else both(known, u)

    def programs(self, model: eqx.Module) -> dict[str, Program]:
        values = lambda points: model_at(model, points, self.solver)[0]
        columns = ", ".join((*self.spec.position_columns, "t"))
        return {
            "solution": Program(
                values, {"points": (len(self.spec.lower),)}, f"The solution at {columns}; NaN where there is none."
            )
        }

    def plot(self, model: eqx.Module, splits: Splits, folder: Path, *, data: str) -> list[Path]:
        from charax.tasks.pde._plots import plot_pde

        assert isinstance(model, AbstractRegressor)
        return plot_pde(self, model, splits, folder, data)

    def report(self, model: eqx.Module, splits: Splits, *, data: str) -> list[Section]:
        from charax.tasks.pde._report import report_pde

        assert isinstance(model, AbstractRegressor)
        return report_pde(self, model, splits, data)

    def _wrap(self, x: Float[np.ndarray, "points d"]) -> Float[np.ndarray, "points d"]:
        """Positions on a circle, where the data are."""
        if not self.period:
            return x
        lower = np.asarray(self.spec.lower[:-1])
        return (lower + (x - lower) % np.asarray(self.period)).astype(x.dtype)

    def _check_range(self, points: np.ndarray, row) -> None:
        spec = self.spec
        slack = 1e-6 * (np.asarray(spec.upper) - spec.lower)
        outside = (points < spec.lower - slack) | (points > spec.upper + slack)
        outside[:, : len(self.period)] = False
        if not outside.any():
            return
        first = int(np.argmax(outside.any(axis=1)))
        column = int(np.argmax(outside[first]))
        raise DataError(
            f"{row(outside.any(axis=1))}: {(*spec.position_columns, 't')[column]} = {points[first, column]:g} is "
            f"outside of the range of the training data, {spec.lower[column]:g} to {spec.upper[column]:g}: leave the "
            "row out, or train with --extrapolate"
        )


def _without_formula(model: eqx.Module) -> eqx.Module:
    """Gradient descent trains the networks; a formula, whose weights are zero until then, is found afterwards."""
    if not isinstance(model, EquationRegressor):
        return model
    where = lambda it: [coefficient.formula for coefficient in it.field.learned.values()]
    return eqx.tree_at(where, model, [None] * len(model.field.learned), is_leaf=lambda it: it is None)
