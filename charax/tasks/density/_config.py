"""The settings of `charax train density`."""

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

from charax.data import DATASETS, TOYS, load_density_data
from charax.models.flows import (
    PAPER_FLOW_SOLVER,
    PAPER_FLOWS,
    AbstractFlowDesign,
    FlowMethod,
    ImageFlowDesign,
    VectorFlowDesign,
    paper_flow_design,
)
from charax.solve import Solver
from charax.tasks.density._task import DensityTask
from charax.train._config import LoopConfig, OptimizerConfig, SolverConfig
from charax.train._task import Problem


@dataclass(frozen=True)
class DensityConfig:
    """A density, its data and its training."""

    data: str = "circles"
    """circles, moons, pinwheel, checkerboard, digits, mnist, cifar10, svhn, or the path of an .npz, .csv, .parquet or
    folder of images."""
    method: FlowMethod = "c-node"
    preset: Literal["small", "paper"] = "small"
    """small: seconds or minutes. paper: the paper's layers and solver, for circles, mnist, cifar10 and svhn."""
    width: int | None = None
    """Width of the networks, instead of the preset's."""
    characteristic_dim: int | None = None
    """Dimensions k of the characteristic, instead of the preset's."""
    blocks: int | None = None
    """Flows in a row at each scale of an image, instead of the preset's."""
    end_time: float | None = None
    """Where the walk ends, instead of the preset's; for points and rows."""
    sharpness: float | None = None
    """How sharply the field may change, instead of the preset's 1: 8, say, for a density with thin parts; for points
    and rows."""
    conditional: bool = False
    """A density for each class instead of one for all; for rows with classes (y, or a column called target)."""
    trace: Literal["exact", "hutchinson", "gaussian", "hutch++"] | None = None
    """How the trace is found in training: exact for points and rows, and hutchinson for images, if left out."""
    kinetic: float = 0.0
    """Weight of the kinetic energy: straighter ways, fewer evaluations."""
    jacobian: float = 0.0
    """Weight of the Jacobian's Frobenius norm: smoother fields, fewer evaluations."""
    points: int = 25_600
    """Points of a toy to train on."""
    shrink: int = 1
    """Average squares of this many pixels a side first."""
    solver: SolverConfig = field(default_factory=SolverConfig)
    optimizer: OptimizerConfig = field(
        default_factory=lambda: OptimizerConfig(learning_rate=5e-3, weight_decay=0.0, clip=10.0)
    )
    loop: LoopConfig = field(default_factory=lambda: LoopConfig(epochs=10, batch_size=256))

    def __post_init__(self):
        if self.loop.batch_size < 2:
            raise ValueError("batch_size must be at least 2: the gradient of one sample says little about a density")
        for name in ("kinetic", "jacobian"):
            if not getattr(self, name) >= 0:
                raise ValueError(f"{name} must not be negative, got {getattr(self, name)}")
        for name in ("width", "characteristic_dim", "blocks"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise ValueError(f"{name} must be at least 1, got {value}")
        if self.sharpness is not None and not self.sharpness > 0:
            raise ValueError(f"sharpness must be above 0, got {self.sharpness}")

    @property
    def label(self) -> str:
        """A short name for a run with these settings."""
        shrunk = f"-by{self.shrink}" if self.shrink > 1 else ""
        numbers = (("sharp", self.sharpness), ("kinetic", self.kinetic), ("jacobian", self.jacobian))
        changed = "".join(f"-{name}{value:g}" for name, value in numbers if value)
        return f"density-{Path(self.data).stem}{shrunk}-{self.method}{changed}"

    def prepare(self) -> Problem:
        """Load the data and say what is to be learned from it.

        ```python
        from charax.tasks.density import DensityConfig

        problem = DensityConfig(data="digits", method="node").prepare()
        assert problem.task.measured_in == "bits_per_dim"
        ```
        """
        data = load_density_data(
            self.data, seed=self.loop.seed, points=self.points, shrink=self.shrink, labelled=self.conditional
        )
        if self.conditional and not data.classes:
            raise ValueError(f"{self.data} has no classes to condition on: leave conditional out")
        if self.conditional and data.levels is not None:
            raise ValueError("the flows of images take no classes: leave conditional out")
        design, solver = self.design(data.shape, data.levels)
        task = DensityTask.of(
            data,
            design,
            self.solver.change(solver),
            conditional=self.conditional,
            trace=self.trace or ("exact" if data.levels is None else "hutchinson"),
            kinetic=self.kinetic,
            jacobian=self.jacobian,
            flip=self.data == "cifar10",
        )
        return Problem(task, data.train, data.validation, data.test)

    def design(self, shape: tuple[int, ...], levels: int | None) -> tuple[AbstractFlowDesign, Solver]:
        """What to build for samples of one shape, and how to integrate it."""
        chosen, solver = self._preset(levels)
        asked = {
            "width": self.width,
            "characteristic_dim": self.characteristic_dim,
            "blocks": self.blocks,
            "end_time": self.end_time,
            "sharpness": self.sharpness,
        }
        asked = {name: value for name, value in asked.items() if value is not None}
        foreign = [name for name in asked if not hasattr(chosen, name)]
        if foreign:
            raise ValueError(f"{', '.join(foreign)}: the flow of samples of shape {shape} has no such setting")
        return replace(chosen, **asked), solver

    def _preset(self, levels: int | None) -> tuple[AbstractFlowDesign, Solver]:
        if levels is None:
            return _vectors(self.method, self.preset, self.data), Solver("dopri5", rtol=1e-5, atol=1e-5)
        if self.preset == "paper":
            if self.data not in PAPER_FLOWS:
                raise ValueError(
                    f"the paper has no flow for {self.data!r}: use preset small, or {', '.join(PAPER_FLOWS)}"
                )
            return paper_flow_design(self.data, self.method), PAPER_FLOW_SOLVER
        design = ImageFlowDesign(self.method, width=24, depth=2, levels=levels, alpha=1e-6 if levels == 256 else 1e-2)
        return design, Solver("bosh3", rtol=1e-2, atol=1e-2)

    def located(self) -> "DensityConfig":
        """The same with a path that does not depend on the working folder."""
        if self.data in DATASETS or self.data in TOYS:
            return self
        return replace(self, data=str(Path(self.data).expanduser().absolute()))


def _vectors(method: FlowMethod, preset: str, data: str) -> VectorFlowDesign:
    if preset == "paper":
        if data != "circles":
            raise ValueError(f"the paper has no flow for {data!r}: use preset small")
        # The base distribution is N(0, 0.1·I).
        return VectorFlowDesign(
            method, width=32 if method == "c-node" else 68, timed=False, end_time=10.0, scale=0.1**0.5
        )
    return VectorFlowDesign(method, width=32 if method == "c-node" else 64)
