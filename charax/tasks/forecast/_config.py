"""The config of `charax train forecast`."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Self

from charax import data, models, solve, train
from charax.data import HoldOut, TransformChoice
from charax.models import ForecastMethod, ForecastStart
from charax.tasks import forecast
from charax.train import (
    ADDED_LATER,
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
    import numpy as np

    from charax.tasks.forecast._task import ForecastSpec, ForecastTask
    from charax.tasks.forecast._window_task import WindowForecastTask, WindowSpec

_STEPS_PER_EPOCH = 50
"""Data are few, and every epoch ends with an evaluation and a checkpoint, so that an epoch repeats them."""
_MANY_WINDOWS = 1_000
"""From so many on, what a model learns to add to the last value is better than what it learns to add to a linear
forecast, whose errors say less of the system."""
_OF_WINDOWS = ("horizon", "hold_out", "folds", "transform", "start", "latent", "state_dim", "drop_augmentation")
"""What only forecasts from past observations have."""
_OF_STARTS = ("augment_dim", "points")
"""What they do not have."""
_NAMED_SERIES = 1_000
"""Of more series, figures show the numbers."""
_LEARNING_RATE, _WINDOW_LEARNING_RATE = 1e-3, 3e-3
"""Without past observations, noise is fitted by ever stiffer fields: at 3e-3 the paper's series diverged."""


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
    """The paper's series (paper), simulated ones (pendulum, lotka-volterra; with --history), or the path of an .npz,
    .csv or .parquet with a series, a time and value columns."""
    series: str = "series"
    """Column that names the series."""
    time: str = "time"
    """Column of times or dates, which increase within each series and need not be regular."""
    context: tuple[str, ...] = ()
    """Columns that are known from the start of a series, and with --history at all times, also in the future; all
    others are values to forecast."""
    history: int | None = None
    """Infer the state from up to this many past observations, some of which may be missing, instead of starting at the
    first value of a series."""
    horizon: int = 10
    """With --history: learn to forecast this many observations."""
    hold_out: HoldOut = "times"
    """With --history: test on the last times of every series, or on whole series. Then prediction intervals are for new
    series, and wider the fewer series there are."""
    folds: int | None = None
    """With --history: train this many models at once, each of which does not learn one of as many folds of series (or
    of consecutive blocks of time), and average them. What they do not learn selects the weights and calibrates the
    intervals. 1 sets a validation split aside instead. 5 for fewer than 50 series, else 1, by default."""
    transform: TransformChoice = "auto"
    """With --history: forecast values, their square roots or their logarithms; auto chooses by validation, or by the
    last training times where times are held out, for values that are never negative."""
    start: ForecastStart | None = field(default=None, metadata=ADDED_LATER)
    """With --history: learn what is to be added to the linear forecast (linear), which takes few data, or to the last
    value (last). Then validation chooses how much of the difference from the linear forecast is kept. By default last
    from 1,000 windows in training on."""
    latent: bool = False
    """With --history: infer a distribution of the state, as in latent ODEs."""
    state_dim: int = 16
    """With --history: size of the inferred state."""
    drop_augmentation: float = 0.2
    """With --history: in every mini-batch remove up to this fraction of the past values of each window, at random."""
    method: ForecastMethod = "c-node"
    """c-node. node: the paper's baseline, which reads the time. node-fair: a Neural ODE that does not."""
    width: int = 64
    """Width of the networks."""
    characteristic_dim: int = 8
    """Dimension k of the characteristic."""
    augment_dim: int = 2
    """Without --history: zeros that are appended to the state, so that it can oscillate."""
    damping: float | None = None
    """Let trends level off: extrapolate by at most this many times the time span of the data."""
    points: int = 200
    """Observations of the paper's series."""
    solver: SolverConfig = field(default_factory=SolverConfig)
    """How to integrate."""
    optimizer: OptimizerConfig = field(default_factory=lambda: OptimizerConfig(weight_decay=1e-2, schedule="cosine"))
    """How to optimize."""
    loop: LoopConfig = field(default_factory=lambda: LoopConfig(epochs=30, batch_size=160))
    """How long to train."""

    def __post_init__(self):
        least = {"width": 1, "characteristic_dim": 1, "augment_dim": 0, "points": 10}
        check_range(
            self, least={**least, "history": 1, "horizon": 1, "folds": 1, "state_dim": 1, "drop_augmentation": 0}
        )
        if self.drop_augmentation >= 1:
            raise ValueError("drop_augmentation must be below 1: something must be left")
        check_sizes(self, width="width", augment_dim="width", characteristic_dim="k", points="lines")
        check_sizes(self, state_dim="width", history="steps", horizon="steps")
        check_positive(self, "damping")
        if self.optimizer.learning_rate is None:
            rate = _LEARNING_RATE if self.history is None else _WINDOW_LEARNING_RATE
            object.__setattr__(self, "optimizer", replace(self.optimizer, learning_rate=rate))

    def task_type(self) -> type["ForecastTask"] | type["WindowForecastTask"]:
        return forecast.ForecastTask if self.history is None else forecast.WindowForecastTask

    def load_data(self) -> TaskData:
        if self.history is not None:
            return self._load_windows(self.history)
        if self.data in data.DYNAMICS:
            raise ValueError(f"{self.data} is observed with noise, also at its start: add --history 10")
        loaded = data.load_series(
            self.data,
            series=self.series,
            time=self.time,
            context=self.context,
            seed=self.loop.seed,
            points=self.points,
        )
        spec = forecast.ForecastSpec.from_data(loaded)
        train_rows = loaded.train.take(self._rows(len(loaded.train.t)))
        return TaskData(Splits(train_rows, loaded.validation, loaded.test), spec)

    def unused(self, loaded: TaskData) -> Mapping[tuple[str, ...], str]:
        found: dict[tuple[str, ...], str] = {}
        if self.method != "c-node":
            found["characteristic_dim",] = f"{self.method} has no characteristics: choose c-node, or leave it out"
        if not data.is_table(self.data):
            found["series", "time"] = f"{self.data} has no named columns: leave it out"
        if self.history is None:
            found[_OF_WINDOWS] = "only forecasts from past observations have that: add --history 10, or leave it out"
            if self.data != data.PAPER_SERIES:
                found["points",] = f"they are those of the paper's series, and {self.data} has its own: leave it out"
            return found
        found[_OF_STARTS] = "forecasts from past observations do not have that: leave it out, or leave out --history"
        if self.transform != "auto" and not loaded.spec.units.transforms:
            found["transform",] = "every column may be negative, and stays as it is: leave it out"
        return found

    def _load_windows(self, history: int) -> TaskData:
        if self.data == data.PAPER_SERIES:
            raise ValueError(
                "the observations of the paper's series do not depend on earlier ones: leave out --history"
            )
        loaded = data.load_forecast_windows(
            self.data,
            series=self.series,
            time=self.time,
            context=self.context,
            history=history,
            horizon=self.horizon,
            hold_out=self.hold_out,
            folds=self.folds,
            transform=self.transform,
            seed=self.loop.seed,
        )
        train_rows = loaded.train.take(self._rows(len(loaded.train.times)))
        linear = loaded.units.linear_forecasts[0]
        fitted = any(map(any, linear.weights))
        start = self.start or ("last" if len(loaded.train.times) >= _MANY_WINDOWS else "linear")
        if start == "last":
            begin = "as the last values"
        elif fitted:
            begin = f"as an autoregression of order {linear.order}, which is chosen on validation,"
        else:
            begin = "as the last values, since no autoregression is better on validation,"
        kinds = [
            f"{each.kind} of {name}" for name, each in zip(loaded.units.values, loaded.units.transforms, strict=False)
        ]
        what = f"Forecasts of {', '.join(kinds)}" if kinds else "Forecasts"
        return TaskData(
            Splits(train_rows, loaded.validation, loaded.test),
            forecast.WindowSpec(
                loaded.units,
                start,
                "linear",
                for_new_series=self.hold_out == "series",
                names=loaded.names[:_NAMED_SERIES],
                time_kind=loaded.time_kind,
            ),
            (f"{what} begin {begin} and are corrected by the model",),
        )

    def _rows(self, count: int) -> "np.ndarray":
        return train.repeat_rows(count, _STEPS_PER_EPOCH * min(self.loop.batch_size or train.BATCH_SIZE, count))

    def build_task(self, spec: "ForecastSpec | WindowSpec") -> "ForecastTask | WindowForecastTask":
        if isinstance(spec, forecast.WindowSpec):
            return forecast.WindowForecastTask(
                design=models.WindowDesign(
                    self.method,
                    self.width,
                    self.state_dim,
                    self.characteristic_dim,
                    self.damping,
                    self.latent,
                    count_scale=float(f"{1 / spec.units.history:.0e}"),
                    interpolation=spec.interpolation,
                    start=spec.start,
                ),
                solver=self.solver.build(solve.Solver("midpoint", steps=2), exact=True),
                spec=spec,
                drop_augmentation=self.drop_augmentation,
            )
        design = models.ForecasterDesign(
            self.method, self.width, self.characteristic_dim, self.augment_dim, self.damping
        )
        # More accurate than what is known of noisy series.
        solver = self.solver.build(solve.Solver("midpoint", steps=16), exact=True)
        return forecast.ForecastTask(design=design, solver=solver, spec=spec)

    def load_labelled(self, path: Path, spec: "ForecastSpec | WindowSpec") -> "data.ForecastWindows":
        if isinstance(spec, forecast.WindowSpec):
            return data.read_labelled_windows(path, spec.units, time_kind=spec.time_kind)
        raise ValueError(f"forecasts without --history cannot be evaluated on new data, so {path} was not read")

    def resolve_paths(self) -> Self:
        return replace(self, data=absolute_path(self.data, (data.PAPER_SERIES, *data.DYNAMICS)))
