"""The metrics of a run, one row per epoch and a last one of the test split."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from charax.train._config import AbstractConfig
from charax.train._json import check_row, read_json_lines

METRICS = "metrics.jsonl"
_LAST_LINE = 1 << 16
"""Bytes that the last line of the metrics may have."""


@dataclass(frozen=True)
class _EpochRow:
    """What every row of an epoch has, besides its metrics."""

    epoch: int
    step: int
    loss: float | None
    validation_loss: float | None
    skipped: int
    seconds: float


@dataclass(frozen=True)
class _TestRow:
    """What the last row has, besides its metrics."""

    best_epoch: int
    seconds: float
    refined: bool = False
    """Whether the task went on after the epochs, as an equation does by least squares."""


def is_finished(folder: Path) -> bool:
    """Whether a run got as far as its test metrics.

    Args:
        folder: The folder of the run.

    Returns:
        True if the last line of its metrics is that of the test split.

    ```python
    import tempfile
    from pathlib import Path

    from charax.train import is_finished

    with tempfile.TemporaryDirectory() as folder:
        assert not is_finished(Path(folder))
    ```
    """
    metrics = folder / METRICS
    if not metrics.is_file():
        return False
    with metrics.open("rb") as file:
        size = file.seek(0, 2)
        file.seek(max(0, size - _LAST_LINE))
        lines = file.read().splitlines()
    return bool(lines) and b'"best_epoch"' in lines[-1] and lines[-1].endswith(b"}")


def read_history(folder: Path) -> list[dict[str, Any]]:
    """The rows of a finished run.

    Args:
        folder: The folder of the run.

    Returns:
        One row per epoch, and the one of the test split.

    Raises:
        ValueError: If they cannot be read.
    """
    path = folder / METRICS
    rows = read_json_lines(path)
    if len(rows) < 2:
        raise ValueError(f"{path} must hold one JSON object per epoch and one for the test split")
    *epochs, test = rows
    return [
        *(check_row(_EpochRow, row, f"{path}, line {number}") for number, row in enumerate(epochs, start=1)),
        check_row(_TestRow, test, f"{path}, line {len(rows)}", metrics="test_"),
    ]


def find_best_epoch(history: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The row of the epoch whose weights were selected.

    Args:
        history: The rows of a finished run.

    Returns:
        The row.
    """
    *epochs, test = history
    return next((row for row in epochs if row["epoch"] == test["best_epoch"]), epochs[0])


def advise(
    folder: Path, config: AbstractConfig, rows: list[dict[str, Any]], monitor: str, *, higher_is_better: bool
) -> str:
    """Advise to train longer, if validation still improved in the last tenth of the epochs, or more slowly, if the loss
    became larger than it was before the first improvement.

    Args:
        folder: The folder of the run.
        config: Its config.
        rows: The rows of its epochs.
        monitor: The validation metric that selects the weights.
        higher_is_better: Whether larger values of it are better.

    Returns:
        One sentence; empty if validation had stopped improving, and stayed near its best.
    """
    scores = [row[f"validation_{monitor}"] for row in rows]
    known = [score for score in scores if score is not None]
    if not known or len(rows) < (config.loop.epochs or 0):
        return ""
    improved = 1 + scores.index(max(known) if higher_is_better else min(known))
    if improved <= len(rows) - max(1, len(rows) // 10):
        name, first, last = monitor.replace("_", " "), known[0], known[-1]
        if not (last < first if higher_is_better else last > first):
            return ""
        return (
            f"the validation {name} became worse after epoch {improved} than it was at first: the weights of epoch "
            f"{improved} of {len(rows)} are kept; train with a lower --learning-rate to go further"
        )
    return (
        f"the validation {monitor.replace('_', ' ')} was still improving, in epoch {improved} of {len(rows)}: train "
        f"longer with --epochs, or resume this run: charax resume {folder} --epochs {2 * len(rows)}"
    )
