"""What the training engine asks of a task."""

from abc import abstractmethod
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import equinox as eqx
import numpy as np
from jaxtyping import Array, Float, Int, PRNGKeyArray

from charax.plotting import Section
from charax.solve import Solver
from charax.train._batches import Batch
from charax.train._config import Splits
from charax.train._predictions import GeneratedSamples, Predictions

if TYPE_CHECKING:
    from charax.train._programs import Program


@runtime_checkable
class Objective(Protocol):
    """What a step of training needs: a model and its loss. Every task is an objective.

    ```python
    import jax
    from charax import ClassificationConfig
    from charax.train import Objective

    config = ClassificationConfig(preset="dense", width=4)
    data = config.load_data()
    objective: Objective = config.build_task(data.spec)
    batch = objective.augment(jax.tree.map(lambda leaf: leaf[:8], data.splits.train), jax.random.key(1))
    loss, metrics = objective.loss(objective.build(jax.random.key(0)), batch, jax.random.key(1))
    assert loss.shape == () and not metrics["failed"]
    ```
    """

    def build(self, key: PRNGKeyArray) -> eqx.Module:
        """Initialize a model.

        Args:
            key: Random key of the initial weights.

        Returns:
            The model.
        """
        ...

    def augment(self, batch: Batch, key: PRNGKeyArray) -> Batch:
        """Change the samples of a mini-batch at random, before their loss.

        Args:
            batch: The mini-batch.
            key: Random key of this step.

        Returns:
            The mini-batch to learn from.
        """
        ...

    def loss(
        self, model: eqx.Module, batch: Batch, key: PRNGKeyArray
    ) -> tuple[Float[Array, ""], dict[str, Float[Array, ""]]]:
        """Compute the loss of a mini-batch.

        Args:
            model: The model.
            batch: The mini-batch.
            key: Random key of this step.

        Returns:
            The loss, and metrics to report with it, among them `failed`: 1 if a solve failed, else 0.
        """
        ...


