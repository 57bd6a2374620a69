"""The rows of a data set: duplicates merged, padded to common sizes, split and batched."""

from typing import NamedTuple

import jax
import numpy as np
from jaxtyping import Array, Float, Float32, Int

PADDED_SIZES = (64, 256)
"""Arrays are padded to one of these numbers of rows, so that data sets of many sizes share a few compiled programs."""


class Batch(NamedTuple):
    """Rows in single precision, on the device. Rows of weight zero are padding."""

    inputs: Float32[Array, "rows features"]
    targets: Float32[Array, "rows outputs"]
    weights: Float32[Array, "rows"]


class Rows(NamedTuple):
    """Inputs, targets and sample weights."""

    inputs: Float[np.ndarray, "rows features"]
    targets: Float[np.ndarray, "rows outputs"]
    weights: Float[np.ndarray, "rows"]

    def merge_duplicates(self) -> "Rows":
        """Merge equal rows into one with the sum of their weights, and sort; rows of weight zero are dropped.

        A weight of two is then exactly the same as a row that occurs twice, the order of the rows does not matter, and
        no row is in both the training and the validation split.
        """
        has_weight = self.weights > 0
        table = np.column_stack([self.inputs, self.targets])[has_weight]
        rows, inverse = np.unique(table, axis=0, return_inverse=True)
        features = self.inputs.shape[1]
        weights = np.bincount(inverse.ravel(), weights=self.weights[has_weight], minlength=len(rows))
        return Rows(rows[:, :features], rows[:, features:], weights)

    def pad(self) -> Batch:
        """Normalize the weights to mean one, and append at least one row of padding."""
        size = padded_size(len(self.weights) + 1)
        append = lambda values: np.pad(values, ((0, size - len(values)), *((0, 0),) * (values.ndim - 1)))
        padded = (append(values).astype(np.float32) for values in (*self[:2], self.weights / self.weights.mean()))
        return Batch(*map(jax.device_put, padded))


def padded_size(rows: int) -> int:
    """The smallest of the sizes that holds these rows, or else a multiple of the largest size."""
    return next((size for size in PADDED_SIZES if rows <= size), -(-rows // PADDED_SIZES[-1]) * PADDED_SIZES[-1])


def validation_splits(
    rows: Rows, fraction: float, members: int, generator: np.random.Generator
) -> list[tuple[Int[np.ndarray, "train"], Int[np.ndarray, "validation"]]]:
    """The training and the validation rows of each member; the members have different validation rows.

    Validation rows are taken at regular intervals from the rows sorted by target, so that every class and every range
    of values is represented.
    """
    shuffled = generator.permutation(len(rows.weights))
    sort_key = rows.targets[shuffled] @ np.arange(1, rows.targets.shape[1] + 1)  # the class, if targets are one-hot
    order = shuffled[np.argsort(sort_key, kind="stable")]
    interval = max(round(1 / fraction), 2)
    held_out = [np.arange(len(order)) % interval == member % interval for member in range(members)]
    return [(order[~is_held_out], order[is_held_out]) for is_held_out in held_out]


def make_batches(rows: Int[np.ndarray, "rows"], batch_size: int, padding: int) -> Int[np.ndarray, "steps batch"]:
    """Split rows evenly into as few mini-batches as possible, filled up with the row number `padding`."""
    steps = -(-len(rows) // batch_size)
    size = -(-len(rows) // steps)
    # A program of several steps is for tables of this size only: there is nothing to share by padding much.
    size = padded_size(size) if steps == 1 else -(-size // 8) * 8
    batches = np.full((size, steps), padding)
    batches.ravel()[: len(rows)] = rows
    return batches.T
