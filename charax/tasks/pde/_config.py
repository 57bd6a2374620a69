"""The settings of `charax train pde`."""

from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from charax.data import BOXES, load_solution
from charax.models import Part
from charax.models._regressor import DEFAULT_SOLVER
from charax.tasks.pde._task import PDEMethod, PDETask
from charax.train._config import LoopConfig, OptimizerConfig, SolverConfig
from charax.train._task import Problem

_STEPS = 50
"""Steps of an epoch, at least: data are few, and every epoch ends with a checkpoint, so they are gone through often."""


@dataclass(frozen=True)
class PDEConfig:
    """A learned PDE, its data and its training."""

    data: str = "paper"
    """A built-in problem, or the path of an .npz, .csv or .parquet with x (or x1, x2 …), t and u (or u1, u2 …)."""
    method: PDEMethod = "c-node"
    """c-node: the paper's. equation: learns a and c of uₜ + a·∇u = c. node: the paper's baseline. node-fair: learns
    the initial value, too."""
    width: int = 15
    """Width of the networks."""
    velocity_reads: tuple[Part, ...] = ("u",)
    """What the velocity of `equation` may depend on: x, t, u."""
    source_reads: tuple[Part, ...] = ("u",)
    """What the source of `equation` may depend on: x, t, u."""
    points: int = 200
    """Points of a built-in problem to learn from, and as many to test."""
    extrapolate: bool = False
    """Let `predict` answer outside of the range of the data."""
    solver: SolverConfig = field(default_factory=SolverConfig)
    optimizer: OptimizerConfig = field(default_factory=lambda: OptimizerConfig(learning_rate=5e-3, weight_decay=0.0))
    loop: LoopConfig = field(default_factory=lambda: LoopConfig(epochs=50, batch_size=160))

    @property
    def label(self) -> str:
        """A short name for a run with these settings."""
        return f"{Path(self.data).stem}-{self.method}"

    def prepare(self) -> Problem:
        """Load the data and say what is to be learned from it.

        ```python
        from charax.tasks.pde import PDEConfig

        problem = PDEConfig(data="burgers-2d").prepare()
        assert problem.task.places == ("x1", "x2") and problem.task.values == ("u1", "u2")
        ```
        """
        for name, least in (("width", 1), ("points", 10)):
            if getattr(self, name) < least:
                raise ValueError(f"{name} must be at least {least}, got {getattr(self, name)}")
        data = load_solution(self.data, seed=self.loop.seed, points=self.points)
        task = PDETask.of(
            data,
            self.method,
            width=self.width,
            solver=self.solver.change(DEFAULT_SOLVER),
            velocity_reads=self.velocity_reads,
            source_reads=self.source_reads,
            extrapolate=self.extrapolate,
        )
        rows = np.tile(np.arange(len(data.train.t)), -(-_STEPS * self.loop.batch_size // len(data.train.t)))
        return Problem(task, data.train.take(rows), data.validation, data.test)

    def located(self) -> "PDEConfig":
        """The same with a path that does not depend on the working folder."""
        return self if self.data in BOXES else replace(self, data=str(Path(self.data).expanduser().absolute()))