class AbstractTask(eqx.Module):
    """A kind of learning. Classification, densities, PDEs and series differ in nothing else that the engine can see.

    A task has no parameters. It is everything about a trained model that is not learned, and is built from the run's
    config and the description of its data (`AbstractConfig.build_task`).

    ```python
    import equinox as eqx
    import jax.numpy as jnp
    import numpy as np
    from typing import NamedTuple

    import charax
    from charax.train import LoopConfig, Splits, fit

    class Points(NamedTuple):
        x: np.ndarray
        y: np.ndarray

    class Line(charax.AbstractTask):  # least squares: the smallest task
        solver: charax.Solver = eqx.field(default_factory=charax.Solver)
        monitor = property(lambda self: "loss")
        higher_is_better = property(lambda self: False)

        def build(self, key):
            return charax.nn.Linear(1, 1, key=key)

        def loss(self, model, batch, key):
            return self.metrics(model, batch)["loss"].mean(), {"failed": jnp.zeros(())}

        def metrics(self, model, batch):
            return {"loss": jnp.square(model(batch.x)[:, 0] - batch.y)}

        def summary(self, best, test):
            return {"loss": test["test_loss"]}

    x = np.linspace(-1, 1, 12, dtype=np.float32)[:, None]
    points = Points(x, 2 * x[:, 0])
    found = fit(Line(), Splits(points, points, points), LoopConfig(epochs=2, batch_size=4))
    assert [row["epoch"] for row in found.history[:2]] == [1, 2]
    ```
    """

    solver: eqx.AbstractVar[Solver]

    @property
    @abstractmethod
    def monitor(self) -> str:
        """The validation metric that selects the best weights."""

    @property
    @abstractmethod
    def higher_is_better(self) -> bool:
        """Whether larger values of that metric are better."""

    @abstractmethod
    def build(self, key: PRNGKeyArray) -> eqx.Module:
        """Initialize a model.

        Args:
            key: Random key of the initial weights.

        Returns:
            The model.
        """

    def augment(self, batch: Batch, key: PRNGKeyArray) -> Batch:
        """Change the samples of a mini-batch at random, before their loss; nothing is changed if left out.

        Args:
            batch: The mini-batch.
            key: Random key of this step.

        Returns:
            The mini-batch to learn from.
        """
        return batch

    @abstractmethod
    def loss(
        self, model: eqx.Module, batch: Batch, key: PRNGKeyArray
    ) -> tuple[Float[Array, ""], dict[str, Float[Array, ""]]]:
        """Compute the loss of a mini-batch.

        Args:
            model: The model.
            batch: The mini-batch.
            key: Random key of this step.

        Returns:
            The loss, and metrics to report with it, among them `failed`: 1 if a solve failed, else 0.
        """

    @property
    def stages(self) -> tuple[tuple[float, "AbstractTask"], ...]:
        """The stages of training: the fraction of the epochs after which each begins, and the task whose loss it
        minimizes. All of them train the same model and report the same metrics."""
        return ((0.0, self),)

    @property
    def shares_cores(self) -> bool:
        """Whether the cores of a CPU share each mini-batch, because XLA cannot split the operations of this task: small
        convolutions."""
        return False

    @property
    def is_separable(self) -> bool:
        """Whether the loss and its metrics are means over samples that need nothing of each other: no random numbers,
        no common step size. Several devices then exchange the gradient once per step."""
        return False

    @property
    def compiler_options(self) -> Mapping[str, bool | int | str]:
        """Options of `jax.jit` for an epoch and an evaluation of this task, beside those that the engine chooses."""
        return {}

    @property
    def passes(self) -> int:
        """Passes over the training split in an epoch, that is between two evaluations."""
        return 1

    def prepare_epoch(
        self, train: Batch, order: Int[np.ndarray, "steps batch"], generator: np.random.Generator
    ) -> Batch:
        """Prepare the training split for one epoch: what a step needs and cannot compute, such as a coupling.

        Args:
            train: The training split.
            order: The rows of each mini-batch of the epoch.
            generator: The random numbers of the epoch.

        Returns:
            The split to train on, with the samples in the same rows; `train` itself if there is nothing to do.
        """
        return train

    @abstractmethod
    def metrics(self, model: eqx.Module, batch: Batch) -> dict[str, Float[Array, "batch"]]:
        """Compute the metrics of every sample; the engine averages them over a whole split.

        Args:
            model: The model.
            batch: Some samples.

        Returns:
            The metrics by name, `loss` among them.
        """

    @abstractmethod
    def summary(self, best: dict[str, Any], test: dict[str, Any]) -> dict[str, Any]:
        """Select the metrics that a run is summarized by.

        Args:
            best: The row of the best epoch.
            test: The row of the test split.

        Returns:
            A few of them, by the names that `--json` prints.
        """

    def refine(
        self, model: eqx.Module, splits: Splits, say: Callable[[str], None]
    ) -> tuple[eqx.Module, dict[str, Any]]:
        """Improve a trained model by other means than gradient descent, before the test split is evaluated.

        Args:
            model: The model with the best weights.
            splits: The data; the test split must not be used.
            say: Where to report each stage; it raises if the run is to stop there.

        Returns:
            The model, with the same structure, and what to store about it next to the metrics of the test split.
        """
        return model, {}

    def problem(self, model: eqx.Module) -> Any:
        """Make a `charax.pde` problem of a learned equation.

        Args:
            model: The trained model.

        Returns:
            The problem.

        Raises:
            ValueError: If this model has not learned an equation.
        """
        raise ValueError("this model has not learned an equation: train it with charax train pde --method equation")

    @property
    def conditional_classes(self) -> tuple[str, ...]:
        """The classes that the model is conditioned on; empty if it is not conditional."""
        return ()

    def predict(
        self, model: eqx.Module, inputs: Path, *, strict: bool = False, class_name: str | None = None
    ) -> Predictions:
        """Predict for the inputs in a file or folder.

        Args:
            model: The trained model.
            inputs: The file or folder.
            strict: Raise if one of the rows has no answer, instead of marking it.
            class_name: The class to condition on, if the model is conditional.

        Returns:
            A table with one row per input.

        Raises:
            ValueError: If the inputs cannot be used, or this task has no predictions.
            RuntimeError: With `strict`, if a row has no answer.
        """
        raise ValueError(f"a model of this task has no predictions, so {inputs} was not read")

    def evaluation_details(self, model: eqx.Module, split: Batch) -> dict[str, Any]:
        """Describe how good a model is on some samples, beyond the means of its metrics.

        Args:
            model: The trained model.
            split: The samples.

        Returns:
            Numbers, and tables as lists of flat dictionaries, by the names that `--json` prints.
        """
        return {}

    def sample(
        self,
        model: eqx.Module,
        n: int,
        *,
        seed: int = 0,
        temperature: float = 1.0,
        class_name: str | None = None,
        context: Path | None = None,
        guidance: float = 0.0,
    ) -> GeneratedSamples:
        """Draw samples from a learned density.

        Args:
            model: The trained model.
            n: Number of samples.
            seed: Seed of the samples.
            temperature: Multiplies the standard deviation of the base distribution.
            class_name: The class to sample from, if the density is conditional; all of them in turn if left out.
            context: A table with the columns that the density is conditioned on, if there are any. Its rows are taken
                in turn.
            guidance: Above 0, samples are more typical of their class, if it was hidden from some samples in training.

        Returns:
            The samples, in the units of the data.

        Raises:
            ValueError: If this model is not a density, or the context does not suit it.
        """
        raise ValueError("this model is not a density, so nothing can be sampled from it")

    def programs(self, model: eqx.Module) -> dict[str, "Program"]:
        """What `charax export` writes: functions of raw inputs, with the trained model and its solver inside.

        Args:
            model: The trained model.

        Returns:
            The programs by name.

        Raises:
            ValueError: If a model of this task cannot be exported.
        """
        raise ValueError("models of this task cannot be exported yet: use charax predict, or charax.load_model")

    def plot(self, model: eqx.Module, splits: Splits, folder: Path, *, data: str) -> list[Path]:
        """Plot whatever there is to see of a trained model, besides its learning curves.

        Args:
            model: The trained model.
            splits: The data of the run.
            folder: Folder of the figures.
            data: The name or path of the data, as the config has it.

        Returns:
            The files.
        """
        return []

    def report(self, model: eqx.Module, splits: Splits, *, data: str) -> list[Section]:
        """Show whatever there is to see of a trained model with figures that move, for `charax report`.

        Args:
            model: The trained model.
            splits: The data of the run.
            data: The name or path of the data, as the config has it.

        Returns:
            The sections. Settings, metrics and learning curves are in every report already.
        """
        return []
