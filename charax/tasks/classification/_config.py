"""The config of `charax train classify`."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Self

from charax import data, models, train
from charax.data import Augmentation, Separator
from charax.models import JacobianForm, Method, Preset
from charax.tasks import classification
from charax.train import (
    ADDED_LATER,
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
    """Data set (digits, mnist, cifar10, svhn), or the path of an .npz, an x.npy with y.npy next to it, a table (.csv,
    .tsv, .txt, .parquet, .xlsx), or a folder, a .zip or a .tar of images."""
    target: str | None = None
    """Column of a table that holds the classes."""
    separator: Separator | None = None
    """Separator of the columns of a text file. By default found out."""
    size: int | None = None
    """Resize the images of a folder or archive to this height and width: the shorter side, then the centre is cut out.
    By default only images of different sizes are resized, to the shortest side of any."""
    shrink: int = 1
    """Average squares of this many pixels per side first."""
    max_samples: int | None = None
    """Use the first so many samples, and a fifth as many of an official test split."""
    augmentation: Augmentation | None = field(default=None, metadata=ADDED_LATER)
    """Random changes of training images. flip-crop: horizontal flips, and shifts by up to 4 pixels. affine: small
    turns, zooms and shifts, for digits and letters. By default what suits the data set; nothing for your own images."""
    method: Method = "c-node"
    """One of the paper's eight methods."""
    preset: Preset = "small"
    """Sizes and solver. small: a minute of training. cpu: minutes, for images of about 28x28. paper: the paper's layers
    and solver. dense: no convolutions. ode: the paper's layers, narrower, on the raw image, with adaptive steps."""
    members: int | None = None
    """Number of models whose probabilities are averaged, for tables. None: chosen from the data."""
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
        check_range(self, least={"size": 1, "shrink": 1, "max_samples": 10, "members": 1})
        check_sizes(self, width="width", augment_dim="width", characteristic_dim="k")

    def task_type(self) -> type["ClassificationTask"]:
        return classification.ClassificationTask

    def load_data(self) -> TaskData:
        loaded = data.load_dataset(
            self.data,
            seed=self.loop.seed,
            target=self.target,
            separator=self.separator,
            size=self.size,
            shrink=self.shrink,
            max_samples=self.max_samples,
        )
        spec = classification.ClassificationSpec.from_dataset(loaded)
        if self.augmentation is not None:
            if spec.is_table and self.augmentation != "none":
                raise ValueError(f"--augmentation {self.augmentation} is for images: leave it out for tables")
            spec = replace(spec, augmentation=self.augmentation)
        return TaskData(Splits(loaded.train, loaded.validation, loaded.test), spec, loaded.notes)

    def unused(self, loaded: TaskData) -> Mapping[tuple[str, ...], str]:
        found = {**train.unused_separator(self.data), **train.unused_sizes(self.method)}
        if not data.is_table(self.data):
            found["target",] = f"{self.data} has no named columns: leave it out"
        return found

    def complete(self, data: TaskData) -> tuple[Self, tuple[str, ...]]:
        if not data.spec.is_table:
            return super().complete(data)
        return train.complete_for_table(self, data.spec.train_samples)

    def build_task(self, spec: "ClassificationSpec") -> "ClassificationTask":
        design, members = self.design(spec.input_shape), self.members or 1
        if members > 1 and not spec.is_table:
            raise ValueError(f"--members {members} is for tables: leave it out for images")
        solver = self.solver.build(design.solver)
        return self.task_type()(architecture=design.architecture, solver=solver, spec=spec, members=members)

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

    def load_labelled(self, path: Path, spec: "ClassificationSpec") -> "data.Split":
        raw, names = data.read_inputs(
            path, shape=spec.input_shape, encoder=spec.encoder, max_value=spec.standardizer.max_value
        )
        targets = data.read_labels(path, names, classes=spec.classes, target=self.target)
        return data.Split(spec.standardizer.apply(raw), targets)

    def resolve_paths(self) -> Self:
        return replace(self, data=absolute_path(self.data, data.DATASETS))
