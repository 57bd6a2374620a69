"""Train with several seeds, and average over them."""

import statistics
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from charax.train._config import AbstractConfig
from charax.train._run import Run
from charax.train._sweep import Sweep
from charax.train._training import TrainingJob


def seed_jobs(
    config: AbstractConfig, folder: Path, seeds: Iterable[int], *, label: str | None = None
) -> list[TrainingJob]:
    """The runs of one config with several seeds, as parts of a sweep.

    Args:
        config: The config of a task.
        folder: The folder of the runs' folders.
        seeds: The seeds.
        label: Name of the runs, instead of the config's.

    Returns:
        A job per seed.

    ```python
    from pathlib import Path

    import charax

    first, second = charax.train.seed_jobs(charax.ClassificationConfig(), Path("runs"), [0, 1])
    assert second.place == Path("runs/classify-digits-c-node-seed1")
    ```
    """
    return [
        TrainingJob(
            replace(config, loop=replace(config.loop, seed=seed)),  # pyright: ignore[reportArgumentType]
            folder / f"{label or config.label}-seed{seed}",
        )
        for seed in seeds
    ]


def train_seeds(
    config: AbstractConfig, folder: Path, *, seeds: int, label: str | None = None, sweep: Sweep | None = None
) -> list[Run]:
    """Train the same config with the seeds 0, 1, …; runs that are in the folder already are not repeated.

    Args:
        config: The config of a task.
        folder: The folder of the runs' folders.
        seeds: Number of seeds.
        label: Name of the runs, instead of the config's.
        sweep: How many at the same time, and where to report; one after the other if left out.

    Returns:
        The runs, by seed.

    Raises:
        ValueError: If there are no seeds, or the folder has a run with another config.
        SweepError: If some runs failed; the others are finished.

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
    return (sweep or Sweep()).run(seed_jobs(config, folder, range(seeds), label=label))


def mean_and_sd(values: Sequence[float]) -> tuple[float, float | None]:
    """Average a metric over seeds.

    Args:
        values: One value per seed.

    Returns:
        The mean and the sample standard deviation, which is None for a single value.

    ```python
    from charax.train import mean_and_sd

    assert mean_and_sd([0.5, 1.5]) == (1.0, 0.5**0.5)
    ```
    """
    return statistics.mean(values), statistics.stdev(values) if len(values) > 1 else None
