"""The config of `charax train series`."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Literal, Self

from charax import data, models, solve, train
from charax.data import Separator
from charax.fields import Interpolation
from charax.models import SeriesMethod, SeriesReadout
from charax.tasks import series
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
    from charax.tasks.series._task import SeriesSpec, SeriesTask

_STEPS_PER_EPOCH = 8
"""The series of a small data set are repeated within an epoch, which ends with an evaluation and a checkpoint."""
_KEPT_STEPS = 128
"""The gradient of one step between two observations, of series up to this long on average, keeps what it needs: two
thirds of the time of computing it again. That takes memory for every step, so that longer series compute it again."""
_ALIGNED_SOLVERS = ("euler", "midpoint", "bosh3")
"""Methods without a stage at the end of a step, where the path may have a kink."""


_METHODS_WITH: Mapping[tuple[str, ...], tuple[SeriesMethod, ...]] = {
    ("state_dim",): ("cde", "hybrid", "c-node", "node"),
    ("characteristic_dim",): ("hybrid", "c-node"),
    ("interpolation", "no_counts", "state_only", "windows"): ("cde", "hybrid"),
    ("readout", "summary_start"): ("cde", "hybrid", "gru"),
}
"""The methods that have some settings which others do not have."""


@dataclass(frozen=True)
class SeriesConfig(AbstractConfig):
    """A model of whole series, its data and its training.

    ```python
    import charax

    assert charax.SeriesConfig().load_data().spec.classes == ("left", "right")
    ```
    """

    name: ClassVar[str] = "series"

    data: str = "turns"
    """Built-in series (turns), or the path of a .ts or .ts.gz (UEA, UCR), of an .npz with x (NaN is missing), y and
    perhaps t and lengths, or of a long table (.csv, .tsv, .txt, .parquet, .xlsx) with a row per series and time, whose
    empty cells are missing."""
    test: str | None = None
    """Path of a file of test series. By default a fifth of the series."""
    target: str = "label"
    """Column of a table that holds the class, or the number, of a series."""
    regression: bool = False
    """Predict a number instead of a class."""
    series: str = "series"
    """Column of a table that names the series."""
    time: str = "time"
    """Column of a table with times or dates, which increase within each series and need not be regular."""
    separator: Separator | None = None
    """Separator of the columns of a text file. By default found out."""
    validation_fraction: float = field(default=0.15, metadata=ADDED_LATER)
    """Set this fraction of the series aside for validation; at least one of each class."""
    dropped_percent: float = 0.0
    """Remove this many percent of all observations at random, of training and test series."""
    method: SeriesMethod = "cde"
    """cde: a neural controlled differential equation along the observed path. c-node: learned directions that read a
    summary of the series. hybrid: the observed directions and the learned ones. node: from the first observations only.
    gru: a recurrent network that sees the time gaps."""
    width: int = 32
    """Width of the networks; size of the state of a gru."""
    state_dim: int = 16
    """Size of the state of all methods but gru."""
    characteristic_dim: int = 4
    """Number of learned directions of hybrid and c-node."""
    interpolation: Interpolation = "hermite"
    """Path of cde and hybrid. hermite and rectilinear never look ahead; linear does where values are missing, and
    natural always."""
    no_counts: bool = False
    """Leave the number of observations of each channel so far out of the path of cde and hybrid."""
    state_only: bool = False
    """Let the Jacobian of cde and hybrid read the state alone, and not the observed values next to it."""
    readout: SeriesReadout = "mean"
    """What the outputs of cde, hybrid and gru are made from. last: the last state. mean: its mean over time, too."""
    summary_start: bool = field(default=False, metadata=ADDED_LATER)
    """Make the initial state of cde, hybrid and gru from a summary of the series, too: means, deviations, changes and
    how much was observed."""
    windows: int | None = None
    """Summarize the path of cde and hybrid by log-signatures over this many windows (log-ODE), for long series."""
    depth: Literal[1, 2] = 2
    """Depth of the log-signatures: 1 has increments, 2 areas too."""
    drop_augmentation: float = 0.7
    """In every mini-batch remove up to this fraction of the observations of each training series, at random."""
    noise_augmentation: float = 0.0
    """In every mini-batch add noise of this size to the training series, in units of the standard deviations."""
    solver: SolverConfig = field(default_factory=SolverConfig)
    """How to integrate. The steps of cde and hybrid are those between two observations, or of a window."""
    optimizer: OptimizerConfig = field(
        default_factory=lambda: OptimizerConfig(learning_rate=3e-3, weight_decay=1e-2, ema=0.99)
    )
    """How to optimize."""
    loop: LoopConfig = field(default_factory=lambda: LoopConfig(epochs=60, batch_size=32))
    """How long to train."""

    def __post_init__(self):
        check_range(
            self,
            least={
                "width": 1,
                "state_dim": 1,
                "characteristic_dim": 1,
                "windows": 1,
                "dropped_percent": 0,
                "drop_augmentation": 0,
                "noise_augmentation": 0,
            },
        )
        check_sizes(self, width="width", state_dim="width", characteristic_dim="k", windows="steps")
        if not 0 < self.validation_fraction < 0.8:
            raise ValueError(
                f"validation_fraction must be above 0 and below 0.8, got {self.validation_fraction}: a fifth of the "
                "series may be needed to test, and some to train on"
            )
        if self.dropped_percent >= 100 or self.drop_augmentation >= 1:
            raise ValueError("dropped_percent must be below 100 and drop_augmentation below 1: something must be left")

    def task_type(self) -> type["SeriesTask"]:
        return series.SeriesTask

    def load_data(self) -> TaskData:
        loaded = data.load_series_dataset(
            self.data,
            test=self.test,
            target=self.target,
            series=self.series,
            time=self.time,
            regression=self.regression,
            dropped_percent=self.dropped_percent,
            separator=self.separator,
            seed=self.loop.seed,
            validation_fraction=self.validation_fraction,
        )
        spec = series.SeriesSpec(
            loaded.scaling,
            loaded.classes,
            loaded.target_standardizer,
            self.series,
            self.time,
            self.target,
            loaded.time_kind,
        )
        count = len(loaded.train.lengths)
        rows = train.repeat_rows(count, _STEPS_PER_EPOCH * min(self.loop.batch_size or train.BATCH_SIZE, count))
        return TaskData(Splits(loaded.train.take(rows), loaded.validation, loaded.test), spec, loaded.notes)

    def unused(self, loaded: TaskData) -> Mapping[tuple[str, ...], str]:
        found = train.unused_separator(self.data)
        if not data.is_table(self.data):
            found["series", "time", "target"] = f"{Path(self.data).name} has no named columns: leave it out"
        for names, methods in _METHODS_WITH.items():
            if self.method not in methods:
                found[names] = f"{self.method} has none: choose {' or '.join(methods)}, or leave it out"
        if self.windows is None:
            found["depth",] = "only log-signatures have a depth: add --windows, or leave it out"
        return found

    def build_task(self, spec: "SeriesSpec") -> "SeriesTask":
        return self.task_type()(
            design=self.design(spec),
            solver=self._solver(spec.scaling.length),
            spec=spec,
            drop_augmentation=self.drop_augmentation,
            noise_augmentation=self.noise_augmentation,
        )

    def design(self, spec: "SeriesSpec") -> "models.SeriesDesign":
        """Choose the sizes of the model.

        Args:
            spec: The description of the data.

        Returns:
            The design.
        """
        return models.SeriesDesign(
            self.method,
            width=self.width,
            state_dim=self.state_dim,
            characteristic_dim=self.characteristic_dim,
            interpolation=self.interpolation,
            # One digit, so that similar data share compiled programs.
            count_scale=None if self.no_counts else float(f"{1 / spec.scaling.length:.0e}"),
            windows=self.windows,
            depth=self.depth,
            reads_path=not self.state_only,
            readout=self.readout,
            summary_start=self.summary_start,
        )

    def _solver(self, length: float) -> "solve.Solver":
        follows_path = self.method in ("cde", "hybrid")
        if self.method == "gru" and self.solver != SolverConfig():
            raise ValueError("a gru integrates nothing: leave out the flags of the solver")
        solver = self.solver.build(solve.Solver("midpoint", steps=1 if follows_path else 8), exact=True)
        if not follows_path:
            return solver
        if self.solver == SolverConfig() and (self.windows or length) <= _KEPT_STEPS:
            solver = replace(solver, adjoint="direct")
        if solver.steps is None and (self.windows is not None or self.interpolation in ("linear", "rectilinear")):
            raise ValueError(
                "adaptive steps may leap over the kinks of this path: use --steps, or a cubic interpolation without "
                "windows"
            )
        if solver.steps is not None and solver.method not in _ALIGNED_SOLVERS:
            raise ValueError(
                f"{solver.method} has a stage at the end of its steps, where the path may have a kink: choose "
                f"--solver {', '.join(_ALIGNED_SOLVERS[:-1])} or {_ALIGNED_SOLVERS[-1]}"
            )
        return solver

    def load_labelled(self, path: Path, spec: "SeriesSpec") -> "data.SeriesSplit":
        return data.read_labelled_series(
            path,
            spec.scaling,
            classes=spec.classes,
            target_standardizer=spec.target_standardizer,
            target=spec.target,
            series=spec.series,
            time=spec.time,
            time_kind=spec.time_kind,
        )

    def resolve_paths(self) -> Self:
        test = None if self.test is None else absolute_path(self.test, ())
        return replace(self, data=absolute_path(self.data, (data.TURNS,)), test=test)
