"""The config of `charax train pde`."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, ClassVar, Self

from charax import data, models, train
from charax.models import Dependence, FluxShape, PDEMethod
from charax.tasks import pde
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
    from charax.tasks.pde._spec import PDESpec
    from charax.tasks.pde._task import PDETask

_OF_EQUATIONS = ("velocity_reads", "source_reads", "refine", "terms", "known_source", "known_initial", "period", "flux")
"""What only a learned equation has."""
_STEPS_PER_EPOCH = 50
"""Data are few, and every epoch ends with an evaluation and a checkpoint, so that an epoch repeats them."""


@dataclass(frozen=True)
class PDEConfig(AbstractConfig):
    """A learned PDE, its data and its training.

    ```python
    import charax

    spec = charax.PDEConfig(data="burgers-2d").load_data().spec
    assert spec.position_columns == ("x1", "x2") and spec.value_columns == ("u1", "u2")
    ```
    """

    name: ClassVar[str] = "pde"

    data: str = "paper"
    """Built-in problem, or the path of an .npz, .csv or .parquet with x (or x1, x2 …), t and u (or u1, u2 …), or of an
    .npz or .mat with a grid x[i], t[j], u[i, j]."""
    method: PDEMethod = "c-node"
    """c-node: the paper's C-NODE. equation: learns a and c of uₜ + a·∇u = c. node: the paper's baseline. node-fair: a
    Neural ODE that learns the initial value, too. mlp: a network of x and t."""
    width: int = 15
    """Width of the networks."""
    velocity_reads: tuple[Dependence, ...] = ("u",)
    """What the velocity of `equation` depends on: x, t, u."""
    source_reads: tuple[Dependence, ...] = ("u",)
    """What the source of `equation` depends on: x, t, u."""
    refine: bool = True
    """Fit the networks of `equation` by least squares after training, and search for the formula of the equation."""
    terms: tuple[str, ...] = ()
    """Terms to search in addition to powers, products and sines, such as exp(u) or x*u**2."""
    known_source: tuple[str, ...] = ()
    """Source of `equation`, if it is known: a formula of x, t and u, such as -0.2*u; several values have one each."""
    known_initial: tuple[str, ...] = ()
    """Initial value of `equation`, if it is known: a formula of x, such as 2+sin(x); several values have one each."""
    period: tuple[float, ...] = ()
    """Period of each position of `equation`, if the domain is a circle."""
    flux: FluxShape | None = None
    """Learn `equation` in conservative form uₜ + f(u)ₓ = c, with a flux f that is convex, increasing … or any."""
    points: int = 200
    """Training samples of a built-in problem, and as many test samples; of a grid, training samples to draw."""
    noise: float = 0.0
    """Standard deviation of noise on the training samples of a built-in problem, relative to the range of u."""
    until: float | None = None
    """Use only the samples of a file up to this time."""
    extrapolate: bool = False
    """Predict outside of the range of the data, too."""
    solver: SolverConfig = field(default_factory=SolverConfig)
    """How to integrate."""
    optimizer: OptimizerConfig = field(
        default_factory=lambda: OptimizerConfig(learning_rate=5e-3, weight_decay=0.0, schedule="cosine")
    )
    """How to optimize."""
    loop: LoopConfig = field(default_factory=lambda: LoopConfig(epochs=50, batch_size=160))
    """How long to train."""

    def __post_init__(self):
        check_range(self, least={"width": 1, "points": 10, "noise": 0})
        check_sizes(self, width="width", points="lines")

    def task_type(self) -> type["PDETask"]:
        return pde.PDETask

    def load_data(self) -> TaskData:
        loaded = data.load_solution(
            self.data, seed=self.loop.seed, points=self.points, noise=self.noise, until=self.until
        )
        rows = train.repeat_rows(len(loaded.train.t), _STEPS_PER_EPOCH * (self.loop.batch_size or train.BATCH_SIZE))
        return TaskData(Splits(loaded.train.take(rows), loaded.validation, loaded.test), pde.PDESpec.from_data(loaded))

    def build_task(self, spec: "PDESpec") -> "PDETask":
        return self.task_type()(
            method=self.method,
            width=self.width,
            solver=self.solver.build(
                models.DEFAULT_EQUATION_SOLVER if self.method == "equation" else models.DEFAULT_PDE_SOLVER, exact=True
            ),
            spec=spec,
            velocity_reads=self.velocity_reads,
            source_reads=self.source_reads,
            extrapolate=self.extrapolate,
            is_refined=self.refine,
            terms=self.terms,
            known_source=self.known_source,
            known_initial=self.known_initial,
            period=self.period,
            flux=self.flux,
        )

    def unused(self, loaded: TaskData) -> Mapping[tuple[str, ...], str]:
        found: dict[tuple[str, ...], str] = {}
        if self.method != "equation":
            found[_OF_EQUATIONS] = "only a learned equation has that: add --method equation, or leave it out"
        elif not self.refine:
            found["terms",] = "without --refine no formula is searched for: leave it out"
        if self.method == "mlp":
            found["solver.solver", "solver.steps", "solver.rtol", "solver.atol", "solver.adjoint"] = (
                "an mlp integrates nothing: leave it out"
            )
        if self.data in data.BOXES:
            found["until",] = f"the problem {self.data} is sampled at all of its times: leave it out"
        else:
            found["noise",] = "noise is added to built-in problems only: leave it out"
            if data.is_table(self.data):
                found["points",] = "all samples of a table are used: leave it out"
        return found

    def resolve_paths(self) -> Self:
        return replace(self, data=absolute_path(self.data, data.BOXES))
