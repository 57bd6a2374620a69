"""Whole series: cross entropy of their classes, or squared errors of their numbers."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Float, Int, PRNGKeyArray

from charax.data import SeriesScaling, SeriesSplit, Standardizer, TimeKind, read_series
from charax.models import AbstractSeriesModel, SeriesDesign, drop_values
from charax.plotting import Section
from charax.solve import Outcome, Solver
from charax.train import (
    ADDED_LATER,
    AbstractTask,
    Predictions,
    Program,
    Splits,
    mark_failures,
    quick_compilation,
    restore,
    scale_series,
    solve_in_batches,
)


@dataclass(frozen=True)
class SeriesSpec:
    """What a model of series must know about its data.

    ```python
    import charax

    spec = charax.SeriesConfig(data="turns").load_data().spec
    assert spec.outputs == len(spec.classes) == 2
    ```
    """

    scaling: SeriesScaling
    """The channels and their units."""
    classes: tuple[str, ...]
    """Names of the classes; empty if a number is predicted."""
    target_standardizer: Standardizer | None
    """How numbers to predict are scaled; None for classes."""
    series: str = "series"
    """Column that names the series, in a table."""
    time: str = "time"
    """Column of times, in a table."""
    target: str = "label"
    """Name of what is predicted."""
    time_kind: TimeKind | None = field(default=None, metadata=ADDED_LATER)
    """What the times are; None for a run of an earlier version, which did not store it."""

    @property
    def outputs(self) -> int:
        """The number of outputs of a model: one per class, or one."""
        return len(self.classes) or 1


class SeriesTask(AbstractTask):
    """Learn the class, or a number, of whole series.

    ```python
    import jax
    from charax.data import SeriesScaling, Standardizer
    from charax.tasks.series import SeriesConfig, SeriesSpec

    scaling = SeriesScaling(("height",), Standardizer((0.0,), (1.0,)), duration=2.0, length=5.0)
    task = SeriesConfig(data="series.csv").build_task(SeriesSpec(scaling, ("left", "right"), None))
    assert task.build(jax.random.key(0)).head.weight.shape == (2 * 16, 2)
    ```
    """

    design: SeriesDesign = eqx.field(static=True)
    """Sizes of the model."""
    solver: Solver
    """How to integrate."""
    spec: SeriesSpec = eqx.field(static=True)
    """The description of the data."""
    drop_augmentation: float = eqx.field(static=True)
    """Up to this fraction of the observations of a series is removed at random in each step of training."""
    noise_augmentation: float = eqx.field(static=True, default=0.0)
    """The standard deviation of noise that is added to the observations in each step of training."""

    @property
    def monitor(self) -> str:
        # Of few validation series the loss is one or two surprises; of equal accuracies the last one wins.
        return "accuracy" if self.spec.classes else "loss"

    @property
    def higher_is_better(self) -> bool:
        return bool(self.spec.classes)

    @property
    def compiler_options(self) -> Mapping[str, bool | int | str]:
        # As fast in training (`benchmarks.series_epoch`), and compiled in three quarters of the time.
        return quick_compilation()

    def build(self, key: PRNGKeyArray) -> AbstractSeriesModel:
        return self.design.build(len(self.spec.scaling.channels), self.spec.outputs, key=key)

    def loss(
        self, model: eqx.Module, batch: SeriesSplit, key: PRNGKeyArray
    ) -> tuple[Float[Array, ""], dict[str, Float[Array, ""]]]:
        drop_key, noise_key = jax.random.split(key)
        if self.drop_augmentation:
            batch = batch._replace(values=drop_values(jnp.asarray(batch.values), self.drop_augmentation, drop_key))
        if self.noise_augmentation:
            noise = self.noise_augmentation * jax.random.normal(noise_key, batch.values.shape, batch.values.dtype)
            batch = batch._replace(values=batch.values + noise)
        values = {name: value.mean() for name, value in self.metrics(model, batch).items()}
        return values.pop("loss"), values

    def metrics(self, model: eqx.Module, batch: SeriesSplit) -> dict[str, Float[Array, "batch"]]:
        out = model(batch.times, batch.values, batch.lengths, solver=self.solver)  # pyright: ignore[reportCallIssue]
        each = lambda value: jnp.broadcast_to(value, len(batch.targets)).astype(float)
        values, targets = out.values, jnp.asarray(batch.targets)
        if self.spec.classes:
            measured = {
                # A failed solve has NaN logits: its loss is NaN, and it counts as wrong.
                "loss": optax.softmax_cross_entropy_with_integer_labels(values, targets),
                "accuracy": jnp.where(jnp.isfinite(values).all(-1), jnp.argmax(values, -1) == targets, 0.0),
            }
        else:
            error = jnp.square(values[:, 0] - targets)
            measured = {"loss": error, "squared_error": error}
        counts = {} if out.nfe is None else {"nfe": each(out.nfe)}
        return {**measured, "failed": each(out.outcome != Outcome.SUCCESS), **counts}

    def summary(self, best: dict[str, Any], test: dict[str, Any]) -> dict[str, Any]:
        if self.spec.classes:
            return {"accuracy": test["test_accuracy"], "validation_accuracy": best["validation_accuracy"]}
        scale = self.spec.target_standardizer
        assert scale is not None
        root = lambda error: None if error is None else scale.std[0] * math.sqrt(error)
        return {"rmse": root(test["test_squared_error"]), "validation_rmse": root(best["validation_squared_error"])}

    def predict(
        self, model: eqx.Module, inputs: Path, *, strict: bool = False, class_name: str | None = None
    ) -> Predictions:
        """Predict the class with all probabilities, or the number, of every series in a file."""
        spec = self.spec
        new = read_series(inputs, spec.scaling, series=spec.series, time=spec.time, time_kind=spec.time_kind)
        outputs = self.outputs(model, new.split)
        failed = np.asarray(~np.isfinite(outputs).all(axis=1))
        meanings: tuple[str, ...] = ("series: its name, or its number in the file",)
        if spec.classes:
            meanings += (
                "class: the most probable class, and its probability",
                "probability of …: the probability of each class",
            )
            header = ["series", "class", "probability", *(f"probability of {name}" for name in spec.classes)]
            rows = [
                [name, spec.classes[int(np.argmax(row))], *(f"{value:.6g}" for value in (row.max(), *row))]
                for name, row in zip(new.names, outputs, strict=True)
            ]
        else:
            meanings += (f"{spec.target}: the expected value, in the units of the training data",)
            header = ["series", spec.target]
            rows = [[name, f"{row[0]:.9g}"] for name, row in zip(new.names, outputs, strict=True)]
        return mark_failures(
            Predictions(header, rows, shown=3, meanings=meanings),
            failed,
            inputs=1,
            names=[f"{inputs}, series {name!r}" for name in new.names],
            reason="the solve failed: the series may be far from the training data; check its scale",
            strict=strict,
        )

    def outputs(
        self, model: eqx.Module, split: SeriesSplit, *, batch_size: int = 256
    ) -> Float[np.ndarray, "n outputs"]:
        """Compute the probability of every class, or the number in the units of the target.

        Args:
            model: The trained model.
            split: The series; their targets are not read.
            batch_size: Series per solve.

        Returns:
            Probabilities, or one number; NaN where the solve failed.
        """

        def solve(rows: np.ndarray, solver: Solver) -> tuple[Array]:
            times, values, lengths, _ = split.take(rows)
            return (_outputs(model, times, values, lengths, solver, classes=bool(self.spec.classes)),)

        (outputs,) = solve_in_batches(solve, len(split.lengths), self.solver, batch_size=batch_size)
        scale = self.spec.target_standardizer
        return outputs if scale is None else scale.inverse(outputs)

    def outputs_over_time(
        self, model: eqx.Module, split: SeriesSplit, row: int, *, most: int | None = None
    ) -> tuple[Int[np.ndarray, "points"], Float[np.ndarray, "points outputs"]]:
        """Compute what the model says after an observation of one series, without those that come later.

        Args:
            model: The trained model.
            split: Some series.
            row: Which of them.
            most: Answer after this many of the observations at most, evenly spaced, the last one among them; after each
                one if omitted.

        Returns:
            The numbers of observations so far, and the outputs as of then.
        """
        length, width = int(split.lengths[row]), split.times.shape[1]
        points = width if most is None else min(most, width)
        # All series of a split share a compiled function: the last number is repeated where a series has fewer.
        counts = np.linspace(1, length, points).round() if points < length else np.arange(1, points + 1)
        counts = np.minimum(counts, length).astype(np.int32)
        used = min(points, length)
        grown = split.take(np.full(points, row))._replace(lengths=counts)
        return counts[:used], self.outputs(model, grown)[:used]

    def programs(self, model: eqx.Module) -> dict[str, Program]:
        spec, scale = self.spec, self.spec.target_standardizer
        if self.design.interpolation == "natural" and self.design.method in ("cde", "hybrid"):
            raise ValueError(
                "natural splines solve a linear system as large as the series is long, so there is no program for "
                "series of any length: train with --interpolation hermite to export"
            )
        solver = replace(self.solver, adjoint="direct")  # a number of steps that is not known has no checkpoints

        def outputs(times: Array, values: Array) -> Array:
            series = scale_series(times, values, spec.scaling.duration, spec.scaling.standardizer)
            out = _outputs(model, *series, solver, classes=bool(spec.classes))
            return out if scale is None else restore(out, scale)

        name = "probabilities" if spec.classes else "values"
        answer = f"The probabilities of the classes {', '.join(spec.classes)}" if spec.classes else f"The {spec.target}"
        inputs = {"times": ("length",), "values": ("length", len(spec.scaling.channels))}
        channels = ", ".join(spec.scaling.channels)
        return {
            name: Program(
                outputs,
                inputs,
                f"{answer} of whole series, from times since the first observation, NaN behind the end, and values of "
                f"{channels}, NaN where one is missing.",
            )
        }

    def plot(self, model: eqx.Module, splits: Splits, folder: Path, *, data: str) -> list[Path]:
        from charax.tasks.series._plots import plot_series

        return [plot_series(self, model, splits.test, folder / "series.png")]

    def report(self, model: eqx.Module, splits: Splits, *, data: str) -> list[Section]:
        from charax.tasks.series._report import report_series

        return report_series(self, model, splits)


@eqx.filter_jit
def _outputs(model: eqx.Module, times, values, lengths, solver: Solver, *, classes: bool) -> Array:
    out = model(  # pyright: ignore[reportCallIssue]
        jnp.asarray(times), jnp.asarray(values), jnp.asarray(lengths), solver=solver
    )
    return jax.nn.softmax(out.values) if classes else out.values
