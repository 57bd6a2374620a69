"""Confusion matrices, for reports."""

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go
from jaxtyping import Int

_MOST_NUMBERS = 20
"""Number of classes up to which the cells have numbers in them."""


def confusion_matrix(
    targets: Int[np.ndarray, "n"], predicted: Int[np.ndarray, "n"], classes: int
) -> Int[np.ndarray, "classes classes"]:
    """Count the samples of every true class (rows) and predicted class (columns).

    Args:
        targets: The true classes.
        predicted: The predicted classes.
        classes: The number of classes.

    Returns:
        The counts.

    ```python
    import numpy as np
    from charax.plotting import confusion_matrix

    assert confusion_matrix(np.array([0, 0, 1]), np.array([0, 1, 1]), 2).tolist() == [[1, 1], [0, 1]]
    ```
    """
    counts = np.zeros((classes, classes), int)
    np.add.at(counts, (targets, predicted), 1)
    return counts


def confusion_figure(counts: Int[np.ndarray, "classes classes"], classes: Sequence[str]) -> go.Figure:
    """Plot a confusion matrix. The `customdata` of a cell is "true/predicted", for `Details`.

    Args:
        counts: The counts.
        classes: The names of the classes.

    Returns:
        The figure.

    ```python
    import numpy as np
    from charax.plotting import confusion_figure

    figure = confusion_figure(np.array([[3, 1], [0, 4]]), ["a", "b"])
    assert figure.data[0].z[0].tolist() == [75, 25] and figure.data[0].customdata[0][1] == "0/1"
    ```
    """
    share = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    keys = [[f"{true}/{predicted}" for predicted in range(len(classes))] for true in range(len(classes))]
    numbers = (
        {"text": counts, "texttemplate": "%{text}", "textfont": {"size": 11}} if len(classes) <= _MOST_NUMBERS else {}
    )
    figure = go.Figure(
        go.Heatmap(
            z=100 * share,
            x=list(classes),
            y=list(classes),
            customdata=keys,
            colorscale="Blues",
            zmin=0,
            zmax=100,
            colorbar={"title": {"text": "% of the true class"}},
            hovertemplate="%{y} taken for %{x}: %{z:.1f}%<extra></extra>",
            **numbers,
        )
    )
    # Cells are squares: where the figure is too narrow or too wide for that, its axes shrink with the cells.
    figure.update_xaxes(title_text="predicted class", type="category", constrain="domain", showgrid=False)
    figure.update_yaxes(
        title_text="true class", type="category", autorange="reversed", scaleanchor="x", constrain="domain",
        showgrid=False,
    )  # fmt: skip
    return figure
