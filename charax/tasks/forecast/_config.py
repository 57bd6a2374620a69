"""The settings of `charax train forecast`."""

from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from charax.data import HIDDEN, load_series
from charax.models import ForecasterDesign, ForecastMethod
from charax.tasks.forecast._task import ForecastTask, default_solver
from charax.train._config import LoopConfig, OptimizerConfig, SolverConfig
from charax.train._task import Problem

_STEPS = 50
"""Steps of an epoch, at least: every epoch ends with a checkpoint, so few data are gone through often."""


@dataclass(frozen=True)
class ForecastConfig:
    """A forecaster, its series and its training."""

    data: str = HIDDEN
    """paper, or the path of an .npz, .csv or .parquet with a series, a time and columns of values."""
    series: str = "series"
    """The column that names the series."""
    time: str = "time"
    """The column of times, in increasing order within each series; they need not be regular."""
    context: tuple[str, ...] = ()
    """Columns that are known from the start of a series; all others are values to forecast."""
    method: ForecastMethod = "c-node"
    """c-node. node: as the paper's, which reads the time. node-fair: one that does not."""
    width: int = 64
    """Width of the networks."""
    characteristic_dim: int = 8
    """Dimensions k of the characteristic."""
    augment_dim: int = 2
    """Zeros that are added to the state, so that it can swing."""
    damping: float | None = None
    """Let trends level off: go on for at most so many times the span of the data."""
    points: int = 200
    """Observations of the paper's series to learn from."""
    solver: SolverConfig = field(default_factory=SolverConfig)
    optimizer: OptimizerConfig = field(default_factory=lambda: OptimizerConfig(learning_rate=3e-3, weight_decay=1e-2))
    loop: LoopConfig = field(default_factory=lambda: LoopConfig(epochs=30, batch_size=160))

    @property
    def label(self) -> str:
        """A short name for a run with these settings."""
        return f"{Path(self.data).stem}-forecast-{self.method}"

    def prepare(self) -> Problem:
        """Load the data and say what is to be learned from it.

        ```python
        from charax.tasks.forecast import ForecastConfig

        assert ForecastConfig().prepare().task.columns.values == ("u",)
        ```
        """
        data = load_series(
            self.data,
            series=self.series,
            time=self.time,
            context=self.context,
            seed=self.loop.seed,
            points=self.points,
        )
        design = ForecasterDesign(self.method, self.width, self.characteristic_dim, self.augment_dim, self.damping)
        task = ForecastTask.of(data, design, self.solver.change(default_solver()))
        seen = len(data.train.t)
        rows = np.tile(np.arange(seen), -(-_STEPS * min(self.loop.batch_size, seen) // seen))
        return Problem(task, data.train.take(rows), data.validation, data.test)

    def located(self) -> "ForecastConfig":
        """The same with a path that does not depend on the working folder."""
        return self if self.data == HIDDEN else replace(self, data=str(Path(self.data).expanduser().absolute()))
