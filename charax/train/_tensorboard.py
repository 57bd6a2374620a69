"""Metrics for TensorBoard, next to `metrics.jsonl`."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from charax.train._progress import AbstractProgress

if TYPE_CHECKING:
    from charax.train._step import StepMetrics

_FOLDER = "tensorboard"


class TensorBoard(AbstractProgress):
    """Writes the metrics of every epoch as an event file, and passes everything on to another progress.

    When a run starts or resumes, the file is written again from `metrics.jsonl`, so that both always agree.

    ```python
    import tempfile
    from pathlib import Path

    from charax.train import Silent, TensorBoard

    with tempfile.TemporaryDirectory() as folder:
        progress = TensorBoard(Silent(), Path(folder))
        progress.start(epochs=1, steps_per_epoch=10, batch_size=64)
        progress.epoch({"epoch": 1, "loss": 0.5})
        progress.stop()
        assert list(Path(folder).glob("tensorboard/events.out.tfevents.*"))
    ```
    """

    def __init__(self, progress: AbstractProgress, folder: Path):
        """Report to two places.

        Args:
            progress: Where to report, too.
            folder: The folder of the run; the event file is in its folder `tensorboard`.

        Raises:
            ModuleNotFoundError: If tensorboardX is not installed.
        """
        import tensorboardX  # noqa: F401  # an extra: what is missing is said before the training

        self._progress, self._folder = progress, folder
        self._writer: Any = None

    def start(self, epochs: int, steps_per_epoch: int, batch_size: int) -> None:
        self._open()
        metrics = self._folder / "metrics.jsonl"
        for line in metrics.read_text().splitlines() if metrics.exists() else []:
            self._write(json.loads(line))
        self._progress.start(epochs, steps_per_epoch, batch_size)

    def step(self, epoch: int, step: int, metrics: "StepMetrics") -> None:
        self._progress.step(epoch, step, metrics)

    def epoch(self, row: dict[str, Any]) -> None:
        self._write(row)
        self._progress.epoch(row)

    def say(self, message: str) -> None:
        self._progress.say(message)

    def stop(self) -> None:
        self._writer.close()
        self._progress.stop()

    def child(self, label: str) -> AbstractProgress:
        return self._progress.child(label)

    def finish(self, history: list[dict[str, Any]]) -> None:
        """Write the whole history of a finished run, with the metrics of the test split.

        Args:
            history: The rows of `metrics.jsonl`.
        """
        self._open()
        for row in history:
            self._write(row)
        self._writer.close()

    def _open(self) -> None:
        from tensorboardX import SummaryWriter

        folder = self._folder / _FOLDER
        for old in folder.glob("events.out.tfevents.*"):
            old.unlink()
        self._writer = SummaryWriter(str(folder))

    def _write(self, row: dict[str, Any]) -> None:
        """The curves of the splits are `loss/train`, `loss/validation` and `loss/test`, so that they share a plot."""
        for name, value in row.items():
            if name in ("epoch", "step", "best_epoch") or not isinstance(value, int | float):
                continue  # what a task found may be text, such as an equation
            split, _, metric = name.partition("_")
            tag = f"{metric}/{split}" if split in ("validation", "test") else f"{name}/train"
            self._writer.add_scalar(tag, value, row.get("epoch", row.get("best_epoch")))
