"""Labels must be one of the classes."""

from pathlib import Path

import numpy as np
from jaxtyping import Int32, Integer

from charax.data._errors import DataError


def check_labels(
    labels: Integer[np.ndarray, "n"], *, low: int, high: int, source: Path | str
) -> Int32[np.ndarray, "n"]:
    """The labels, or an error that names the first one that is not in low … high."""
    outside = (labels < low) | (labels > high)
    if outside.any():
        row = int(np.argmax(outside))
        raise DataError(
            f"{source} has the label {labels[row]} in row {row} (counted from 0); labels go from {low} to {high}"
        )
    return labels.astype(np.int32)
