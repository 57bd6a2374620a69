"""What can be set about a run: dataclasses that are the flags of the command line and the content of `config.json`."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple, Self, get_args

from charax.solve._names import Adjoint, Precision
from charax.train._checks import check_positive, check_range, check_sizes, fill

if TYPE_CHECKING:
    from charax.solve import Solver
    from charax.train._batches import Batch
    from charax.train._task import AbstractTask

Schedule = Literal["cosine", "paper", "warmup", "constant"]
"""The learning rate over training: to 0 on a cosine, by steps as in the paper, with a warm-up, or constant."""
KeptWeights = Literal["best", "last"]
"""The weights that a run keeps: the best ones on the validation split, or those of the last epoch."""
EPOCHS = 20
"""The maximum number of epochs where neither the user nor the task says anything."""
BATCH_SIZE = 64
"""Samples per mini-batch where neither the user nor the task says anything."""
LEARNING_RATE, WEIGHT_DECAY = 5e-3, 5e-2
"""What is taken where neither the user nor the task says anything."""
ADDED_LATER = {"added_later": True}
"""Marks a setting that configs of earlier versions lack: its default is what they did."""
_LARGEST_SEED = 2**63 - 1
_LARGEST_COUNT = 2**31 - 1


@dataclass(frozen=True)
class SolverConfig:
    """How to integrate. Whatever is left out is the preset's choice.

    ```python
    from charax import Solver, SolverConfig

    assert SolverConfig(solver="euler").build(Solver("midpoint", steps=4)).steps == 4
    ```
    """

    solver: str | None = None
    """Solver: euler, midpoint, heun, bosh3, tsit5, dopri5 or dopri8."""
    steps: int | None = None
    """Take this many fixed steps."""
    rtol: float | None = None
    """Relative tolerance of adaptive steps."""
    atol: float | None = None
    """Absolute tolerance of adaptive steps; that of rtol if only rtol is given."""
    adjoint: Adjoint | None = None
    """How gradients are computed: checkpoint, backsolve or direct."""
    precision: Precision | None = field(default=None, metadata=ADDED_LATER)
    """float32 by default. float64: everything is computed in double precision, for tolerances below 1e-6. bfloat16: the
    networks of the field, for devices that are faster with it; the state and the weights stay in float32. For
    classifiers and regressors."""

    def __post_init__(self):
        check_sizes(self, steps="steps")

    def build(self, default: "Solver", *, exact: bool = False) -> "Solver":
        """Apply these settings to the solver of a preset.

        Args:
            default: The solver of the preset.
            exact: Whether the answers are worth nothing in less than single precision, such as densities.

        Returns:
            The default with whatever is set here.

        Raises:
            ValueError: If both fixed steps and tolerances are given, the solver has no error estimate, or bfloat16 is
                not enough.
        """
        from charax.solve import Solver

        if exact and self.precision == "bfloat16":
            raise ValueError("--precision bfloat16 is for classifiers and regressors: three digits are too few here")
        adaptive = self.rtol is not None or self.atol is not None
        if adaptive and self.steps is not None:
            raise ValueError("steps and tolerances exclude each other: give either --steps or --rtol and --atol")
        rtol = default.rtol if self.rtol is None else self.rtol
        try:
            return Solver(
                default.method if self.solver is None else self.solver,
                rtol=rtol,
                atol=(rtol if adaptive else default.atol) if self.atol is None else self.atol,
                steps=None if adaptive else default.steps if self.steps is None else self.steps,
                adjoint=default.adjoint if self.adjoint is None else self.adjoint,
                precision=self.precision if self.precision == "bfloat16" else default.precision,
            )
        except ValueError as error:
            if "no error estimate" in str(error) and adaptive:
                chosen = default.method if self.solver is None else self.solver
                raise ValueError(
                    f"{chosen} takes fixed steps only, so --rtol and --atol have no meaning for it: add --solver bosh3 "
                    "(or tsit5, dopri5, dopri8), or use --steps"
                ) from None
            raise


@dataclass(frozen=True)
class OptimizerConfig:
    """AdamW, its schedule, gradient clipping and weight averaging.

    ```python
    from charax import OptimizerConfig, RegressionConfig

    config = RegressionConfig(optimizer=OptimizerConfig(learning_rate=1e-3, clip=0.5))
    assert config.optimizer.schedule is None  # chosen from the data
    ```
    """

    learning_rate: float | None = None
    """Peak learning rate. None: chosen from the data."""
    weight_decay: float | None = None
    """Decoupled weight decay of AdamW. None: chosen from the data."""
    schedule: Schedule | None = None
    """Learning rate schedule. None: chosen from the data. cosine: linear warm-up over the first tenth of the steps,
    then cosine decay to zero. paper: times 0.9 every 5 epochs. warmup: linear warm-up over 1,000 steps. constant: no
    schedule."""
    clip: float = 1.0
    """Clip gradients to this global norm."""
    ema: float | None = None
    """Evaluate an exponential moving average of the weights with this decay, such as 0.999; 0 for no average. None:
    chosen from the data."""

    def __post_init__(self):
        check_positive(self, "learning_rate", "clip")
        check_range(self, least={"weight_decay": 0})
        if self.ema is not None and not 0 <= self.ema < 1:
            raise ValueError(f"ema must be at least 0 and below 1, got {self.ema}; 0 is no average")


@dataclass(frozen=True)
class LoopConfig:
    """Length of the training, mini-batches, seed, early stopping and checkpoints.

    ```python
    from charax import LoopConfig

    assert LoopConfig(epochs=5, seed=7).batch_size is None  # chosen from the data
    ```
    """

    epochs: int | None = None
    """Maximum number of epochs. None: chosen from the data."""
    batch_size: int | None = None
    """Samples per mini-batch. None: chosen from the data."""
    seed: int = 0
    """Seed of the splits, the initial weights, the order of the data and everything else that is random."""
    patience: int | None = None
    """Stop after this many epochs without improvement of the monitored validation metric. None: chosen from the data,
    which is never for anything but tables."""
    checkpoint_steps: int | None = None
    """Save a checkpoint every this many steps, in addition to the end of each epoch."""
    steps_per_epoch: int | None = field(default=None, metadata=ADDED_LATER)
    """Steps per epoch, for several evaluations per pass over the training samples: with fewer than a pass has, the
    next epoch continues it. None: one pass."""
    weights: KeptWeights = field(default="best", metadata=ADDED_LATER)
    """Weights to keep. best: those of the epoch with the best monitored validation metric. last: those of the last
    epoch, where too few samples validate to tell epochs apart."""

    def __post_init__(self):
        if self.weights not in get_args(KeptWeights):
            raise ValueError(f"weights must be {' or '.join(get_args(KeptWeights))}, got {self.weights!r}")
        least = dict.fromkeys(("epochs", "batch_size", "steps_per_epoch", "patience", "checkpoint_steps"), 1)
        check_range(self, least={**least, "seed": 0})
        for name, largest in (("seed", _LARGEST_SEED), ("epochs", _LARGEST_COUNT), ("batch_size", _LARGEST_COUNT)):
            value = getattr(self, name)
            if value is not None and value > largest:
                raise ValueError(f"{name} must be at most {largest}, got {value}")


STANDARD_LOOP = LoopConfig(EPOCHS, BATCH_SIZE)
STANDARD_OPTIMIZER = OptimizerConfig(LEARNING_RATE, WEIGHT_DECAY, "cosine")


class Splits(NamedTuple):
    """The three parts of a data set. The test split is evaluated once, after training.

    ```python
    import charax

    splits: charax.Splits = charax.ClassificationConfig(data="digits").load_data().splits
    assert len(splits.train.targets) > len(splits.test.targets)
    ```
    """

    train: "Batch"
    """Samples to learn from."""
    validation: "Batch"
    """Samples that select the weights."""
    test: "Batch"
    """Samples for the final metrics."""


class TaskData(NamedTuple):
    """Data that are ready to train on, and their description.

    ```python
    import charax

    loaded: charax.TaskData = charax.ClassificationConfig(data="digits").load_data()
    assert loaded.spec.classes[0] == "0"
    ```
    """

    splits: Splits
    """The samples."""
    spec: Any
    """What a model must know about the data besides its weights, as a frozen dataclass of plain values: the shape of
    a sample, names of classes and columns, scales. It is stored with the weights."""
    notes: tuple[str, ...] = ()
    """What to say about the data before training, one line each."""


class AbstractConfig(ABC):
    """Everything that can be set about a run of one task.

    A subclass is a frozen dataclass: its fields are the flags of `charax train TASK`, and it is `config.json`.
    `register_task` makes it known.

    ```python
    import charax

    config = charax.ForecastConfig(width=8)
    assert isinstance(config, charax.AbstractConfig)
    assert (config.name, config.label) == ("forecast", "forecast-paper-c-node")
    task = config.build_task(config.load_data().spec)  # what `charax.train.fit` trains
    assert isinstance(task, config.task_type())
    ```
    """

    name: ClassVar[str]
    """The name of the task: the word after `charax train`."""

    data: str
    method: Any  # a literal of the task's own
    solver: SolverConfig
    optimizer: OptimizerConfig
    loop: LoopConfig

    @property
    def label(self) -> str:
        """A short name for a run with this config."""
        return f"{self.name}-{self.data_label}-{self.method}"

    @property
    def data_label(self) -> str:
        """A short name for the data: that of the file without its suffixes."""
        return Path(self.data.removesuffix(".gz")).stem

    @abstractmethod
    def task_type(self) -> type["AbstractTask"]:
        """The class of the task.

        Returns:
            The class; a function, so that it is imported only when needed.
        """

    @abstractmethod
    def load_data(self) -> TaskData:
        """Load the data and describe them.

        Returns:
            The three splits and their description.

        Raises:
            ValueError: If the data cannot be used; the message names the file and the fix.
        """

    @abstractmethod
    def build_task(self, spec: Any) -> "AbstractTask":
        """Build the task: the only function that turns a config into a model's design and a solver.

        Args:
            spec: The description of the data.

        Returns:
            The task.

        Raises:
            ValueError: If the config does not fit the data.
        """

    def complete(self, data: TaskData) -> tuple[Self, tuple[str, ...]]:
        """Choose what the user left out. What is stored with a run has no gaps.

        Args:
            data: The data.

        Returns:
            The config with every value that the engine needs, and what to say about it before training.
        """
        loop, optimizer = fill(self.loop, STANDARD_LOOP), fill(self.optimizer, STANDARD_OPTIMIZER)
        return replace(self, loop=loop, optimizer=optimizer), ()  # pyright: ignore[reportArgumentType]

    def unused(self, loaded: TaskData) -> Mapping[tuple[str, ...], str]:
        """Name the settings that would do nothing. Training refuses them if they are given.

        Args:
            loaded: The data.

        Returns:
            What to do instead, for each group of fields that do nothing with these data and the other settings;
            `solver.steps` is a field of a field.
        """
        return {}

    def load_labelled(self, path: Path, spec: Any) -> "Batch":
        """Load new samples with the right answers, to evaluate a trained model on.

        Args:
            path: The file or folder.
            spec: The description of the data that the model was trained on.

        Returns:
            The samples, like those of a split.

        Raises:
            ValueError: If they cannot be used, or this task cannot evaluate new samples.
        """
        raise ValueError(
            f"a model of the task {self.name} cannot be evaluated on new data, so {path} was not read: use charax "
            "predict, whose answers are per row"
        )

    @abstractmethod
    def resolve_paths(self) -> Self:
        """Make the paths independent of the working folder.

        Returns:
            The config with absolute paths.
        """
