"""Distributions in the plane on which flows are tested."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
from jaxtyping import Float32


def _circles(n: int, random: np.random.Generator) -> np.ndarray:
    """As scikit-learn's `make_circles` with noise 0.05 and factor 0.5."""
    angle = random.uniform(0, 2 * np.pi, n)
    radius = np.where(np.arange(n) % 2 == 0, 1.0, 0.5)
    ring = radius[:, None] * np.stack([np.cos(angle), np.sin(angle)], axis=1)
    return ring + random.normal(scale=0.05, size=(n, 2))


def _moons(n: int, random: np.random.Generator) -> np.ndarray:
    angle = random.uniform(0, np.pi, n)
    lower = np.arange(n) % 2 == 1
    across = np.where(lower, 1 - np.cos(angle), np.cos(angle))
    up = np.where(lower, 0.5 - np.sin(angle), np.sin(angle))
    return np.stack([across - 0.5, up - 0.25], axis=1) + random.normal(scale=0.1, size=(n, 2))


def _pinwheel(n: int, random: np.random.Generator) -> np.ndarray:
    arms = 5
    points = random.normal(size=(n, 2)) * [0.3, 0.1] + [1.0, 0.0]
    angle = 2 * np.pi / arms * random.integers(arms, size=n) + 0.25 * np.exp(points[:, 0])
    cos, sin = np.cos(angle), np.sin(angle)
    return np.stack([cos * points[:, 0] - sin * points[:, 1], sin * points[:, 0] + cos * points[:, 1]], axis=1)


def _checkerboard(n: int, random: np.random.Generator) -> np.ndarray:
    across = random.uniform(-2, 2, n)
    up = random.uniform(0, 1, n) - 2 * random.integers(0, 2, n) + np.floor(across) % 2
    return np.stack([across, up], axis=1)


def _eight_gaussians(n: int, random: np.random.Generator) -> np.ndarray:
    """As in FFJORD's experiments: a radius of 4 and a standard deviation of 0.5, both divided by √2."""
    angle = 2 * np.pi / 8 * random.integers(8, size=n)
    return (4 * np.stack([np.cos(angle), np.sin(angle)], axis=1) + random.normal(scale=0.5, size=(n, 2))) / np.sqrt(2)


class _Toy(NamedTuple):
    description: str
    sample: Callable[[int, np.random.Generator], np.ndarray]


_TOYS = {
    "circles": _Toy("two rings in the plane", _circles),
    "moons": _Toy("two half rings in the plane", _moons),
    "pinwheel": _Toy("five curved arms in the plane", _pinwheel),
    "checkerboard": _Toy("eight squares in the plane", _checkerboard),
    "eight-gaussians": _Toy("eight normal distributions around the origin", _eight_gaussians),
}

TOYS: Mapping[str, str] = MappingProxyType({name: toy.description for name, toy in _TOYS.items()})
"""The names of the toys, and what they look like."""


def sample_toy(name: str, n: int, *, seed: int) -> Float32[np.ndarray, "n 2"]:
    """Sample points of a distribution in the plane.

    Args:
        name: The name of the distribution, one of `TOYS`.
        n: The number of points.
        seed: Seed of the random numbers.

    Returns:
        The points.

    Raises:
        ValueError: If there is no toy of this name.

    ```python
    from charax.data import sample_toy

    assert sample_toy("circles", 100, seed=0).shape == (100, 2)
    ```
    """
    if name not in _TOYS:
        raise ValueError(f"unknown toy {name!r}; choose from {', '.join(_TOYS)}")
    random = np.random.default_rng(seed)
    return random.permutation(_TOYS[name].sample(n, random)).astype(np.float32)
