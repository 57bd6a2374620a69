"""Classification: softmax cross entropy of logits, accuracy, and exact numbers of function evaluations."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Float, PRNGKeyArray, Shaped

from charax.data import (
    Augmentation,
    Dataset,
    Split,
    Standardizer,
    TableEncoder,
    random_affine,
    random_flip_crop,
    read_inputs,
)
from charax.models import AbstractArchitecture, Classifier
from charax.plotting import Section
from charax.solve import Solution, Solver
from charax.train import AbstractTask, Predictions, Program, Splits, mark_failures, solve_in_batches, standardize


@dataclass(frozen=True)
class ClassificationSpec:
    """What a classifier must know about its data."""

    input_shape: tuple[int, ...]
    """Shape of one input."""
    classes: tuple[str, ...]
    """Names of the classes."""
    standardizer: Standardizer
    """How raw inputs are scaled."""
    augmentation: Augmentation = "none"
    """Random changes of training images."""
    encoder: TableEncoder | None = None
    """How the columns of a table are encoded as features."""

    train_samples: int = 0
    """Number of different samples in the train split."""

    @classmethod
    def from_dataset(cls, dataset: Dataset) -> "ClassificationSpec":
        """Describe a data set.

        Args:
            dataset: The data set.

        Returns:
            Its description.
        """
        return cls(
            dataset.input_shape,
            dataset.classes,
            dataset.standardizer,
            dataset.augmentation,
            dataset.encoder,
            len(dataset.train.targets),
        )


class ClassificationTask(AbstractTask):
    """Learn the classes of a data set.

    ```python
    import jax
    import charax

    config = charax.ClassificationConfig(data="digits", method="c-node")
    task = config.build_task(config.load_data().spec)
    model = task.build(jax.random.key(0))
    ```
    """

    architecture: AbstractArchitecture = eqx.field(static=True)
    """Sizes of the model."""
    solver: Solver
    """How to integrate."""
    spec: ClassificationSpec = eqx.field(static=True)
    """The description of the data."""

    @property
    def monitor(self) -> str:
        return "accuracy"

    @property
    def higher_is_better(self) -> bool:
        return True

    def build(self, key: PRNGKeyArray) -> Classifier:
        return self.architecture.build(self.spec.input_shape, len(self.spec.classes), key=key)

    def loss(
        self, model: eqx.Module, batch: Split, key: PRNGKeyArray
    ) -> tuple[Float[Array, ""], dict[str, Float[Array, ""]]]:
        if self.spec.augmentation != "none":
            change = {"flip-crop": random_flip_crop, "affine": random_affine}[self.spec.augmentation]
            batch = batch._replace(inputs=change(key, batch.inputs))
        values = {name: value.mean() for name, value in self.metrics(model, batch).items()}
        return values.pop("loss"), values

    def metrics(self, model: eqx.Module, batch: Split) -> dict[str, Float[Array, "batch"]]:
        logits, solution = model(batch.inputs, solver=self.solver)  # pyright: ignore[reportCallIssue]
        return {
            # A failed solve has NaN logits: its loss is NaN, and it counts as wrong.
            "loss": optax.softmax_cross_entropy_with_integer_labels(logits, batch.targets),
            "accuracy": jnp.where(jnp.isfinite(logits).all(-1), jnp.argmax(logits, -1) == batch.targets, 0.0),
            **_counts(solution, len(batch.targets)),
        }

    def summary(self, best: dict[str, Any], test: dict[str, Any]) -> dict[str, Any]:
        return {"accuracy": test["test_accuracy"], "validation_accuracy": best["validation_accuracy"]}

    def predict(
        self, model: eqx.Module, inputs: Path, *, strict: bool = False, class_name: str | None = None
    ) -> Predictions:
        spec = self.spec
        raw, names = read_inputs(
            inputs, shape=spec.input_shape, encoder=spec.encoder, max_value=spec.standardizer.max_value
        )
        probabilities = self.probabilities(model, raw)
        failed = np.asarray(~np.isfinite(probabilities).all(axis=1))
        rows = [
            [name, spec.classes[int(np.argmax(row))], *(f"{value:.6g}" for value in (row.max(), *row))]
            for name, row in zip(names, probabilities, strict=True)
        ]
        header = ["input", "class", "probability", *(f"probability of {name}" for name in spec.classes)]
        return mark_failures(
            Predictions(header, rows, shown=3),
            failed,
            inputs=1,
            names=[f"{inputs}, input {name}" for name in names],
            reason="the solve failed: the input may be far from the training data; check its scale",
            strict=strict,
        )

    def probabilities(
        self, model: eqx.Module, raw: Shaped[np.ndarray, "n *shape"], *, batch_size: int = 256
    ) -> Float[np.ndarray, "n classes"]:
        """Compute the probability of every class.

        Args:
            model: The trained model.
            raw: Raw inputs, as `read_inputs` returns them.
            batch_size: Inputs per solve.

        Returns:
            The probabilities; NaN where the solve failed.
        """
        inputs = self.spec.standardizer.apply(raw)
        solve = lambda rows, solver: (_probabilities(model, inputs[rows], solver),)
        (probabilities,) = solve_in_batches(solve, len(raw), self.solver, batch_size=batch_size)
        return probabilities

    def programs(self, model: eqx.Module) -> dict[str, Program]:
        probabilities = lambda raw: _probabilities(model, standardize(raw, self.spec.standardizer), self.solver)
        classes = ", ".join(self.spec.classes)
        return {
            "probabilities": Program(
                probabilities, {"input": self.spec.input_shape}, f"The probabilities of the classes {classes}."
            )
        }

    def plot(self, model: eqx.Module, splits: Splits, folder: Path, *, data: str) -> list[Path]:
        from charax.tasks.classification._plots import plot_classifier

        assert isinstance(model, Classifier)
        return plot_classifier(self, model, splits, folder)

    def report(self, model: eqx.Module, splits: Splits, *, data: str) -> list[Section]:
        from charax.tasks.classification._report import report_classifier

        assert isinstance(model, Classifier)
        return report_classifier(self, model, splits)


@eqx.filter_jit
def _probabilities(model: eqx.Module, inputs: Array | np.ndarray, solver: Solver) -> Array:
    return jax.nn.softmax(model(jnp.asarray(inputs), solver=solver)[0])  # pyright: ignore[reportCallIssue]


def _counts(solution: Solution, batch: int) -> dict[str, Array]:
    """Whether the solve of each sample failed, and its function evaluations where they are known."""
    each = lambda value: jnp.broadcast_to(value, (batch,)).astype(float)
    nfe = solution.stats.nfe
    return {"failed": each(solution.outcome != 0), **({} if nfe is None else {"nfe": each(nfe)})}
