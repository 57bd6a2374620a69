"""The same run with several seeds, and the spread of what comes out."""

import statistics
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from charax.tasks.classification._config import ClassificationConfig
from charax.tasks.density._config import DensityConfig
from charax.tasks.forecast._config import ForecastConfig
from charax.tasks.pde._config import PDEConfig
from charax.train._progress import AbstractProgress
from charax.train._run import Run, is_finished, load_run, resume, train

Seeded = ClassificationConfig | DensityConfig | ForecastConfig | PDEConfig


def train_seeds(settings: Seeded, *, seeds: int, folder: Path, progress: AbstractProgress) -> list[Run]:
    """A run for each of the seeds 0, 1, …; those that are in the folder already are not made again."""
    if seeds < 1:
        raise ValueError(f"seeds must be at least 1, got {seeds}")
    runs: list[Run] = []
    for seed in range(seeds):
        run = folder / f"{settings.label}-seed{seed}"
        progress.say(f"{settings.label}, seed {seed}")
        if is_finished(run):
            runs.append(load_run(run))
        elif (run / "config.json").exists():
            runs.append(resume(run, progress=progress))
        else:
            seeded = replace(settings, loop=replace(settings.loop, seed=seed))
            runs.append(train(seeded, run, progress=progress))
    return runs


def spread(values: Sequence[float]) -> tuple[float, float | None]:
    """Mean and standard deviation; that of one value is not known."""
    return statistics.mean(values), statistics.stdev(values) if len(values) > 1 else None
