"""Classification: softmax cross entropy on logits, accuracy, and exact counts of evaluations."""

from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Float, PRNGKeyArray, Shaped

from charax.data import Augmentation, Dataset, Split, Standardizer, random_affine, random_flip_crop, read_inputs
from charax.models import AbstractArchitecture, Classifier, read_architecture
from charax.solve import Solution, Solver
from charax.train._stored_solver import solver_from_json, solver_to_json
from charax.train._task import AbstractTask, Predictions


class ClassificationTask(AbstractTask):
    """Learn the classes of a data set.

    ```python
    import jax
    from charax.data import load_dataset
    from charax.models import find_design
    from charax.tasks.classification import ClassificationTask

    digits = load_dataset("digits")
    task = ClassificationTask.of(digits, *find_design("small", "c-node", digits.input_shape))
    model = task.build(jax.random.key(0))
    ```
    """

    architecture: AbstractArchitecture = eqx.field(static=True)
    solver: Solver
    input_shape: tuple[int, ...] = eqx.field(static=True)
    classes: tuple[str, ...] = eqx.field(static=True)
    standardizer: Standardizer = eqx.field(static=True)
    augment: Augmentation = eqx.field(static=True, default="none")
    columns: tuple[str, ...] = eqx.field(static=True, default=())

    @property
    def name(self) -> str:
        return "classification"

    @property
    def chosen_by(self) -> str:
        return "accuracy"

    @property
    def higher_is_better(self) -> bool:
        return True

    @classmethod
    def of(cls, dataset: Dataset, architecture: AbstractArchitecture, solver: Solver) -> "ClassificationTask":
        """The task of learning a data set."""
        return cls(
            architecture=architecture,
            solver=solver,
            input_shape=dataset.input_shape,
            classes=dataset.classes,
            standardizer=dataset.standardizer,
            augment=dataset.augment,
            columns=dataset.columns,
        )

    def build(self, key: PRNGKeyArray) -> Classifier:
        return self.architecture.build(self.input_shape, len(self.classes), key=key)

    def loss(
        self, model: eqx.Module, batch: Split, key: PRNGKeyArray
    ) -> tuple[Float[Array, ""], dict[str, Float[Array, ""]]]:
        if self.augment != "none":
            change = {"flip-crop": random_flip_crop, "distort": random_affine}[self.augment]
            batch = batch._replace(inputs=change(key, batch.inputs))
        values = {name: value.mean() for name, value in self.measure(model, batch).items()}
        return values.pop("loss"), values

    def measure(self, model: eqx.Module, batch: Split) -> dict[str, Float[Array, "batch"]]:
        logits, solution = model(batch.inputs, solver=self.solver)  # pyright: ignore[reportCallIssue]
        return {
            # A failed solve has NaN logits: its loss is NaN, and it counts as wrong.
            "loss": optax.softmax_cross_entropy_with_integer_labels(logits, batch.targets),
            "accuracy": jnp.where(jnp.isfinite(logits).all(-1), jnp.argmax(logits, -1) == batch.targets, 0.0),
            **_counts(solution, len(batch.targets)),
        }

    def summarise(self, best: dict[str, Any], test: dict[str, Any]) -> dict[str, Any]:
        return {"accuracy": test["test_accuracy"], "validation_accuracy": best["validation_accuracy"]}

    def predict(self, model: eqx.Module, inputs: Path) -> Predictions:
        """The class and the probabilities of the inputs in a file or folder."""
        raw, names = read_inputs(inputs, shape=self.input_shape, columns=self.columns, white=self.standardizer.white)
        rows = [
            [name, self.classes[int(np.argmax(row))], *(f"{value:.6g}" for value in (row.max(), *row))]
            for name, row in zip(names, self.probabilities(model, raw), strict=True)
        ]
        header = ["input", "class", "probability", *(f"probability of {name}" for name in self.classes)]
        return Predictions(header, rows, shown=3)

    def probabilities(
        self, model: eqx.Module, raw: Shaped[np.ndarray, "n *shape"], *, batch_size: int = 256
    ) -> Float[np.ndarray, "n classes"]:
        """The probability of every class for raw inputs, as `read_inputs` gives them."""
        inputs = self.standardizer.apply(raw)
        # Inputs are an argument of one compiled shape; wrapping around fills the last batch with real inputs.
        wrapped = np.arange(-(-len(inputs) // batch_size) * batch_size) % len(inputs)
        batches = [_probabilities(model, inputs[rows], self.solver) for rows in wrapped.reshape(-1, batch_size)]
        probabilities = np.concatenate([np.asarray(batch) for batch in batches])[: len(inputs)]
        failed = ~np.isfinite(probabilities).all(axis=1)
        if failed.any():
            raise RuntimeError(
                f"the solve failed for input {int(np.argmax(failed))} (counted from 0): it may be far from what the "
                "model learned from; check its scale"
            )
        return probabilities

    def to_json(self) -> dict[str, Any]:
        return {
            "architecture": self.architecture.to_json(),
            "solver": solver_to_json(self.solver),
            "input_shape": list(self.input_shape),
            "classes": list(self.classes),
            "standardizer": self.standardizer.to_json(),
            "augment": self.augment,
            "columns": list(self.columns),
        }

    @classmethod
    def from_json(cls, stored: dict[str, Any]) -> "ClassificationTask":
        return cls(
            architecture=read_architecture(stored["architecture"]),
            solver=solver_from_json(stored["solver"]),
            input_shape=tuple(stored["input_shape"]),
            classes=tuple(stored["classes"]),
            standardizer=Standardizer.from_json(stored["standardizer"]),
            augment=stored["augment"],
            columns=tuple(stored["columns"]),
        )


@eqx.filter_jit
def _probabilities(model: eqx.Module, inputs: Array | np.ndarray, solver: Solver) -> Array:
    return jax.nn.softmax(model(jnp.asarray(inputs), solver=solver)[0])  # pyright: ignore[reportCallIssue]


def _counts(solution: Solution, batch: int) -> dict[str, Array]:
    """Whether the solve of each sample failed, and its evaluations where they are known."""
    each = lambda value: jnp.broadcast_to(value, (batch,)).astype(float)
    nfe = solution.stats.nfe
    return {"failed": each(solution.outcome != 0), **({} if nfe is None else {"nfe": each(nfe)})}
