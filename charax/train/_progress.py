"""Progress of a run on a terminal or in a log."""

import time
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

from charax.train._processes import is_first

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress, TaskID

    from charax.train._step import StepMetrics


class AbstractProgress(ABC):
    """Receives the progress of the training loop.

    ```python
    from charax.train import AbstractProgress, Silent

    class Losses(Silent):  # a progress that keeps the losses; `fit(..., progress=Losses())`
        def __init__(self):
            self.losses = []

        def epoch(self, row):
            self.losses.append(row["loss"])

    progress = Losses()
    progress.epoch({"epoch": 1, "loss": 0.5})
    assert isinstance(progress, AbstractProgress) and progress.losses == [0.5]
    ```
    """

    @abstractmethod
    def start(self, epochs: int, steps_per_epoch: int, batch_size: int) -> None:
        """Called when the run starts or resumes.

        Args:
            epochs: Maximum number of epochs.
            steps_per_epoch: Steps per epoch.
            batch_size: Samples per mini-batch.
        """

    @abstractmethod
    def step(self, epoch: int, step: int, metrics: "StepMetrics") -> None:
        """Called after a step.

        Args:
            epoch: The epoch, counted from 0.
            step: The step within the epoch, counted from 0.
            metrics: Loss and metrics of the step.
        """

    @abstractmethod
    def epoch(self, row: dict[str, Any]) -> None:
        """Called after an epoch.

        Args:
            row: The metrics of the epoch, as in `metrics.jsonl`.
        """

    @abstractmethod
    def say(self, message: str) -> None:
        """Show a message.

        Args:
            message: One line of text.
        """

    @abstractmethod
    def stop(self) -> None:
        """Called when the run ends, also by an exception."""

    @abstractmethod
    def child(self, label: str) -> "AbstractProgress":
        """Called for each of several runs that are trained at the same time.

        Args:
            label: The name of the run.

        Returns:
            Where to report it.
        """


class Silent(AbstractProgress):
    """No output.

    ```python
    from charax.train import Silent

    Silent().say("nobody sees this")
    ```
    """

    def start(self, epochs: int, steps_per_epoch: int, batch_size: int) -> None: ...

    def step(self, epoch: int, step: int, metrics: "StepMetrics") -> None: ...

    def epoch(self, row: dict[str, Any]) -> None: ...

    def say(self, message: str) -> None: ...

    def stop(self) -> None: ...

    def child(self, label: str) -> AbstractProgress:
        return self


class Lines(AbstractProgress):
    """One line per epoch, for logs and pipes.

    ```python
    import io

    from charax.train import Lines
    from rich.console import Console

    log = io.StringIO()
    progress = Lines(Console(file=log), "seed 0")
    progress.start(epochs=2, steps_per_epoch=10, batch_size=64)
    progress.epoch({"epoch": 1, "loss": 0.5, "seconds": 1.25})
    assert log.getvalue().strip() == "seed 0: epoch 1/2  loss 0.5000  1.2 s"
    ```
    """

    def __init__(self, console: "Console", label: str = ""):
        """Report on a console.

        Args:
            console: Where to print.
            label: The run, if it is one of several.
        """
        self._console = console
        self._prefix = f"{label}: " if label else ""
        self._epochs = 0

    def start(self, epochs: int, steps_per_epoch: int, batch_size: int) -> None:
        self._epochs = epochs

    def step(self, epoch: int, step: int, metrics: "StepMetrics") -> None: ...

    def epoch(self, row: dict[str, Any]) -> None:
        self.say(f"epoch {row['epoch']}/{self._epochs}  {_describe(row)}  {row['seconds']:.1f} s")

    def say(self, message: str) -> None:
        self._console.print(self._prefix + message, markup=False, highlight=False, soft_wrap=True)

    def stop(self) -> None: ...

    def child(self, label: str) -> AbstractProgress:
        return Lines(self._console, label)


