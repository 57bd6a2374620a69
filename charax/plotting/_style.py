"""One look for every picture."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import matplotlib as mpl
from matplotlib.figure import Figure

# The paper's: red for the plain Neural ODE, blue for the characteristic one. Grey for what is known.
NODE, C_NODE, EXACT = "#c8352b", "#1f5fa8", "#6b6b6b"

_STYLE = {
    "axes.grid": True,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlesize": "medium",
    "figure.dpi": 150,
    "font.size": 10,
    "grid.alpha": 0.25,
    "legend.frameon": False,
    "lines.linewidth": 1.8,
}


@contextmanager
def picture(path: Path, *, width: float, height: float) -> Iterator[Figure]:
    """A figure that is saved when the block ends; no display is needed or touched."""
    with mpl.rc_context(_STYLE):  # pyright: ignore[reportArgumentType]
        figure = Figure(figsize=(width, height), layout="constrained")
        yield figure
        figure.savefig(path)
