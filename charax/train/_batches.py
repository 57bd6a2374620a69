"""Samples and their mini-batches."""

import dataclasses
from collections.abc import Callable

import jax
import numpy as np
from jaxtyping import Array, Int, PyTree

from charax.data import check_limit
from charax.solve import Solver

Batch = PyTree
"""Arrays with the samples in their first axis."""


def count_samples(split: Batch) -> int:
    """Count the samples of a split.

    Args:
        split: Arrays with the samples in their first axis.

    Returns:
        The number of samples.

    Raises:
        ValueError: If the arrays disagree, or are empty.

    ```python
    import numpy as np
    from charax.train import count_samples

    assert count_samples({"x": np.zeros((5, 2)), "y": np.zeros(5)}) == 5
    ```
    """
    sizes = {np.shape(leaf)[0] for leaf in jax.tree.leaves(split)}
    if len(sizes) != 1 or 0 in sizes:
        raise ValueError(f"the arrays of a split must have the same number of samples, above 0, got {sorted(sizes)}")
    return sizes.pop()


def padded_batches(count: int, batch_size: int) -> Int[np.ndarray, "batches batch_size"]:
    """Split rows into mini-batches of one size, so that one compiled shape serves all.

    Args:
        count: Number of rows.
        batch_size: Rows per mini-batch.

    Returns:
        Row indices per mini-batch; the last one is filled up with rows from the beginning.

    ```python
    from charax.train import padded_batches

    assert padded_batches(5, 2).tolist() == [[0, 1], [2, 3], [4, 0]]
    ```
    """
    return (np.arange(-(-count // batch_size) * batch_size) % count).reshape(-1, batch_size)


def solve_in_batches(
    solve: Callable[[Int[np.ndarray, "batch_size"], Solver], tuple[Array, ...]],
    count: int,
    solver: Solver,
    *,
    batch_size: int = 256,
) -> tuple[np.ndarray, ...]:
    """Solve for every row, with one compiled shape.

    One row that fails takes its whole mini-batch with it. Such a mini-batch is solved again with steps of its own for
    every row, so that only the rows that fail have no answer.

    Args:
        solve: A function of (rows, solver) that returns one or more arrays, the first of them NaN where there is no
            answer.
        count: Number of rows.
        solver: How to integrate.
        batch_size: Maximum number of rows per solve.

    Returns:
        The arrays for all rows.

    ```python
    import jax.numpy as jnp
    from charax import PlainField, Solver
    from charax.train import solve_in_batches

    decay, u = PlainField(lambda u: -u, reads=("u",)), jnp.ones((5, 1))
    solve = lambda rows, solver: (solver.solve(decay, u[rows]).u,)
    (answers,) = solve_in_batches(solve, 5, Solver("euler", steps=4), batch_size=2)
    assert answers.shape == (5, 1)
    ```
    """
    parts = []
    for rows in padded_batches(count, min(batch_size, count)):
        answer = solve(rows, solver)
        if len(rows) > 1 and not np.isfinite(answer[0]).any():
            answer = solve(rows, dataclasses.replace(solver, per_sample=True))
        parts.append([np.asarray(each) for each in answer])
    return tuple(np.concatenate(pieces)[:count] for pieces in zip(*parts, strict=True))


def repeat_rows(count: int, at_least: int) -> np.ndarray:
    """Repeat all rows of a small data set, so that an epoch has enough steps.

    Args:
        count: Number of rows.
        at_least: Rows that an epoch needs.

    Returns:
        Row indices: all rows, as often as needed.

    Raises:
        ValueError: If that is more than the limit of lines.

    ```python
    from charax.train import repeat_rows

    assert repeat_rows(3, at_least=5).tolist() == [0, 1, 2, 0, 1, 2]
    ```
    """
    check_limit("lines", at_least, "an epoch of many mini-batches", "repeats rows to")
    return np.tile(np.arange(count), -(-at_least // count))
