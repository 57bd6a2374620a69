"""Samples of the built-in PDEs, from their closed forms. Only sampling needs `charax.pde`, and so JAX."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from charax.data._samples import SolutionSamples


class Box(NamedTuple):
    """Where a built-in problem is sampled.

    ```python
    from charax.data import BOXES

    assert BOXES["paper"].space == ((1.0, 2.0),) and BOXES["paper"].end_time == 1.0
    ```
    """

    space: tuple[tuple[float, float], ...]
    """The lower and the upper end of each coordinate."""
    end_time: float
    """The last time, before any characteristics cross."""


BOXES: Mapping[str, Box] = MappingProxyType(
    {
        "advection": Box(((-1.5, 2.5),), 1.0),
        "advection-2d": Box(((-1.5, 2.0), (-2.0, 1.5)), 1.0),
        "variable-advection": Box(((0.5, 2.5),), 1.0),
        "rotation": Box(((-2.0, 2.0), (-2.0, 2.0)), 1.5),
        "advection-reaction": Box(((-1.5, 2.5),), 1.0),
        "burgers-ramp": Box(((-1.0, 1.5),), 0.8),
        "burgers-sine": Box(((0.5, 3.0),), 0.9),
        "burgers-gaussian": Box(((-2.0, 3.0),), 1.2),
        "burgers-wave": Box(((0.0, 8.0),), 0.9),
        "burgers-tracer": Box(((-2.0, 3.0),), 1.2),
        "burgers-2d": Box(((-2.0, 2.0), (-2.0, 2.0)), 0.8),
        "traffic": Box(((-2.0, 2.0),), 1.0),
        "paper": Box(((1.0, 2.0),), 1.0),
        "paper-steep": Box(((1.0, 2.0),), 1.0),
    }
)
"""Where each problem of `charax.pde.PROBLEMS` is sampled, by its name."""


def sample_problem(
    name: str, points: int, *, seed: Sequence[int], between: tuple[float, float] | None = None
) -> SolutionSamples:
    """Sample the closed form of a built-in problem at uniformly random positions and times.

    Args:
        name: The name of the problem, one of `BOXES`.
        points: The number of samples.
        seed: Seed of the random numbers.
        between: The first and the last time, instead of 0 and the end time of the box.

    Returns:
        The samples.

    Raises:
        ValueError: If there is no problem of this name.

    ```python
    from charax.data import sample_problem

    later = sample_problem("paper", 10, seed=[0], between=(1.0, 2.0))
    assert later.t.min() >= 1
    ```
    """
    if name not in BOXES:
        raise ValueError(f"unknown problem {name!r}; choose from {', '.join(BOXES)}")
    import jax.numpy as jnp  # slow to import, and the names must be known without it

    from charax.pde import PROBLEMS

    space, end_time = BOXES[name]
    random = np.random.default_rng(seed)
    x = np.stack([random.uniform(*side, points) for side in space], axis=1).astype(np.float32)
    t = random.uniform(*((0.0, end_time) if between is None else between), points).astype(np.float32)
    u = np.asarray(PROBLEMS[name]().exact(jnp.asarray(x), jnp.asarray(t)), np.float32)
    return SolutionSamples(x, t, u.reshape(points, -1))
