"""Regression: Gaussian likelihood with an estimated noise, RMSE and R², coverage of the prediction intervals."""

import math
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray, Shaped

from charax.data import AbstractStoredRows, RegressionData, RegressionSplit, Standardizer, TableEncoder, read_inputs
from charax.models import ClassifierEnsemble, VectorArchitecture
from charax.plotting import Section
from charax.solve import Outcome, Solution, Solver
from charax.tasks.regression._model import GaussianPrediction, GaussianRegressor
from charax.train import (
    AbstractTask,
    Predictions,
    Program,
    Splits,
    mark_failures,
    padded_batches,
    proportion_interval,
    restore,
    rmse_interval,
    standardize,
)


@dataclass(frozen=True)
class RegressionSpec:
    """What a regressor must know about its data.

    ```python
    import charax

    spec = charax.RegressionConfig(data="diabetes").load_data().spec
    assert spec.features == 10
    ```
    """

    features: int
    """Number of features."""
    targets: tuple[str, ...]
    """Names of the targets."""
    standardizer: Standardizer
    """How raw features are scaled."""
    target_standardizer: Standardizer
    """How raw targets are scaled."""
    encoder: TableEncoder | None = None
    """How the columns of a table are encoded as features."""

    @classmethod
    def from_data(cls, loaded: RegressionData) -> "RegressionSpec":
        """Describe data.

        Args:
            loaded: The data.

        Returns:
            Their description.
        """
        return cls(
            features=loaded.train.inputs.shape[1],
            targets=loaded.targets,
            standardizer=loaded.standardizer,
            target_standardizer=loaded.target_standardizer,
            encoder=loaded.encoder,
        )