class Live(AbstractProgress):
    """A live progress bar (epoch, step, metrics, samples per second, time left) and one line per epoch.

    Runs that are trained at the same time have a bar each.

    ```python
    import io

    from charax.train import Live
    from rich.console import Console

    progress = Live(Console(file=io.StringIO()))
    progress.start(epochs=2, steps_per_epoch=10, batch_size=64)
    progress.say("the first epoch compiles")
    progress.stop()
    ```
    """

    _REFRESH = 0.25  # seconds; reading a metric makes the loop wait for it

    def __init__(self, console: "Console", label: str = "", *, bars: "Progress | None" = None):
        """Report on a console.

        Args:
            console: Where to print.
            label: The run, if it is one of several.
            bars: The bars of all of them; None if this is the only one.
        """
        self._console, self._label, self._shared = console, label, bars is not None
        self._lines = Lines(console, label)
        self._bar = _make_bars(console) if bars is None else bars
        self._task: TaskID | None = None
        self._epochs, self._steps_per_epoch, self._batch_size = 0, 1, 0
        self._shown, self._position, self._rate = time.monotonic(), 0, 0.0

    def start(self, epochs: int, steps_per_epoch: int, batch_size: int) -> None:
        self._epochs, self._steps_per_epoch, self._batch_size = epochs, steps_per_epoch, batch_size
        self._lines.start(epochs, steps_per_epoch, batch_size)
        self._task = self._bar.add_task(self._label, total=epochs * steps_per_epoch, shown="compiling …")
        self._bar.start()

    def step(self, epoch: int, step: int, metrics: "StepMetrics") -> None:
        elapsed = time.monotonic() - self._shown
        if elapsed < self._REFRESH or self._task is None:
            return
        position = epoch * self._steps_per_epoch + step
        rate = max(position - self._position, 0) * self._batch_size / elapsed
        self._shown, self._position = time.monotonic(), position
        shown = {"loss": float(metrics.loss[-1])} | {name: float(value[-1]) for name, value in metrics.metrics.items()}
        where = f"epoch {epoch + 1}/{self._epochs}  step {step}/{self._steps_per_epoch}"
        self._bar.update(
            self._task,
            completed=position,
            description=f"{self._label}  {where}" if self._label else where,
            shown=f"{_describe(shown)}  {rate:,.0f} samples/s",
        )

    def epoch(self, row: dict[str, Any]) -> None:
        self._lines.epoch(row)

    def say(self, message: str) -> None:
        self._lines.say(message)

    def stop(self) -> None:
        if self._task is not None:
            self._bar.remove_task(self._task)
            self._task = None
        if not self._shared:
            self._bar.stop()

    def child(self, label: str) -> AbstractProgress:
        return Live(self._console, label, bars=self._bar)


def _make_bars(console: "Console") -> "Progress":
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.fields[shown]}"),
        TimeRemainingColumn(),
        console=console,
        transient=True,
    )


def make_progress() -> AbstractProgress:
    """Choose how to report progress on standard error.

    Returns:
        A live display if standard error is a terminal, else one line per epoch; no output in any but the first of
        several processes.

    ```python
    from charax.train import AbstractProgress, make_progress

    assert isinstance(make_progress(), AbstractProgress)
    ```
    """
    if not is_first():
        return Silent()
    from rich.console import Console

    console = Console(stderr=True)
    return Live(console) if console.is_terminal else Lines(console)


def format_metric(value: float) -> str:
    """Write a number with the digits that tell it from the next: four decimals, or three digits if it is small.

    Args:
        value: The number.

    Returns:
        Its text.

    ```python
    from charax.train import format_metric

    assert [format_metric(value) for value in (0.98765, 0.0000123)] == ["0.9877", "1.23e-05"]
    ```
    """
    return f"{value:.4f}" if value == 0 or abs(value) >= 0.01 else f"{value:.3g}"


def _describe(row: dict[str, Any]) -> str:
    """The metrics to watch, with their validation values."""
    shown = []
    for name in ("loss", "accuracy", "nfe"):
        if (value := row.get(name)) is None:
            continue
        spell = (lambda number: f"{number:.1f}") if name == "nfe" else format_metric
        validation = row.get(f"validation_{name}")
        note = "" if validation is None or name == "nfe" else f" (validation {spell(validation)})"
        shown.append(f"{name} {spell(value)}{note}")
    if row.get("skipped"):
        shown.append(f"{row['skipped']} steps skipped")
    return "  ".join(shown)
