"""Train with several seeds, and average over them."""

import statistics
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from charax.train._config import AbstractConfig
from charax.train._progress import AbstractProgress, Silent
from charax.train._run import Run
from charax.train._training import train_or_load


def train_seeds(
    config: AbstractConfig,
    folder: Path,
    *,
    seeds: int,
    label: str | None = None,
    progress: AbstractProgress | None = None,
) -> list[Run]:
    """Train the same config with the seeds 0, 1, …; runs that are in the folder already are not repeated.

    Args:
        config: The config of a task.
        folder: The folder of the runs' folders.
        seeds: Number of seeds.
        label: Name of the runs, instead of the config's.
        progress: Where to report; nowhere if left out.

    Returns:
        The runs, by seed.

    Raises:
        ValueError: If there are no seeds, or the folder has a run with another config.

    ```python
    import tempfile
    from pathlib import Path
    import charax

    config = charax.ClassificationConfig(method="node", width=4, loop=charax.LoopConfig(epochs=1))
    with tempfile.TemporaryDirectory() as folder:
        runs = charax.train_seeds(config, Path(folder), seeds=2)
    assert [run.config.loop.seed for run in runs] == [0, 1]
    ```
    """
    if seeds < 1:
        raise ValueError(f"seeds must be at least 1, got {seeds}")
    progress, label = progress or Silent(), label or config.label
    runs: list[Run] = []
    for seed in range(seeds):
        progress.say(f"{label}, seed {seed}")
        seeded = replace(config, loop=replace(config.loop, seed=seed))  # pyright: ignore[reportArgumentType]
        runs.append(train_or_load(seeded, folder / f"{label}-seed{seed}", progress=progress))
    return runs


def mean_and_sd(values: Sequence[float]) -> tuple[float, float | None]:
    """Average a metric over seeds.

    Args:
        values: One value per seed.

    Returns:
        The mean and the sample standard deviation, which is None for a single value.
    """
    return statistics.mean(values), statistics.stdev(values) if len(values) > 1 else None
