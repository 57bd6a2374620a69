"""The config of `charax train line`."""

from dataclasses import dataclass, field, replace
from typing import ClassVar, Literal, Self

import numpy as np

from charax.solve import Solver
from charax.train import (
    AbstractConfig,
    LoopConfig,
    OptimizerConfig,
    SolverConfig,
    Splits,
    TaskData,
    absolute_path,
    check_range,
)
from tests.train.line_task._task import LineSpec, LineTask, Points


@dataclass(frozen=True)
class LineConfig(AbstractConfig):
    """A straight line through points."""

    name: ClassVar[str] = "line"

    data: str = "plane"
    """Points near a plane (plane), or the path of an .npz with x and y."""
    method: Literal["affine", "linear"] = "affine"
    """Whether the line may miss the origin."""
    points: int = 40
    """Training points of the plane."""
    slopes: tuple[float, ...] = (2.0, -1.0)
    """Slopes of the plane."""
    solver: SolverConfig = field(default_factory=SolverConfig)
    """How to integrate: nothing, here."""
    optimizer: OptimizerConfig = field(
        default_factory=lambda: OptimizerConfig(learning_rate=0.1, weight_decay=0.0, schedule="constant")
    )
    """How to optimize."""
    loop: LoopConfig = field(default_factory=lambda: LoopConfig(epochs=3, batch_size=8))
    """How long to train."""

    def __post_init__(self):
        check_range(self, least={"points": 2})

    def task_type(self) -> type[LineTask]:
        return LineTask

    def load_data(self) -> TaskData:
        if self.data == "plane":
            splits = Splits(*(self._plane(n, i) for i, n in enumerate((self.points, 13, 11))))
        else:
            with np.load(self.data) as arrays:
                x, y = arrays["x"].astype(np.float32), arrays["y"].astype(np.float32)
            third = len(x) // 3
            parts = slice(None, third), slice(third, 2 * third), slice(2 * third, None)
            splits = Splits(*(Points(x[part], y[part]) for part in parts))
        return TaskData(splits, LineSpec(inputs=splits.train.x.shape[1]))

    def _plane(self, n: int, split: int) -> Points:
        x = np.random.default_rng([self.loop.seed, split]).normal(size=(n, len(self.slopes))).astype(np.float32)
        return Points(x, x @ np.asarray(self.slopes, np.float32) + np.float32(0.5))

    def build_task(self, spec: LineSpec) -> LineTask:
        return LineTask(
            solver=self.solver.build(Solver("euler", steps=1)), spec=spec, has_intercept=self.method == "affine"
        )

    def resolve_paths(self) -> Self:
        return replace(self, data=absolute_path(self.data, ("plane",)))
