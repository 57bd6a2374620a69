"""One style for every figure."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import matplotlib as mpl
from matplotlib.figure import Figure

STYLE = {
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
"""Settings of matplotlib, as in a matplotlibrc."""


@contextmanager
def save_figure(path: Path, *, width: float, height: float) -> Iterator[Figure]:
    """Make a figure that is saved at the end of the block. No display is needed.

    Args:
        path: The file.
        width: Width in inches.
        height: Height in inches.

    Returns:
        A context manager that gives the figure.

    ```python
    import tempfile
    from pathlib import Path
    from charax.plotting import save_figure

    with tempfile.TemporaryDirectory() as folder:
        with save_figure(Path(folder) / "line.png", width=4.0, height=3.0) as figure:
            figure.subplots().plot([0, 1], [0, 1])
        assert (Path(folder) / "line.png").exists()
    ```
    """
    with mpl.rc_context(STYLE):  # pyright: ignore[reportArgumentType]
        figure = Figure(figsize=(width, height), layout="constrained")
        yield figure
        figure.savefig(path)
