"""Progress of runs in other processes, by way of files: it needs no connection, and works on every cluster."""

import contextlib
import json
import threading
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from charax.train._progress import AbstractProgress, Silent

if TYPE_CHECKING:
    from charax.train._step import StepMetrics

_EVERY = 0.25
"""Seconds between two steps that are written, and between two readings."""


class Journal(AbstractProgress):
    """Writes what happens as lines of JSON: the name of a method of `AbstractProgress`, and its arguments."""

    def __init__(self, path: Path):
        """Begin a file.

        Args:
            path: The file, which shows that the job has started.
        """
        self._file = path.open("w")
        self._written = 0.0

    def start(self, epochs: int, steps_per_epoch: int, batch_size: int) -> None:
        self._write("start", epochs, steps_per_epoch, batch_size)

    def step(self, epoch: int, step: int, metrics: "StepMetrics") -> None:
        if time.monotonic() - self._written < _EVERY:  # reading a metric makes the loop wait for it
            return
        self._written = time.monotonic()
        values = {name: float(value[-1]) for name, value in metrics.metrics.items()}
        self._write("step", epoch, step, {"loss": float(metrics.loss[-1]), "metrics": values})

    def epoch(self, row: dict[str, Any]) -> None:
        self._write("epoch", row)

    def say(self, message: str) -> None:
        self._write("say", message)

    def stop(self) -> None:
        self._write("stop")

    def child(self, label: str) -> AbstractProgress:
        return Silent()

    def close(self) -> None:
        """End the file."""
        self._file.close()

    def _write(self, *event: Any) -> None:
        self._file.write(json.dumps(event) + "\n")
        self._file.flush()


class _Reader:
    """Passes on what a journal has that it had not before."""

    def __init__(self, path: Path, label: str, progress: AbstractProgress):
        self._path, self._label, self._progress = path, label, progress
        self._shown: AbstractProgress | None = None
        self._read = 0

    def update(self) -> None:
        try:
            with self._path.open("rb") as file:
                file.seek(self._read)
                new = file.read()
        except OSError:  # it has not started
            return
        whole = new[: new.rfind(b"\n") + 1]
        self._read += len(whole)
        if self._shown is None:
            self._shown = self._progress.child(self._label)
        for line in whole.splitlines():
            name, *arguments = json.loads(line)
            if name == "step":
                arguments[2] = _step_metrics(**arguments[2])
            getattr(self._shown, name)(*arguments)


def _step_metrics(loss: float, metrics: dict[str, float]) -> "StepMetrics":
    import numpy as np

    from charax.train._step import StepMetrics

    one = lambda value: np.full(1, value, np.float32)
    return StepMetrics(one(loss), {name: one(value) for name, value in metrics.items()}, np.zeros(1, np.int32))  # pyright: ignore[reportArgumentType]


@contextlib.contextmanager
def follow_journals(journals: Mapping[Path, str], progress: AbstractProgress) -> Iterator[None]:
    """Show the progress of all runs while they are computed elsewhere.

    Args:
        journals: The journals, which need not exist yet, and their labels.
        progress: Where to show it.

    Yields:
        Nothing.
    """
    readers = [_Reader(path, label, progress) for path, label in journals.items()]
    ended = threading.Event()

    def follow() -> None:
        while not ended.wait(_EVERY):
            for reader in readers:
                reader.update()

    thread = threading.Thread(target=follow, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
        for reader in readers:
            reader.update()
        progress.stop()
