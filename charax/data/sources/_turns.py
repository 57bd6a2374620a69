"""Positions on circles that are run through to the left or to the right: series that need no file."""

from pathlib import Path

import numpy as np

from charax.data.files._series import RawSeries

TURNS = "turns"
"""The name of the built-in series."""
_SERIES, _SHORTEST, _LONGEST = 300, 8, 16


def sample_turns(seed: int) -> RawSeries:
    """Sample noisy positions at irregular times, a tenth of them missing. Which way a circle is run through shows in no
    statistic of a single coordinate."""
    generator = np.random.default_rng([seed, 2])
    times, values = [], []
    sides = np.arange(_SERIES) % 2 * 2 - 1
    for side in sides:
        t = np.sort(generator.uniform(0, 6, generator.integers(_SHORTEST, _LONGEST + 1)))
        angle = generator.uniform(0, 2 * np.pi) + side * t
        position = np.stack([np.cos(angle), np.sin(angle)], axis=1) + 0.1 * generator.normal(size=(len(t), 2))
        times.append(t)
        values.append(np.where(generator.uniform(size=position.shape) < 0.1, np.nan, position))
    return RawSeries(
        Path(TURNS),
        names=[str(i) for i in range(_SERIES)],
        times=times,
        values=values,
        channels=("x", "y"),
        labels=["left" if side > 0 else "right" for side in sides],
        where=lambda i, row: f"{TURNS}, series {i}",
    )