class RegressionTask(AbstractTask):
    """Learn to predict numbers from rows of features.

    ```python
    import jax
    import charax

    config = charax.RegressionConfig(width=8)
    task = config.build_task(config.load_data().spec)
    model = task.build(jax.random.key(0))
    ```
    """

    architecture: VectorArchitecture = eqx.field(static=True)
    """Sizes of the model."""
    solver: Solver
    """How to integrate."""
    spec: RegressionSpec = eqx.field(static=True)
    """The description of the data."""
    members: int = eqx.field(static=True, default=1)
    """Number of models whose predictions are averaged."""

    @property
    def monitor(self) -> str:
        return "loss"

    @property
    def higher_is_better(self) -> bool:
        return False

    @property
    def is_separable(self) -> bool:
        return not self.solver.couples_samples

    def build(self, key: PRNGKeyArray) -> GaussianRegressor:
        targets = len(self.spec.targets)
        build = lambda key: self.architecture.build((self.spec.features,), targets, key=key)
        several = self.members > 1
        return GaussianRegressor(
            ClassifierEnsemble.build(build, self.members, key=key) if several else build(key), targets
        )

    def loss(
        self, model: eqx.Module, batch: RegressionSplit, key: PRNGKeyArray
    ) -> tuple[Float[Array, ""], dict[str, Float[Array, ""]]]:
        out, values = self._evaluate(model, batch)
        # Every member by itself: trained as an average, they would be one large model.
        error = jnp.square(out.members - jnp.asarray(batch.targets)).mean(axis=0)
        values = {name: value.mean() for name, value in values.items()}
        return _likelihood(error, out.log_noise).mean(), {k: value for k, value in values.items() if k != "loss"}

    def metrics(self, model: eqx.Module, batch: RegressionSplit) -> dict[str, Float[Array, "batch"]]:
        return self._evaluate(model, batch)[1]

    def _evaluate(
        self, model: eqx.Module, batch: RegressionSplit
    ) -> tuple[GaussianPrediction, dict[str, Float[Array, "batch"]]]:
        """The prediction, and the metrics of the mean over the members."""
        assert isinstance(model, GaussianRegressor)
        out = model(jnp.asarray(batch.inputs), solver=self.solver)
        targets = jnp.asarray(batch.targets)
        error = jnp.square(out.mean - targets)
        deviation = jnp.square(targets)  # standardized targets have the mean of the training split at 0
        lower, upper = out.prediction_interval()
        values = {
            "loss": _likelihood(error, out.log_noise),
            "squared_error": error.mean(axis=1),
            "squared_deviation": deviation.mean(axis=1),
            "covered": jnp.mean((lower <= targets) & (targets <= upper), axis=1),
            **_counts(out.solution, len(targets)),
        }
        if len(self.spec.targets) > 1:
            for i, name in enumerate(self.spec.targets):
                values |= {f"squared_error_{name}": error[:, i], f"squared_deviation_{name}": deviation[:, i]}
        return out, values

    def summary(self, best: dict[str, Any], test: dict[str, Any]) -> dict[str, Any]:
        names, stds = self.spec.targets, self.spec.target_standardizer.std
        several = len(names) > 1
        suffixes = [f"_{name}" for name in names] if several else [""]
        ratios = [_ratio(test[f"test_squared_error{each}"], test[f"test_squared_deviation{each}"]) for each in suffixes]
        each_rmse = {
            f"rmse{each}": _root(test[f"test_squared_error{each}"], std)
            for each, std in zip(suffixes, stds, strict=True)
        }
        # Targets of different units have no common RMSE but that of the standardized ones.
        unit = 1.0 if several else stds[0]
        return {
            "rmse": _root(test["test_squared_error"], unit),
            **(each_rmse if several else {}),
            "r2": None if None in ratios else 1 - sum(filter(None, ratios)) / len(ratios),
            "validation_rmse": _root(best["validation_squared_error"], unit),
            "covered": test["test_covered"],
        }

    def predict(
        self, model: eqx.Module, inputs: Path, *, strict: bool = False, class_name: str | None = None
    ) -> Predictions:
        """Predict the targets and their 95% prediction intervals."""
        spec = self.spec
        raw, names = read_inputs(inputs, shape=(spec.features,), encoder=spec.encoder)
        value, lower, upper = self.values(model, raw)
        scale = spec.target_standardizer
        digits = [_digits(mean, std) for mean, std in zip(scale.mean, scale.std, strict=True)]
        header = ["input", *(word for name in spec.targets for word in (name, f"lower {name}", f"upper {name}"))]
        rows = [
            [name, *(f"{part[i, j]:.{n}g}" for j, n in enumerate(digits) for part in (value, lower, upper))]
            for i, name in enumerate(names)
        ]
        meanings = (
            "input: the row or index of the input",
            f"{', '.join(spec.targets)}: the expected value, in the units of the training data",
            "lower …, upper …: the 95% prediction interval",
        )
        return mark_failures(
            Predictions(header, rows, meanings=meanings),
            np.asarray(~np.isfinite(value).all(axis=1)),
            inputs=1,
            names=[f"{inputs}, input {name}" for name in names],
            reason="the solve failed: the input may be far from the training data; check its scale",
            strict=strict,
        )

    def values(
        self, model: eqx.Module, raw: Shaped[np.ndarray, "n features"], *, batch_size: int = 256
    ) -> tuple[Float[np.ndarray, "n targets"], Float[np.ndarray, "n targets"], Float[np.ndarray, "n targets"]]:
        """Predict the targets of raw inputs, in the units of the targets.

        Args:
            model: The trained model.
            raw: Raw inputs, as `read_inputs` returns them.
            batch_size: Inputs per solve.

        Returns:
            The values, and the lower and upper ends of their 95% prediction intervals; NaN where the solve failed.
        """
        return self.standardized_values(model, self.spec.standardizer.apply(raw), batch_size=batch_size)

    def standardized_values(
        self, model: eqx.Module, inputs: Float[np.ndarray, "n features"] | AbstractStoredRows, *, batch_size: int = 256
    ) -> tuple[Float[np.ndarray, "n targets"], Float[np.ndarray, "n targets"], Float[np.ndarray, "n targets"]]:
        """Predict the targets of standardized inputs, such as those of a split, in the units of the targets.

        Args:
            model: The trained model.
            inputs: Standardized inputs.
            batch_size: Inputs per solve.

        Returns:
            The values, and the lower and upper ends of their 95% prediction intervals; NaN where the solve failed.
        """
        # With steps per row, a row that fails does not take the others with it.
        solver = replace(self.solver, per_sample=self.solver.steps is None)
        parts = [_predict(model, inputs[rows], solver) for rows in padded_batches(len(inputs), batch_size)]
        value, lower, upper = (
            self.spec.target_standardizer.inverse(np.concatenate([np.asarray(each) for each in pieces])[: len(inputs)])
            for pieces in zip(*parts, strict=True)
        )
        return value, lower, upper

    def programs(self, model: eqx.Module) -> dict[str, Program]:
        def values(raw: Array) -> tuple[Array, ...]:
            scaled = _predict(model, standardize(raw, self.spec.standardizer), self.solver)
            return tuple(restore(each, self.spec.target_standardizer) for each in scaled)

        targets = ", ".join(self.spec.targets)
        meaning = f"{targets}, and the lower and upper ends of the 95% prediction intervals."
        return {"values": Program(values, {"input": (self.spec.features,)}, meaning)}

    def evaluation_details(self, model: eqx.Module, split: RegressionSplit) -> dict[str, Any]:
        """RMSE and R² of every target, in its units, with a 95% confidence interval of the RMSE."""
        observed = self.spec.target_standardizer.inverse(split.targets)
        value, lower, upper = self.standardized_values(model, split.inputs)
        answered = np.isfinite(value).all(axis=1)
        rows = []
        for j, name in enumerate(self.spec.targets):
            error = np.square(value[answered, j] - observed[answered, j])
            deviation = np.square(observed[answered, j] - self.spec.target_standardizer.mean[j])
            inside = (lower[answered, j] <= observed[answered, j]) & (observed[answered, j] <= upper[answered, j])
            rows.append(
                {
                    "target": name,
                    "rmse": float(np.sqrt(error.mean())) if len(error) else None,
                    "rmse_interval": rmse_interval(error),
                    "r2": _ratio_to_r2(float(error.sum()), float(deviation.sum())),
                    "covered": float(inside.mean()) if len(inside) else None,
                    "covered_interval": proportion_interval(int(inside.sum()), len(inside)),
                }
            )
        return {"samples": len(observed), "targets": rows}

    def plot(self, model: eqx.Module, splits: Splits, folder: Path, *, data: str) -> list[Path]:
        from charax.tasks.regression._plots import plot_predictions, plot_residuals

        observed = self.spec.target_standardizer.inverse(splits.test.targets)
        value, lower, upper = self.standardized_values(model, splits.test.inputs)
        names = self.spec.targets
        return [
            plot_predictions(observed, value, lower, upper, names, folder / "predictions.png"),
            plot_residuals(observed, value, names, folder / "residuals.png"),
        ]

    def report(self, model: eqx.Module, splits: Splits, *, data: str) -> list[Section]:
        from charax.tasks.regression._report import report_regressor

        assert isinstance(model, GaussianRegressor)
        return report_regressor(self, model, splits)


