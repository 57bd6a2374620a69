"""Solutions on a grid: arrays x, t and u of an .npz or a MATLAB file."""

from pathlib import Path

import numpy as np

from charax.data._errors import DataError
from charax.data._samples import SolutionSamples
from charax.data.files._matlab import read_matlab
from charax.data.files._npz import read_arrays

_VALUES = ("u", "usol")
"""Names of the values; the second is that of the files of the papers on physics-informed networks."""


def read_grid(path: Path) -> SolutionSamples | None:
    """Read the nodes of a grid as samples.

    Args:
        path: The file.

    Returns:
        One sample per node; None if the file is no grid, but may be a table of samples.

    Raises:
        DataError: If the file cannot be read, or is a MATLAB file that has no grid.
    """
    is_matlab = path.suffix.lower() == ".mat"
    if not is_matlab and path.suffix.lower() != ".npz":
        return None
    arrays = read_matlab(path) if is_matlab else read_arrays(path)
    name = next((name for name in _VALUES if name in arrays), None)
    missing = [each for each in ("x", "t") if each not in arrays] + ([] if name else ["u"])
    if missing or name is None:
        if not is_matlab:
            return None
        raise DataError(f"{path} has no array {missing[0]!r}; it has {', '.join(arrays) or 'none'}")
    x, t, u = arrays["x"].squeeze(), arrays["t"].squeeze(), arrays[name].squeeze()
    if x.ndim != 1 or t.ndim != 1 or u.ndim != 2:
        if not is_matlab:
            return None
        raise DataError(f"{path} has x, t, {name} of shapes {x.shape}, {t.shape}, {u.shape}: give x[i], t[j], u[i, j]")
    if not is_matlab and len(x) == len(t) == len(u) != u.shape[1]:
        return None  # a table with several values per sample
    if u.shape == (len(x), len(t)):
        u = u.T
    elif u.shape != (len(t), len(x)):
        raise DataError(
            f"{path} has {name} of shape {u.shape} where x has {len(x)} and t has {len(t)} numbers: give u[i, j] at "
            "x[i] and t[j]"
        )
    for label, values in (("x", x), ("t", t), (name, u)):
        if values.dtype.kind not in "fiu" or not np.isfinite(values).all():
            raise DataError(f"{path}: {label} has entries that are not finite numbers")
    grid_t, grid_x = np.meshgrid(t, x, indexing="ij")
    column = lambda values: np.ascontiguousarray(values.reshape(-1), np.float32)
    return SolutionSamples(column(grid_x)[:, None], column(grid_t), column(u)[:, None])
