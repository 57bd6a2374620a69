"""Simulated series of two classical systems, at irregular times and with noise: series that need no file."""

from pathlib import Path

import numpy as np
from jaxtyping import Float64

from charax.data.files._series import RawSeries

DYNAMICS = ("pendulum", "lotka-volterra")
"""The names of the built-in series."""
_SERIES, _OBSERVATIONS, _MISSING = 100, 40, 0.1
_STEPS_PER_UNIT = 50
_MIN_GAP = 2e-6
"""Times closer than this might be equal in single precision."""


def sample_dynamics(name: str, seed: int) -> RawSeries:
    """Sample series that start from random states, with a tenth of the values missing.

    Args:
        name: "pendulum": angle and angular velocity of a damped pendulum. "lotka-volterra": prey and predators.
        seed: Seed of the states, the times, the noise and the missing values.

    Returns:
        The series.
    """
    generator = np.random.default_rng([seed, 3 + DYNAMICS.index(name)])
    if name == "pendulum":
        channels, duration, noise = ("angle", "velocity"), 15.0, 0.1
        start = generator.uniform([-2.0, -1.0], [2.0, 1.0], (_SERIES, 2))
        rate = lambda u: np.stack([u[:, 1], -2.0 * np.sin(u[:, 0]) - 0.1 * u[:, 1]], axis=1)
    else:
        channels, duration, noise = ("prey", "predators"), 15.0, 0.1
        start = generator.uniform([0.5, 0.5], [2.0, 2.0], (_SERIES, 2))
        rate = lambda u: np.stack([u[:, 0] * (1.0 - u[:, 1]), u[:, 1] * (u[:, 0] - 1.0)], axis=1)
    grid = np.linspace(0, duration, int(duration * _STEPS_PER_UNIT) + 1)
    path = _integrate(rate, start, grid)
    times, values = [], []
    for i in range(_SERIES):
        t = _spread(np.sort(generator.uniform(0, duration, _OBSERVATIONS)))
        exact = np.stack([np.interp(t, grid, path[:, i, j]) for j in range(2)], axis=1)
        noisy = exact + noise * generator.normal(size=exact.shape)
        times.append(t)
        values.append(np.where(generator.uniform(size=noisy.shape) < _MISSING, np.nan, noisy))
    return RawSeries(
        Path(name),
        names=[str(i) for i in range(_SERIES)],
        times=times,
        values=values,
        channels=channels,
        labels=None,
        where=lambda i, row: f"{name}, series {i}",
    )


def _spread(times: Float64[np.ndarray, "n"]) -> Float64[np.ndarray, "n"]:
    """Move times that are too close to the ones before them."""
    if np.diff(times).min() >= _MIN_GAP:
        return times
    least = _MIN_GAP * np.arange(len(times))
    return np.maximum.accumulate(times - least) + least


def _integrate(rate, start: Float64[np.ndarray, "n 2"], grid: Float64[np.ndarray, "steps"]) -> np.ndarray:
    """The classical Runge–Kutta method."""
    h, states = grid[1] - grid[0], [start]
    for _ in grid[1:]:
        u = states[-1]
        a = rate(u)
        b = rate(u + h / 2 * a)
        c = rate(u + h / 2 * b)
        d = rate(u + h * c)
        states.append(u + h / 6 * (a + 2 * b + 2 * c + d))
    return np.stack(states)
