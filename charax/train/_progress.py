"""What a run tells while it runs."""

import time
from abc import ABC, abstractmethod
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from charax.train._step import Report


class AbstractProgress(ABC):
    """Told by the loop where it is."""

    @abstractmethod
    def start(self, epochs: int, steps_per_epoch: int, batch_size: int) -> None:
        """The run begins, or goes on."""

    @abstractmethod
    def step(self, epoch: int, step: int, report: Report) -> None:
        """A step of an epoch was made; both are counted from 0."""

    @abstractmethod
    def epoch(self, row: dict[str, Any]) -> None:
        """An epoch was finished, with these metrics."""

    @abstractmethod
    def say(self, message: str) -> None:
        """Something happened that the user should know."""

    @abstractmethod
    def stop(self) -> None:
        """The run ends."""


class Silent(AbstractProgress):
    """Says nothing."""

    def start(self, epochs: int, steps_per_epoch: int, batch_size: int) -> None: ...

    def step(self, epoch: int, step: int, report: Report) -> None: ...

    def epoch(self, row: dict[str, Any]) -> None: ...

    def say(self, message: str) -> None: ...

    def stop(self) -> None: ...


class Lines(AbstractProgress):
    """One line an epoch: for logs and pipes."""

    def __init__(self, console: Console):
        self._console = console
        self._epochs = 0

    def start(self, epochs: int, steps_per_epoch: int, batch_size: int) -> None:
        self._epochs = epochs

    def step(self, epoch: int, step: int, report: Report) -> None: ...

    def epoch(self, row: dict[str, Any]) -> None:
        self.say(f"epoch {row['epoch']}/{self._epochs}  {_describe(row)}  {row['seconds']:.1f} s")

    def say(self, message: str) -> None:
        self._console.print(message, markup=False, highlight=False, soft_wrap=True)

    def stop(self) -> None: ...


class Live(AbstractProgress):
    """A bar on a terminal: epoch, step, loss, accuracy, NFE, samples a second, time left; and a line an epoch."""

    _REFRESH = 0.25  # seconds; reading a number makes the loop wait for it

    def __init__(self, console: Console):
        self._lines = Lines(console)
        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            TextColumn("{task.fields[told]}"),
            TimeRemainingColumn(),
            console=console,
            transient=True,
        )
        self._task = self._bar.add_task("", told="compiling …")
        self._epochs, self._steps_per_epoch, self._batch_size = 0, 1, 0
        self._shown, self._made, self._rate = time.monotonic(), 0, 0.0

    def start(self, epochs: int, steps_per_epoch: int, batch_size: int) -> None:
        self._epochs, self._steps_per_epoch, self._batch_size = epochs, steps_per_epoch, batch_size
        self._lines.start(epochs, steps_per_epoch, batch_size)
        self._bar.update(self._task, total=epochs * steps_per_epoch)
        self._bar.start()

    def step(self, epoch: int, step: int, report: Report) -> None:
        self._made += 1
        elapsed = time.monotonic() - self._shown
        if elapsed < self._REFRESH:
            return
        rate = self._made * self._batch_size / elapsed
        self._shown, self._made = time.monotonic(), 0
        told = {"loss": float(report.loss)} | {name: float(value) for name, value in report.metrics.items()}
        self._bar.update(
            self._task,
            completed=epoch * self._steps_per_epoch + step,
            description=f"epoch {epoch + 1}/{self._epochs}  step {step}/{self._steps_per_epoch}",
            told=f"{_describe(told)}  {rate:,.0f} samples/s",
        )

    def epoch(self, row: dict[str, Any]) -> None:
        self._lines.epoch(row)

    def say(self, message: str) -> None:
        self._lines.say(message)

    def stop(self) -> None:
        self._bar.stop()


def make_progress() -> AbstractProgress:
    """A live display if standard error is a terminal, else lines."""
    console = Console(stderr=True)
    return Live(console) if console.is_terminal else Lines(console)


def _describe(row: dict[str, Any]) -> str:
    """The metrics that people watch, with what validation says of them."""
    shown = []
    for name in ("loss", "accuracy", "nfe"):
        if (value := row.get(name)) is None:
            continue
        spell = (lambda number: f"{number:.1f}") if name == "nfe" else (lambda number: f"{number:.4f}")
        validation = row.get(f"validation_{name}")
        beside = "" if validation is None or name == "nfe" else f" (validation {spell(validation)})"
        shown.append(f"{name} {spell(value)}{beside}")
    if row.get("skipped"):
        shown.append(f"{row['skipped']} steps skipped")
    return "  ".join(shown)
