"""Rows of numbers as the networks see them."""

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Float32, Int

SIZES = (64, 256)
"""Rows are filled up to one of these, so that data of many sizes share a few compiled programs."""


class Batch(NamedTuple):
    """Rows in single precision where they are computed with; those that weigh nothing only fill the batch up."""

    inputs: Float32[Array, "rows features"]
    targets: Float32[Array, "rows outputs"]
    weights: Float32[Array, "rows"]


class Rows(NamedTuple):
    """Inputs, what is to be learned of them, and how much each counts."""

    inputs: Float[np.ndarray, "rows features"]
    targets: Float[np.ndarray, "rows outputs"]
    weights: Float[np.ndarray, "rows"]

    def distinct(self) -> "Rows":
        """Equal rows as one that counts as much as all of them, in an order that does not depend on theirs.

        A weight of two is so the same as a row that is there twice, to the last bit, and a copy of a row that is
        trained on never validates.
        """
        counts = self.weights > 0
        table = np.column_stack([self.inputs, self.targets])[counts]
        rows, which = np.unique(table, axis=0, return_inverse=True)
        features = self.inputs.shape[1]
        weights = np.bincount(which.ravel(), weights=self.weights[counts], minlength=len(rows))
        return Rows(rows[:, :features], rows[:, features:], weights)

    def fill_up(self) -> Batch:
        """The rows with mean weight one, and after them rows of zeros that do not count, at least one."""
        size = round_up(len(self.weights) + 1)
        fill = lambda values: np.pad(values, ((0, size - len(values)), *((0, 0),) * (values.ndim - 1)))
        filled = (fill(values).astype(np.float32) for values in (*self[:2], self.weights / self.weights.mean()))
        return Batch(*map(jnp.asarray, filled))


def round_up(rows: int) -> int:
    """The next of the sizes, or a multiple of the largest."""
    return next((size for size in SIZES if rows <= size), -(-rows // SIZES[-1]) * SIZES[-1])


def hold_out(
    rows: Rows, fraction: float, members: int, generator: np.random.Generator
) -> list[tuple[Int[np.ndarray, "train"], Int[np.ndarray, "held"]]]:
    """For each member the rows to train on and those to validate with, which are others for every member.

    Every so many rows of those sorted by target are held out, so that no class and no range of values is missed.
    """
    shuffled = generator.permutation(len(rows.weights))
    number = rows.targets[shuffled] @ np.arange(1, rows.targets.shape[1] + 1)  # of the class, if they are classes
    order = shuffled[np.argsort(number, kind="stable")]
    every = max(round(1 / fraction), 2)
    held = [np.arange(len(order)) % every == member % every for member in range(members)]
    return [(order[~out], order[out]) for out in held]


def share_out(rows: Int[np.ndarray, "rows"], batch_size: int, nothing: int) -> Int[np.ndarray, "steps batch"]:
    """The rows in as many batches as are needed, evenly; `nothing` is the row that fills the batches up."""
    steps = -(-len(rows) // batch_size)
    size = round_up(-(-len(rows) // steps))
    filled = np.full((size, steps), nothing)
    filled.ravel()[: len(rows)] = rows
    return filled.T
