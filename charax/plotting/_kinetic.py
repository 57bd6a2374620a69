"""A flow with and without a price on kinetic energy."""

from pathlib import Path

import numpy as np

from charax.paper.kinetic import Priced
from charax.plotting._style import C_NODE, EXACT, picture


def draw_kinetic(result: Priced, path: Path) -> Path:
    """Validation NLL and evaluations over the epochs: mean over seeds, and the band from the least to the most."""
    with picture(path, width=7.0, height=3.0) as figure:
        for axis, metric, label in zip(
            figure.subplots(1, 2), ("nll", "nfe"), ("validation NLL", "evaluations of the field"), strict=True
        ):
            for one, colour, name in (
                (result.free, EXACT, "no price"),
                (result.priced, C_NODE, f"kinetic energy at {result.weight:g}"),
            ):
                courses = np.array(one.courses(metric))
                epochs = np.arange(1, 1 + courses.shape[1])
                axis.plot(epochs, courses.mean(0), "o-", markersize=3, color=colour, label=name)
                axis.fill_between(epochs, courses.min(0), courses.max(0), color=colour, alpha=0.15, linewidth=0)
            axis.set_xlabel("epoch")
            axis.set_ylabel(label)
        figure.axes[0].legend()
    return path
