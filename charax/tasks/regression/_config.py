"""The config of `charax train regress`."""

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, ClassVar, Self

from charax import data, models, solve
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
    """Data set (diabetes), or the path of a table (.csv, .tsv, .txt, .parquet, .xlsx) or of an .npz with x and y."""
    target: tuple[str, ...] = ()
    """Columns of a table to predict from the other columns. By default the column target."""
    separator: Separator | None = None
    """Separator of the columns of a text file. By default found out."""
    method: Method = "c-node"
    """One of the paper's eight methods."""
    width: int = 32
    """Width of the networks."""
    augment_dim: int = 4
    """Dimensions that ANODE, IL-NODE and second-order models add to the features."""
    characteristic_dim: int = 2
    """Dimension k of the characteristic."""
    jacobian: JacobianForm = "separate"
    """Form of the Jacobian. separate: one network per column. joint: one network for all columns, for large k."""
    solver: SolverConfig = field(default_factory=SolverConfig)
    """How to integrate."""
    optimizer: OptimizerConfig = field(
        default_factory=lambda: OptimizerConfig(learning_rate=1e-2, weight_decay=2.0, schedule="constant")
    )
    """How to optimize."""
    loop: LoopConfig = field(default_factory=lambda: LoopConfig(epochs=100, batch_size=256, patience=20))
    """How long to train."""

    def __post_init__(self):
        check_range(self, least={"width": 1, "augment_dim": 1, "characteristic_dim": 1})
        check_sizes(self, width="width", augment_dim="width", characteristic_dim="k")

    @staticmethod
    def task_type() -> type["RegressionTask"]:
        return regression.RegressionTask

    def load_data(self) -> TaskData:
        loaded = data.load_regression(self.data, seed=self.loop.seed, target=self.target, separator=self.separator)
        spec = regression.RegressionSpec.from_data(loaded)
        return TaskData(Splits(loaded.train, loaded.validation, loaded.test), spec, loaded.notes)

    def build_task(self, spec: "RegressionSpec") -> "RegressionTask":
        architecture = models.VectorArchitecture(
            self.method,
            width=self.width,
            augment_dim=self.augment_dim,
            characteristic_dim=self.characteristic_dim,
            jacobian=self.jacobian,
        )
        solver = self.solver.build(solve.Solver("midpoint", steps=2))
        return self.task_type()(architecture=architecture, solver=solver, spec=spec)

    def resolve_paths(self) -> Self:
        return replace(self, data=absolute_path(self.data, data.REGRESSION_DATASETS))
