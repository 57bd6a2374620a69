"""Points in the plane whose densities are known test cases of flows."""

from collections.abc import Callable, Mapping
from types import MappingProxyType

import numpy as np
from jaxtyping import Float32


def _circles(n: int, random: np.random.Generator) -> np.ndarray:
    """Two rings, as scikit-learn's `make_circles` with noise 0.05 and factor 0.5."""
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


_DRAW: dict[str, Callable[[int, np.random.Generator], np.ndarray]] = {
    "circles": _circles,
    "moons": _moons,
    "pinwheel": _pinwheel,
    "checkerboard": _checkerboard,
}
TOYS: Mapping[str, str] = MappingProxyType(
    {
        "circles": "two rings in the plane",
        "moons": "two half rings in the plane",
        "pinwheel": "five curved arms in the plane",
        "checkerboard": "eight squares in the plane",
    }
)
"""The toys by name, and what they are."""


def draw_toy(name: str, n: int, *, seed: int) -> Float32[np.ndarray, "n 2"]:
    """`n` points of one of `TOYS`.

    ```python
    from charax.data import draw_toy

    assert draw_toy("circles", 100, seed=0).shape == (100, 2)
    ```
    """
    if name not in _DRAW:
        raise ValueError(f"unknown toy {name!r}; choose from {', '.join(_DRAW)}")
    random = np.random.default_rng(seed)
    return random.permutation(_DRAW[name](n, random)).astype(np.float32)
