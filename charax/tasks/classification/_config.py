"""The settings of `charax train classify`."""

from dataclasses import dataclass, field, replace
from pathlib import Path

from charax.data import DATASETS, load_dataset
from charax.models import Jacobian, Method, Preset, find_design
from charax.tasks.classification._task import ClassificationTask
from charax.train._config import LoopConfig, OptimizerConfig, SolverConfig
from charax.train._task import Problem


@dataclass(frozen=True)
class ClassificationConfig:
    """A classifier, its data and its training."""

    data: str = "digits"
    """digits, mnist, cifar10, svhn, or the path of an .npz, .csv, .parquet or folder of images."""
    target: str | None = None
    """The column of a table that holds the classes."""
    method: Method = "c-node"
    preset: Preset = "small"
    """small: a minute. cpu: minutes, for pictures of about 28x28. paper: the paper's layers and solver."""
    width: int | None = None
    """Width of the networks, instead of the preset's."""
    augment: int | None = None
    """Channels that ANODE, IL-NODE and second-order models add to the data's, instead of the preset's."""
    characteristic_dim: int | None = None
    """Dimensions k of the characteristic, instead of the preset's."""
    jacobian: Jacobian = "separate"
    """separate: a network for each of the k derivatives. joint: one with k outputs, for many dimensions."""
    solver: SolverConfig = field(default_factory=SolverConfig)
    optimizer: OptimizerConfig = field(default_factory=OptimizerConfig)
    loop: LoopConfig = field(default_factory=LoopConfig)

    @property
    def label(self) -> str:
        """A short name for a run with these settings."""
        return f"{Path(self.data).stem}-{self.method}"

    def prepare(self) -> Problem:
        """Load the data and say what is to be learned from it.

        ```python
        from charax.tasks.classification import ClassificationConfig

        problem = ClassificationConfig(data="digits", method="node").prepare()
        assert problem.task.classes[0] == "0"
        ```
        """
        dataset = load_dataset(self.data, seed=self.loop.seed, target=self.target)
        design = find_design(
            self.preset,
            self.method,
            dataset.input_shape,
            dataset=self.data,
            width=self.width,
            augment=self.augment,
            characteristic_dim=self.characteristic_dim,
            jacobian=self.jacobian,
        )
        task = ClassificationTask.of(dataset, design.architecture, self.solver.change(design.solver))
        return Problem(task, dataset.train, dataset.validation, dataset.test)

    def located(self) -> "ClassificationConfig":
        """The same with a path that does not depend on the working folder."""
        if self.data in DATASETS:
            return self
        return replace(self, data=str(Path(self.data).expanduser().absolute()))
