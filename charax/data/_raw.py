"""Labelled samples as a reader finds them, before they are split and standardized."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
from jaxtyping import Int32, Integer, Shaped

from charax.data._errors import DataError


class RawSplit(NamedTuple):
    """Inputs in the units of their file, and class indices."""

    inputs: Shaped[np.ndarray, "n *shape"]
    targets: Int32[np.ndarray, "n"]

    def take(self, indices: np.ndarray) -> "RawSplit":
        """Select samples by index."""
        return RawSplit(self.inputs[indices], self.targets[indices])


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
    columns: tuple[str, ...] = ()
    """The names of the features of a table."""
    max_value: float | None = None
    """The raw value of a fully bright pixel, where the inputs are known to be images."""


def index_classes(labels: Sequence[str]) -> tuple[Int32[np.ndarray, "n"], tuple[str, ...]]:
    """Map labels to class indices. The classes are in numerical order if all are integers, else alphabetical."""
    distinct = set(labels)
    integers = all(label.removeprefix("-").isdecimal() for label in distinct)
    classes = tuple(sorted(distinct, key=(lambda label: (int(label), label)) if integers else None))
    index = {label: i for i, label in enumerate(classes)}
    return np.asarray([index[label] for label in labels], np.int32), classes


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
