"""Samples of a function of place and time, to learn a PDE from: the user's own, or of a problem with a closed form."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Float32

from charax.data._columns import Columns, numbered, open_table, read_columns
from charax.data._errors import DataError
from charax.pde import PROBLEMS


class Samples(NamedTuple):
    """Values at scattered places and times."""

    x: Float32[np.ndarray, "points d"]
    t: Float32[np.ndarray, "points"]
    u: Float32[np.ndarray, "points n"]

    def take(self, rows: np.ndarray) -> "Samples":
        """Some of them."""
        return Samples(self.x[rows], self.t[rows], self.u[rows])


@dataclass(frozen=True)
class SolutionData:
    """Three parts of the samples of one solution, and the names of its columns.

    ```python
    from charax.data import load_solution

    data = load_solution("paper")
    assert len(data.train.t) + len(data.validation.t) == len(data.test.t) == 200
    ```
    """

    name: str
    train: Samples
    validation: Samples
    test: Samples
    places: tuple[str, ...]
    values: tuple[str, ...]

    @property
    def seen(self) -> Samples:
        """What may be learned from: all but the test part."""
        return Samples(*map(np.concatenate, zip(self.train, self.validation, strict=True)))


BOXES: Mapping[str, tuple[tuple[tuple[float, float], ...], float]] = MappingProxyType(
    {
        "advection": (((-1.5, 2.5),), 1.0),
        "advection-2d": (((-1.5, 2.0), (-2.0, 1.5)), 1.0),
        "variable-advection": (((0.5, 2.5),), 1.0),
        "rotation": (((-2.0, 2.0), (-2.0, 2.0)), 1.5),
        "advection-reaction": (((-1.5, 2.5),), 1.0),
        "burgers-ramp": (((-1.0, 1.5),), 0.8),
        "burgers-sine": (((0.5, 3.0),), 0.9),
        "burgers-gaussian": (((-2.0, 3.0),), 1.2),
        "burgers-wave": (((0.0, 8.0),), 0.9),
        "burgers-tracer": (((-2.0, 3.0),), 1.2),
        "burgers-2d": (((-2.0, 2.0), (-2.0, 2.0)), 0.8),
        "traffic": (((-2.0, 2.0),), 1.0),
        "paper": (((1.0, 2.0),), 1.0),
        "paper-steep": (((1.0, 2.0),), 1.0),
    }
)
"""Where built-in problems are sampled: the space, and the end of time, before any characteristics cross."""


def sample_problem(
    name: str, points: int, *, seed: Sequence[int], between: tuple[float, float] | None = None
) -> Samples:
    """Uniform samples of a built-in problem's closed form, in its box or `between` two times.

    ```python
    from charax.data import sample_problem

    later = sample_problem("paper", 10, seed=[0], between=(1.0, 2.0))
    assert later.t.min() >= 1
    ```
    """
    space, end = BOXES[name]
    random = np.random.default_rng(seed)
    x = np.stack([random.uniform(*side, points) for side in space], axis=1).astype(np.float32)
    t = random.uniform(*((0.0, end) if between is None else between), points).astype(np.float32)
    u = np.asarray(PROBLEMS[name]().exact(jnp.asarray(x), jnp.asarray(t)), np.float32)
    return Samples(x, t, u.reshape(points, -1))


def load_solution(name: str, *, seed: int = 0, points: int = 200) -> SolutionData:
    """Samples of a built-in problem (see `charax.pde.PROBLEMS`) or of a file, in three parts that the seed decides.

    A file is a `.csv`, `.parquet` or `.npz` with columns (or arrays) x or x1, x2 …, t, and u or u1, u2 …; a fifth of it
    is the test part. Of a built-in problem `points` are drawn to learn from, and as many to test. In both cases a
    fifth of what is learned from chooses the weights.
    """
    if name in PROBLEMS:
        drawn = sample_problem(name, 2 * points, seed=[seed])
        parts = drawn.take(np.arange(points)), drawn.take(np.arange(points, 2 * points))
        number = lambda letter, size: (letter,) if size == 1 else tuple(f"{letter}{i + 1}" for i in range(size))
        places, values = number("x", drawn.x.shape[1]), number("u", drawn.u.shape[1])
        return _divide(name, *parts, places, values)
    if not Path(name).expanduser().exists():
        raise DataError(f"{name} is neither a file that exists nor one of {', '.join(PROBLEMS)}")
    table = open_table(name)
    places, values = numbered(table, "x"), numbered(table, "u")
    columns = read_columns(table, (*places, "t", *values))
    check_times(columns)
    samples = Samples(
        *(part.astype(np.float32) for part in (columns.pick(places), columns.pick(("t",))[:, 0], columns.pick(values)))
    )
    if len(samples.t) < 10:
        raise DataError(f"{table.path} has {len(samples.t)} rows: at least 10 are needed to learn, choose and test")
    order = np.random.default_rng(seed).permutation(len(samples.t))
    cut = max(1, len(order) // 5)
    return _divide(Path(name).stem, samples.take(order[cut:]), samples.take(order[:cut]), places, values)


def _divide(name: str, seen: Samples, test: Samples, places: tuple[str, ...], values: tuple[str, ...]) -> SolutionData:
    cut = max(1, len(seen.t) // 5)
    rows = np.arange(len(seen.t))
    return SolutionData(name, seen.take(rows[cut:]), seen.take(rows[:cut]), test, places, values)


def check_times(columns: Columns) -> None:
    """Refuse times before the initial one."""
    t = columns.pick(("t",))[:, 0]
    if (t < 0).any():
        raise DataError(f"{columns.row(t < 0)}: t = {t[int(np.argmax(t < 0))]:g} lies before the initial time 0")


def read_points(path: Path | str, places: Sequence[str]) -> Columns:
    """Places and times without values, to predict at."""
    columns = read_columns(open_table(path), (*places, "t"))
    check_times(columns)
    return columns
