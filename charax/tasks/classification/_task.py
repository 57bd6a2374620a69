"""Classification: softmax cross entropy of logits, accuracy, and exact numbers of function evaluations."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Float, Int, PRNGKeyArray, Shaped

from charax.data import (
    AbstractStoredRows,
    Augmentation,
    Dataset,
    Split,
    Standardizer,
    TableEncoder,
    random_affine,
    random_flip_crop,
    read_inputs,
)
from charax.models import AbstractArchitecture, Classifier, ClassifierEnsemble, first_member, member_outputs
from charax.plotting import Section
from charax.solve import Solution, Solver
from charax.train import (
    AbstractTask,
    Predictions,
    Program,
    Splits,
    mark_failures,
    proportion_interval,
    solve_in_batches,
    standardize,
)

_SHARED_SIZE = 16_384
"""Hidden layers of at most this many numbers per image: 8x8 to 16x16 pixels with 20 to 32 channels gain from cores that
share a mini-batch, 28x28 pixels with 64 channels lose."""


@dataclass(frozen=True)
class ClassificationSpec:
    """What a classifier must know about its data.

    ```python
    import charax

    spec = charax.ClassificationConfig(data="digits").load_data().spec
    assert spec.input_shape == (8, 8, 1) and not spec.is_table
    ```
    """

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

    @property
    def is_table(self) -> bool:
        """Whether the inputs are rows of features, and not images."""
        return len(self.input_shape) == 1

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
    members: int = eqx.field(static=True, default=1)
    """Number of models whose probabilities are averaged."""

    @property
    def monitor(self) -> str:
        # The few validation rows of a small table are soon all correct, while their loss still falls.
        return "loss" if self.spec.is_table else "accuracy"

    @property
    def higher_is_better(self) -> bool:
        return not self.spec.is_table

    @property
    def shares_cores(self) -> bool:
        return not self.spec.is_table and self.architecture.hidden_size(self.spec.input_shape) <= _SHARED_SIZE

    @property
    def is_separable(self) -> bool:
        return not self.solver.couples_samples

    def build(self, key: PRNGKeyArray) -> Classifier | ClassifierEnsemble:
        build = lambda key: self.architecture.build(self.spec.input_shape, len(self.spec.classes), key=key)
        return build(key) if self.members == 1 else ClassifierEnsemble.build(build, self.members, key=key)

    def augment(self, batch: Split, key: PRNGKeyArray) -> Split:
        if self.spec.augmentation == "none":
            return batch
        change = {"flip-crop": random_flip_crop, "affine": random_affine}[self.spec.augmentation]
        return batch._replace(inputs=change(key, batch.inputs))

    def loss(
        self, model: eqx.Module, batch: Split, key: PRNGKeyArray
    ) -> tuple[Float[Array, ""], dict[str, Float[Array, ""]]]:
        logits, values = self._evaluate(model, batch)
        # Every member by itself: trained as an average, they would be one large model.
        loss = jax.vmap(optax.softmax_cross_entropy_with_integer_labels, in_axes=(0, None))(logits, batch.targets)
        values = {name: value.mean() for name, value in values.items()}
        return loss.mean(), {name: value for name, value in values.items() if name != "loss"}

    def metrics(self, model: eqx.Module, batch: Split) -> dict[str, Float[Array, "batch"]]:
        return self._evaluate(model, batch)[1]

    def _evaluate(
        self, model: eqx.Module, batch: Split
    ) -> tuple[Float[Array, "members batch classes"], dict[str, Float[Array, "batch"]]]:
        """The logits of every member, and the metrics of the averaged probabilities."""
        assert isinstance(model, Classifier | ClassifierEnsemble)
        logits, solution = member_outputs(model, jnp.asarray(batch.inputs), solver=self.solver)
        mean = _average(logits)
        return logits, {
            # A failed solve has NaN logits: its loss is NaN, and it counts as wrong.
            "loss": optax.softmax_cross_entropy_with_integer_labels(mean, batch.targets),
            "accuracy": jnp.where(jnp.isfinite(mean).all(-1), jnp.argmax(mean, -1) == batch.targets, 0.0),
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
        meanings = (
            "input: the row, file or index of the input",
            "class: the most probable class, and its probability",
            "probability of …: the probability of each class",
        )
        return mark_failures(
            Predictions(header, rows, shown=3, meanings=meanings),
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
        return self.standardized_probabilities(model, self.spec.standardizer.apply(raw), batch_size=batch_size)

    def standardized_probabilities(
        self, model: eqx.Module, inputs: Float[np.ndarray, "n *shape"] | AbstractStoredRows, *, batch_size: int = 256
    ) -> Float[np.ndarray, "n classes"]:
        """Compute the probability of every class for standardized inputs, such as those of a split.

        Args:
            model: The trained model.
            inputs: Standardized inputs.
            batch_size: Inputs per solve.

        Returns:
            The probabilities; NaN where the solve failed.
        """
        solve = lambda rows, solver: (_probabilities(model, inputs[rows], solver),)
        (probabilities,) = solve_in_batches(solve, len(inputs), self.solver, batch_size=batch_size)
        return probabilities

    def programs(self, model: eqx.Module) -> dict[str, Program]:
        probabilities = lambda raw: _probabilities(model, standardize(raw, self.spec.standardizer), self.solver)
        classes = ", ".join(self.spec.classes)
        return {
            "probabilities": Program(
                probabilities, {"input": self.spec.input_shape}, f"The probabilities of the classes {classes}."
            )
        }

    def evaluation_details(self, model: eqx.Module, split: Split) -> dict[str, Any]:
        """Precision and recall per class, the confusion matrix, and 95% confidence intervals (Wilson's)."""
        probabilities = self.standardized_probabilities(model, split.inputs)
        answered = np.isfinite(probabilities).all(axis=1)
        predicted = np.where(answered, np.argmax(np.nan_to_num(probabilities), axis=1), len(self.spec.classes))
        confusion = np.zeros((len(self.spec.classes), len(self.spec.classes) + 1), int)
        np.add.at(confusion, (split.targets, predicted), 1)
        right, count = int(np.trace(confusion)), len(split.targets)
        return {
            "samples": count,
            "accuracy_interval": proportion_interval(right, count),
            "classes": [self._class_report(label, confusion) for label in range(len(self.spec.classes))],
        }

    def _class_report(self, label: int, confusion: Int[np.ndarray, "classes predicted"]) -> dict[str, Any]:
        right, true, predicted = (
            int(n) for n in (confusion[label, label], confusion[label].sum(), confusion[:, label].sum())
        )
        return {
            "class": self.spec.classes[label],
            "samples": true,
            "precision": right / predicted if predicted else None,
            "precision_interval": proportion_interval(right, predicted),
            "recall": right / true if true else None,
            "recall_interval": proportion_interval(right, true),
            "predicted_as": {
                name: int(n) for name, n in zip((*self.spec.classes, "no answer"), confusion[label], strict=True)
            },
        }

    def plot(self, model: eqx.Module, splits: Splits, folder: Path, *, data: str) -> list[Path]:
        from charax.tasks.classification._plots import plot_classifier

        assert isinstance(model, Classifier | ClassifierEnsemble)
        return plot_classifier(self, first_member(model), splits, folder)

    def report(self, model: eqx.Module, splits: Splits, *, data: str) -> list[Section]:
        from charax.tasks.classification._report import report_classifier

        assert isinstance(model, Classifier | ClassifierEnsemble)
        return report_classifier(self, model, splits)


@eqx.filter_jit
def _probabilities(model: eqx.Module, inputs: Array | np.ndarray, solver: Solver) -> Array:
    assert isinstance(model, Classifier | ClassifierEnsemble)
    return jax.nn.softmax(_average(member_outputs(model, jnp.asarray(inputs), solver=solver)[0]))


def _average(logits: Float[Array, "members batch classes"]) -> Float[Array, "batch classes"]:
    """Logits of the mean of the members' probabilities."""
    if len(logits) == 1:
        return logits[0]
    return jax.nn.logsumexp(jax.nn.log_softmax(logits), axis=0) - jnp.log(len(logits))


def _counts(solution: Solution, batch: int) -> dict[str, Array]:
    """Whether the solve of each sample failed, and its function evaluations where they are known."""
    each = lambda value: jnp.broadcast_to(value, (batch,)).astype(float)
    nfe = solution.stats.nfe
    return {"failed": each(solution.outcome != 0), **({} if nfe is None else {"nfe": each(nfe)})}
