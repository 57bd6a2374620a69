"""Labelled samples as a reader finds them, before they are split and standardized."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
from jaxtyping import Float32, Int32, Integer, Shaped

from charax.data._errors import DataError
from charax.data._stored import AbstractStoredRows, take_rows
from charax.data.files._stored_table import StoredTable
from charax.data.files._table import Table


class RawSplit(NamedTuple):
    """Inputs in the units of their file, and class indices."""

    inputs: Shaped[np.ndarray, "n *shape"] | AbstractStoredRows | Table | StoredTable
    targets: Int32[np.ndarray, "n"]

    def take(self, indices: np.ndarray) -> "RawSplit":
        """Select samples by index."""
        inputs = self.inputs
        if isinstance(inputs, StoredTable):
            indices = np.sort(indices)
            return RawSplit(inputs.take(indices), self.targets[indices])
        return RawSplit(take_rows(inputs, indices), self.targets[indices])


def shrink_images(
    images: Shaped[np.ndarray, "n ..."] | AbstractStoredRows | Table | StoredTable, by: int, source: Path | str
) -> Float32[np.ndarray, "n height width channels"]:
    """Average images over squares of `by` x `by` pixels."""
    if isinstance(images, AbstractStoredRows):
        raise DataError(f"{source} is too large to be shrunk in memory: save smaller images, and leave shrink out")
    if isinstance(images, Table | StoredTable) or images.ndim != 4:
        raise DataError(f"{source} has no images, so there is nothing to shrink: leave shrink out")
    n, height, width, channels = images.shape
    if by < 1 or height % by or width % by:
        raise DataError(f"{source}: {height}x{width} pixels cannot be shrunk by {by}: give a common divisor")
    squares = images.reshape(n, height // by, by, width // by, by, channels).astype(np.float32)
    return squares.mean(axis=(2, 4))


@dataclass(frozen=True)
class RawDataset:
    """The samples of a file or of a named data set."""

    source: Path | str
    """What an error about the samples names."""
    samples: RawSplit
    """The samples to split."""
    classes: tuple[str, ...]
    test: RawSplit | None = None
    """The official test split, where there is one."""
    max_value: float | None = None
    """The raw value of a fully bright pixel, where the inputs are known to be images."""

    def shrink(self, by: int) -> "RawDataset":
        """Average the images over squares of `by` x `by` pixels."""
        small = lambda split: RawSplit(shrink_images(split.inputs, by, self.source), split.targets)
        return replace(self, samples=small(self.samples), test=None if self.test is None else small(self.test))

    def limit(self, samples: int) -> "RawDataset":
        """Keep the first samples, and a fifth as many of the official test split."""
        first = lambda split, count: split.take(np.arange(min(count, len(split.targets))))
        test = None if self.test is None else first(self.test, max(samples // 5, 1))
        return replace(self, samples=first(self.samples, samples), test=test)


def index_classes(labels: Sequence[str]) -> tuple[Int32[np.ndarray, "n"], tuple[str, ...]]:
    """Map labels to class indices. The classes are in numerical order if all are integers, else alphabetical."""
    classes = sort_classes(set(labels))
    index = {label: i for i, label in enumerate(classes)}
    return np.asarray([index[label] for label in labels], np.int32), classes


def sort_classes(distinct: Collection[str]) -> tuple[str, ...]:
    """Sort class names: numerically if all are integers, else alphabetically."""
    integers = all(label.removeprefix("-").isdecimal() for label in distinct)
    return tuple(sorted(distinct, key=(lambda label: (int(label), label)) if integers else None))


def check_labels(
    labels: Integer[np.ndarray, "n"], *, low: int, high: int, source: Path | str
) -> Int32[np.ndarray, "n"]:
    """Check that all labels are in low … high; the error names the first that is not."""
    outside = (labels < low) | (labels > high)
    if outside.any():
        row = int(np.argmax(outside))
        raise DataError(
            f"{source} has the label {labels[row]} in row {row} (counted from 0); labels go from {low} to {high}"
        )
    return labels.astype(np.int32)
