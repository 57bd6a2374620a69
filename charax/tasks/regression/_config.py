"""The config of `charax train regress`."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Self

from charax import data, models, solve, train
from charax.data import Separator
from charax.models import JacobianForm, Method
from charax.tasks import regression
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
    from charax.tasks.regression._task import RegressionSpec, RegressionTask


@dataclass(frozen=True)
class RegressionConfig(AbstractConfig):
    """A regressor, its data and its training.

    ```python
    import charax

    data = charax.RegressionConfig(data="diabetes").load_data()
    assert data.spec.targets == ("target",)
    ```
    """

    name: ClassVar[str] = "regress"

    data: str = "diabetes"
    """Data set (diabetes), or the path of a table (.csv, .tsv, .txt, .parquet, .xlsx), of an .npz with x and y, or of
    an x.npy with y.npy next to it."""
    target: tuple[str, ...] = ()
    """Columns of a table to predict from the other columns. By default the column target."""
    separator: Separator | None = None
    """Separator of the columns of a text file. By default found out."""
    method: Method = "c-node"
    """One of the paper's eight methods."""
    members: int | None = None
    """Number of models whose predictions are averaged. None: chosen from the data."""
    width: int | None = None
    """Width of the networks. None: chosen from the data."""
    augment_dim: int = 4
    """Dimensions that ANODE, IL-NODE and second-order models add to the features."""
    characteristic_dim: int = 2
    """Dimension k of the characteristic."""
    jacobian: JacobianForm = "separate"
    """Form of the Jacobian. separate: one network per column. joint: one network for all columns, for large k."""
    solver: SolverConfig = field(default_factory=SolverConfig)
    """How to integrate."""
    optimizer: OptimizerConfig = field(default_factory=OptimizerConfig)
    """How to optimize."""
    loop: LoopConfig = field(default_factory=LoopConfig)
    """How long to train."""

    def __post_init__(self):
        check_range(self, least={"members": 1, "width": 1, "augment_dim": 1, "characteristic_dim": 1})
        check_sizes(self, width="width", augment_dim="width", characteristic_dim="k")

    def task_type(self) -> type["RegressionTask"]:
        return regression.RegressionTask

    def load_data(self) -> TaskData:
        loaded = data.load_regression(self.data, seed=self.loop.seed, target=self.target, separator=self.separator)
        spec = regression.RegressionSpec.from_data(loaded)
        return TaskData(Splits(loaded.train, loaded.validation, loaded.test), spec, loaded.notes)

    def unused(self, loaded: TaskData) -> Mapping[tuple[str, ...], str]:
        found = {**train.unused_separator(self.data), **train.unused_sizes(self.method)}
        if not data.is_table(self.data):
            found["target",] = f"{self.data} has no named columns: leave it out"
        return found

    def complete(self, data: TaskData) -> tuple[Self, tuple[str, ...]]:
        return train.complete_for_table(self, train.count_samples(data.splits.train))

    def build_task(self, spec: "RegressionSpec") -> "RegressionTask":
        architecture = models.VectorArchitecture(
            self.method,
            width=32 if self.width is None else self.width,
            augment_dim=self.augment_dim,
            characteristic_dim=self.characteristic_dim,
            jacobian=self.jacobian,
        )
        solver = self.solver.build(solve.Solver("midpoint", steps=2))
        return self.task_type()(architecture=architecture, solver=solver, spec=spec, members=self.members or 1)

    def load_labelled(self, path: Path, spec: "RegressionSpec") -> "data.RegressionSplit":
        raw, names = data.read_inputs(path, shape=(spec.features,), encoder=spec.encoder)
        targets = data.read_targets(path, spec.targets)
        if len(targets) != len(names):
            raise ValueError(f"{path} has {len(names)} inputs and {len(targets)} targets: give one target per input")
        return data.RegressionSplit(spec.standardizer.apply(raw), spec.target_standardizer.apply(targets))

    def resolve_paths(self) -> Self:
        return replace(self, data=absolute_path(self.data, data.REGRESSION_DATASETS))
