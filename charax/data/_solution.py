"""Samples of a solution u(x, t), to learn a PDE from: the user's own, or of a built-in problem."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from charax.data._errors import DataError
from charax.data._samples import SolutionSamples
from charax.data.files._columns import Columns, numbered_columns, read_columns
from charax.data.files._dispatch import find_path, read_table
from charax.data.files._grid import read_grid
from charax.data.files._table import TableRequest
from charax.data.sources._problems import BOXES, sample_problem


@dataclass(frozen=True)
class SolutionData:
    """Samples of one solution in three splits.

    ```python
    from charax.data import load_solution

    data = load_solution("paper")
    assert len(data.train.t) + len(data.validation.t) == len(data.test.t) == 200
    ```
    """

    name: str
    """The name of the problem, or of the file without its suffix."""
    train: SolutionSamples
    """The training split."""
    validation: SolutionSamples
    """The split on which the best weights are selected."""
    test: SolutionSamples
    """The test split."""
    position_columns: tuple[str, ...]
    """The names of the coordinates of x."""
    value_columns: tuple[str, ...]
    """The names of the components of u."""

    @property
    def seen(self) -> SolutionSamples:
        """What may be learned from: the training and the validation split."""
        return SolutionSamples(*map(np.concatenate, zip(self.train, self.validation, strict=True)))


def load_solution(
    name: str, *, seed: int = 0, points: int = 200, noise: float = 0.0, until: float | None = None
) -> SolutionData:
    """Load samples of a built-in problem by its name, or of the user's own solution by its path.

    A file is a table or an `.npz` with columns (or arrays) x or x1, x2 …, t, and u or u1, u2 …; or a grid, an `.npz`
    or `.mat` with the arrays x[i], t[j] and u[i, j], of whose nodes some are drawn. A fifth of it is the test split. Of
    a built-in problem, `points` samples are for training and validation, and as many for the test. In both cases a
    fifth of what is not for the test is the validation split.

    Args:
        name: A name, one of `BOXES`, or a path.
        seed: Seed of the samples of a built-in problem, and of the splits of a file.
        points: The number of samples of a built-in problem or of a grid for training and validation.
        noise: Standard deviation of Gaussian noise on the training and validation samples of a built-in problem,
            relative to the range of each value.
        until: Use only the samples of a file up to this time.

    Returns:
        The samples.

    Raises:
        DataError: If the file cannot be read, or lacks a column; the message names the file, the row and the fix.

    ```python
    from charax.data import load_solution

    data = load_solution("burgers-2d", points=50)
    assert data.position_columns == ("x1", "x2") and data.value_columns == ("u1", "u2")
    ```
    """
    if name in BOXES:
        samples = sample_problem(name, 2 * points, seed=[seed])
        columns = _number("x", samples.x.shape[1]), _number("u", samples.u.shape[1])
        seen, test = samples.take(np.arange(points)), samples.take(np.arange(points, 2 * points))
        if noise > 0:
            deviation = noise * np.ptp(seen.u, axis=0) * np.random.default_rng([seed, 1]).standard_normal(seen.u.shape)
            seen = seen._replace(u=(seen.u + deviation).astype(np.float32))
        return _assemble(name, seen, test, *columns)
    path = find_path(name, BOXES)
    grid = read_grid(path)
    samples, positions, values = _read_samples(path) if grid is None else (grid, ("x",), ("u",))
    if grid is not None and (grid.t < 0).any():
        raise DataError(f"{path}: t = {grid.t.min():g} lies before the initial time 0: shift the times")
    if until is not None:
        samples = samples.take(samples.t <= until)
    if len(samples.t) < 10:
        early = "" if until is None else f" until t = {until:g}"
        raise DataError(f"{path} has {len(samples.t)} rows{early}: at least 10 are needed to train, validate and test")
    order = np.random.default_rng(seed).permutation(len(samples.t))
    if grid is not None:
        order = order[: 5 * points // 4]  # of which a fifth is for the test
    cut = max(1, len(order) // 5)
    return _assemble(path.stem, samples.take(order[cut:]), samples.take(order[:cut]), positions, values)


def _read_samples(path: Path) -> tuple[SolutionSamples, tuple[str, ...], tuple[str, ...]]:
    table = read_table(path, TableRequest())
    positions, values = numbered_columns(table, "x"), numbered_columns(table, "u")
    columns = read_columns(table, (*positions, "t", *values))
    _check_times(columns)
    x, t, u = (columns.select(names).astype(np.float32) for names in (positions, ("t",), values))
    return SolutionSamples(x, t[:, 0], u), positions, values


def read_points(path: Path | str, position_columns: Sequence[str]) -> Columns:
    """Read positions and times at which to predict.

    Args:
        path: A table or an `.npz`.
        position_columns: The names of the coordinates, `SolutionData.position_columns` of the training data.

    Returns:
        The columns of the positions, and of the time `t`.

    Raises:
        DataError: If the file cannot be read, lacks a column, or has a time before 0.

    ```python
    import tempfile
    from pathlib import Path
    from charax.data import read_points

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "points.csv"
        path.write_text("t,x\\n0.5,1\\n")
        assert read_points(path, ("x",)).values.tolist() == [[1.0, 0.5]]
    ```
    """
    names = (*position_columns, "t")
    columns = read_columns(read_table(find_path(path), TableRequest(expected=names)), names)
    _check_times(columns)
    return columns


def _number(letter: str, size: int) -> tuple[str, ...]:
    return (letter,) if size == 1 else tuple(f"{letter}{i + 1}" for i in range(size))


def _assemble(
    name: str,
    seen: SolutionSamples,
    test: SolutionSamples,
    positions: tuple[str, ...],
    values: tuple[str, ...],
) -> SolutionData:
    cut = max(1, len(seen.t) // 5)
    rows = np.arange(len(seen.t))
    return SolutionData(name, seen.take(rows[cut:]), seen.take(rows[:cut]), test, positions, values)


def _check_times(columns: Columns) -> None:
    t = columns.select(("t",))[:, 0]
    if (t < 0).any():
        raise DataError(
            f"{columns.row(t < 0)}: t = {t[int(np.argmax(t < 0))]:g} lies before the initial time 0: shift the times"
        )