def _likelihood(error: Float[Array, "batch targets"], log_noise: Float[Array, "targets"]) -> Float[Array, "batch"]:
    """The negative log-likelihood of squared errors up to a constant, averaged over the targets."""
    return jnp.mean(0.5 * error * jnp.exp(-2 * log_noise) + log_noise, axis=1)


@eqx.filter_jit
def _predict(model: eqx.Module, inputs: Array | np.ndarray, solver: Solver) -> tuple[Array, Array, Array]:
    out = model(jnp.asarray(inputs), solver=solver)  # pyright: ignore[reportCallIssue]
    return out.mean, *out.prediction_interval()


def _counts(solution: Solution, batch: int) -> dict[str, Array]:
    """Whether the solve of each sample failed, and its function evaluations where they are known."""
    each = lambda value: jnp.broadcast_to(value, (batch,)).astype(float)
    nfe = solution.stats.nfe
    return {"failed": each(solution.outcome != Outcome.SUCCESS), **({} if nfe is None else {"nfe": each(nfe)})}


def _root(mean_square: float | None, unit: float) -> float | None:
    """The root, in a unit; None where a metric was not finite."""
    return None if mean_square is None else unit * math.sqrt(mean_square)


def _ratio_to_r2(error: float, deviation: float) -> float | None:
    return 1 - error / deviation if deviation else None


def _ratio(error: float | None, deviation: float | None) -> float | None:
    return error / deviation if error is not None and deviation else None


def _digits(mean: float, std: float) -> int:
    """Significant digits that resolve a millionth of the standard deviation, also far from zero."""
    return 6 + max(0, math.ceil(math.log10(max(abs(mean) / std, 1.0))))
