"""The config of `charax train forecast`."""

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, ClassVar, Self

from charax import data, models, solve, train
from charax.models import ForecastMethod
from charax.tasks import forecast
from charax.train import (
    AbstractConfig,
    LoopConfig,
    OptimizerConfig,
    SolverConfig,
    Splits,
    TaskData,
    absolute_path,
    check_positive,
    check_range,
    check_sizes,
)

if TYPE_CHECKING:
    from charax.tasks.forecast._task import ForecastSpec, ForecastTask

_STEPS_PER_EPOCH = 50
"""Data are few, and every epoch ends with an evaluation and a checkpoint, so that an epoch repeats them."""


@dataclass(frozen=True)
class ForecastConfig(AbstractConfig):
    """A forecaster, its series and its training.

    ```python
    import charax

    assert charax.ForecastConfig().load_data().spec.columns.values == ("u",)
    ```
    """

    name: ClassVar[str] = "forecast"

    data: str = "paper"
    """The paper's series (paper), or the path of an .npz, .csv or .parquet with a series, a time and value columns."""
    series: str = "series"
    """Column that names the series."""
    time: str = "time"
    """Column of times, which increase within each series and need not be regular."""
    context: tuple[str, ...] = ()
    """Columns that are known from the start of a series; all others are values to forecast."""
    method: ForecastMethod = "c-node"
    """c-node. node: the paper's baseline, which reads the time. node-fair: a Neural ODE that does not."""
    width: int = 64
    """Width of the networks."""
    characteristic_dim: int = 8
    """Dimension k of the characteristic."""
    augment_dim: int = 2
    """Zeros that are appended to the state, so that it can oscillate."""
    damping: float | None = None
    """Let trends level off: extrapolate by at most this many times the time span of the data."""
    points: int = 200
    """Observations of the paper's series."""
    solver: SolverConfig = field(default_factory=SolverConfig)
    """How to integrate."""
    optimizer: OptimizerConfig = field(
        default_factory=lambda: OptimizerConfig(learning_rate=3e-3, weight_decay=1e-2, schedule="cosine")
    )
    """How to optimize."""
    loop: LoopConfig = field(default_factory=lambda: LoopConfig(epochs=30, batch_size=160))
    """How long to train."""

    def __post_init__(self):
        check_range(self, least={"width": 1, "characteristic_dim": 1, "augment_dim": 0, "points": 10})
        check_sizes(self, width="width", augment_dim="width", characteristic_dim="k", points="lines")
        check_positive(self, "damping")

    @staticmethod
    def task_type() -> type["ForecastTask"]:
        return forecast.ForecastTask

    def load_data(self) -> TaskData:
        loaded = data.load_series(
            self.data,
            series=self.series,
            time=self.time,
            context=self.context,
            seed=self.loop.seed,
            points=self.points,
        )
        count = len(loaded.train.t)
        rows = train.repeat_rows(count, _STEPS_PER_EPOCH * min(self.loop.batch_size or train.BATCH_SIZE, count))
        spec = forecast.ForecastSpec.from_data(loaded)
        return TaskData(Splits(loaded.train.take(rows), loaded.validation, loaded.test), spec)

    def build_task(self, spec: "ForecastSpec") -> "ForecastTask":
        design = models.ForecasterDesign(
            self.method, self.width, self.characteristic_dim, self.augment_dim, self.damping
        )
        # More accurate than what is known of noisy series.
        solver = self.solver.build(solve.Solver("midpoint", steps=16))
        return self.task_type()(design=design, solver=solver, spec=spec)

    def resolve_paths(self) -> Self:
        return replace(self, data=absolute_path(self.data, (data.PAPER_SERIES,)))
