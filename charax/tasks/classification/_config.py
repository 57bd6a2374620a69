"""The config of `charax train classify`."""

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, ClassVar, Self

from charax import data, models, train
from charax.data import Separator
from charax.models import JacobianForm, Method, Preset
from charax.tasks import classification
from charax.train import (
    AbstractConfig,
    LoopConfig,
    OptimizerConfig,
    SolverConfig,
    Splits,
    TaskData,
    absolute_path,
    check_range,
    check_sizes,
)

if TYPE_CHECKING:
    from charax.tasks.classification._task import ClassificationSpec, ClassificationTask

_STEPS_PER_EPOCH = 10
"""The rows of a small table are repeated within an epoch: 20 epochs of a single step each would be no training."""


@dataclass(frozen=True)
class ClassificationConfig(AbstractConfig):
    """A classifier, its data and its training.

    ```python
    import charax

    data = charax.ClassificationConfig(data="digits").load_data()
    assert data.spec.classes[0] == "0"
    ```
    """

    name: ClassVar[str] = "classify"

    data: str = "digits"
    """Data set (digits, mnist, cifar10, svhn), or the path of an .npz, a table (.csv, .tsv, .txt, .parquet, .xlsx) or a
    folder of images."""
    target: str | None = None
    """Column of a table that holds the classes."""
    separator: Separator | None = None
    """Separator of the columns of a text file. By default found out."""
    shrink: int = 1
    """Average squares of this many pixels per side first."""
    max_samples: int | None = None
    """Use the first so many samples, and a fifth as many of an official test split."""
    method: Method = "c-node"
    """One of the paper's eight methods."""
    preset: Preset = "small"
    """Sizes and solver. small: a minute of training. cpu: minutes, for images of about 28x28. paper: the paper's layers
    and solver. dense: no convolutions. ode: the paper's layers, narrower, on the raw image, with adaptive steps."""
    width: int | None = None
    """Width of the networks, instead of the preset's."""
    augment_dim: int | None = None
    """Channels that ANODE, IL-NODE and second-order models add to the data's, instead of the preset's."""
    characteristic_dim: int | None = None
    """Dimension k of the characteristic, instead of the preset's."""
    jacobian: JacobianForm = "separate"
    """Form of the Jacobian. separate: one network per column. joint: one network for all columns, for large k."""
    solver: SolverConfig = field(default_factory=SolverConfig)
    """How to integrate."""
    optimizer: OptimizerConfig = field(default_factory=OptimizerConfig)
    """How to optimize."""
    loop: LoopConfig = field(default_factory=LoopConfig)
    """How long to train."""

    def __post_init__(self):
        check_range(self, least={"shrink": 1, "max_samples": 10})
        check_sizes(self, width="width", augment_dim="width", characteristic_dim="k")

    @staticmethod
    def task_type() -> type["ClassificationTask"]:
        return classification.ClassificationTask

    def load_data(self) -> TaskData:
        loaded = data.load_dataset(
            self.data,
            seed=self.loop.seed,
            target=self.target,
            separator=self.separator,
            shrink=self.shrink,
            max_samples=self.max_samples,
        )
        spec = classification.ClassificationSpec.from_dataset(loaded)
        samples, notes, split = len(loaded.train.targets), loaded.notes, loaded.train
        batch_size = min(self.loop.batch_size, samples)
        if len(spec.input_shape) == 1 and samples // batch_size < _STEPS_PER_EPOCH:
            rows = train.repeat_rows(samples, _STEPS_PER_EPOCH * batch_size)
            split = data.Split(split.inputs[rows], split.targets[rows])
            notes = (
                *notes,
                f"{samples} training samples: an epoch repeats them {len(rows) // samples} times, for "
                f"{len(rows) // batch_size} steps of {batch_size}",
            )
        return TaskData(Splits(split, loaded.validation, loaded.test), spec, notes)

    def build_task(self, spec: "ClassificationSpec") -> "ClassificationTask":
        design = self.design(spec.input_shape)
        solver = self.solver.build(design.solver)
        return self.task_type()(architecture=design.architecture, solver=solver, spec=spec)

    def design(self, input_shape: tuple[int, ...]) -> "models.Design":
        """Choose the architecture and the preset's solver for inputs of one shape.

        Args:
            input_shape: Shape of one input.

        Returns:
            The architecture, with the sizes that are set here, and the preset's solver.
        """
        return models.find_design(
            self.preset,
            self.method,
            input_shape,
            dataset=self.data,
            width=self.width,
            augment_dim=self.augment_dim,
            characteristic_dim=self.characteristic_dim,
            jacobian=self.jacobian,
        )

    def resolve_paths(self) -> Self:
        return replace(self, data=absolute_path(self.data, data.DATASETS))
