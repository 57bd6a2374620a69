"""Figures of a regressor: predictions against observations, and residuals."""

import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from jaxtyping import Float

from charax.plotting import C_NODE, save_figure

_ROWS = 400
"""More intervals than this would hide each other."""


def plot_predictions(
    observed: Float[np.ndarray, "n targets"],
    predicted: Float[np.ndarray, "n targets"],
    lower: Float[np.ndarray, "n targets"],
    upper: Float[np.ndarray, "n targets"],
    names: Sequence[str],
    path: Path,
) -> Path:
    """Plot predictions with their 95% prediction intervals against observations.

    Args:
        observed: The observed targets.
        predicted: The predicted ones.
        lower: Lower ends of the prediction intervals.
        upper: Upper ends of the prediction intervals.
        names: Names of the targets.
        path: The file.

    Returns:
        The file.
    """
    with save_figure(path, width=0.8 + 4.0 * len(names), height=3.8) as figure:
        for j, (axis, name) in enumerate(zip(figure.subplots(1, len(names), squeeze=False)[0], names, strict=True)):
            across, up = observed[:_ROWS, j], predicted[:_ROWS, j]
            ends = np.abs(np.stack([lower[:_ROWS, j], upper[:_ROWS, j]]) - up)
            axis.errorbar(
                across,
                up,
                yerr=ends,
                fmt="o",
                color=C_NODE,
                ecolor=(*_rgb(C_NODE), 0.2),
                markersize=3,
                linewidth=1,
                label="test rows, 95% prediction intervals",
            )
            span = (float(across.min()), float(across.max()))
            axis.plot(span, span, color="black", linewidth=0.8, label="predicted = observed")
            axis.set_xlabel(f"observed {name}")
            axis.set_ylabel(f"predicted {name}")
            axis.legend(loc="upper left", fontsize="small")
    return path


def plot_residuals(
    observed: Float[np.ndarray, "n targets"],
    predicted: Float[np.ndarray, "n targets"],
    names: Sequence[str],
    path: Path,
) -> Path:
    """Plot histograms of the residuals, observed minus predicted.

    Args:
        observed: The observed targets.
        predicted: The predicted ones.
        names: Names of the targets.
        path: The file.

    Returns:
        The file.
    """
    with save_figure(path, width=0.8 + 4.0 * len(names), height=3.0) as figure:
        for j, (axis, name) in enumerate(zip(figure.subplots(1, len(names), squeeze=False)[0], names, strict=True)):
            residuals = observed[:, j] - predicted[:, j]
            bins = min(30, math.ceil(math.sqrt(len(residuals))))
            axis.hist(residuals[np.isfinite(residuals)], bins=bins, color=C_NODE)
            axis.axvline(0, color="black", linewidth=0.8)
            axis.set_xlabel(f"residual of {name} (observed minus predicted)")
            axis.set_ylabel("test rows")
            axis.yaxis.get_major_locator().set_params(integer=True)
    return path


def _rgb(color: str) -> tuple[float, float, float]:
    from matplotlib.colors import to_rgb

    return to_rgb(color)
