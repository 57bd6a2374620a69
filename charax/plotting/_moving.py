"""Figures for reports, made with plotly: curves in space that can be turned and played."""

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go
from jaxtyping import Float, Int

from charax.plotting._palette import CLASSES

_SHOWN_CLASSES = 20
_SPACE_HEIGHT = 560
"""Pixels: a box in space needs more of them than a plane."""


def principal_directions(
    states: Float[np.ndarray, "points n *state"], dim: int = 3
) -> tuple[Float[np.ndarray, "points n dim"], list[str]]:
    """Project trajectories onto the directions in which their beginnings, middles and ends vary most.

    Args:
        states: The states on a grid of s.
        dim: The number of directions.

    Returns:
        The coordinates, and a name for each with its share of the variance. States of fewer numbers are
        returned as they are.

    ```python
    import numpy as np
    from charax.plotting import principal_directions

    line = np.linspace(0, 1, 12).reshape(3, 4, 1) * np.ones(5)
    coordinates, names = principal_directions(line, dim=2)
    assert coordinates.shape == (3, 4, 2) and names[0] == "direction 1 (100%)"
    ```
    """
    flat = states.reshape(*states.shape[:2], -1).astype(np.float64)
    if flat.shape[2] <= dim:
        return flat, [f"u<sub>{i + 1}</sub>" for i in range(flat.shape[2])]
    few = flat[[0, len(flat) // 2, -1]].reshape(-1, flat.shape[2])
    mean = few.mean(axis=0)
    _, singular, directions = np.linalg.svd(few - mean, full_matrices=False)
    share = singular**2 / max(float(np.sum(singular**2)), 1e-30)
    names = [f"direction {i + 1} ({share[i]:.0%})" for i in range(dim)]
    return (flat - mean) @ directions[:dim].T, names


def moving_curves(
    curves: Float[np.ndarray, "points n d"],
    s: Float[np.ndarray, "points"],
    labels: Int[np.ndarray, "n"],
    classes: Sequence[str],
    names: Sequence[str],
    *,
    colors: Sequence[str] | None = None,
    s_name: str = "s",
) -> go.Figure:
    """Plot curves in space, with a point on each that moves along s in the frames of the figure.

    Curves in one or two dimensions are plotted over s, so that there is space to turn them in unless they are lines.

    Args:
        curves: The positions on a grid of s; of more than three dimensions the first three are shown.
        s: The grid.
        labels: The class of every curve.
        classes: The names of the classes.
        names: The names of the dimensions.
        colors: The colours of the classes.
        s_name: The name of s.

    Returns:
        The figure, with one frame per point of the grid.

    ```python
    import numpy as np
    from charax.plotting import moving_curves

    s = np.linspace(0, 1, 5)
    curves = np.stack([np.outer(s, [1.0, 2.0]), np.outer(s**2, [1.0, 2.0])], axis=-1)
    figure = moving_curves(curves, s, np.array([0, 1]), ["a", "b"], ["x1", "x2"])
    assert len(figure.frames) == 5 and figure.data[0].type == "scatter3d"
    ```
    """
    points, n, dim = curves.shape
    over_s = np.broadcast_to(s[:, None, None], (points, n, 1))
    if dim >= 3:
        curves, axes = curves[..., :3], list(names[:3])
    elif dim == 2:
        curves, axes = np.concatenate([over_s, curves], axis=-1), [s_name, *names]
    else:
        curves, axes = np.concatenate([over_s, curves], axis=-1), [s_name, *names]
    curves = curves.astype(np.float32)
    colors = list(colors or class_colors(len(classes)))
    groups = [np.flatnonzero(labels == label) for label in range(len(classes))]
    present = [(label, rows) for label, rows in enumerate(groups) if len(rows)]
    lines = [_line(curves[:, rows], colors[label]) for label, rows in present]
    heads = [
        _head(curves[0, rows], colors[label], classes[label], shown=i < _SHOWN_CLASSES)
        for i, (label, rows) in enumerate(present)
    ]
    frames = [
        go.Frame(
            name=f"{s[i]:.3g}",
            data=[_coordinates(curves[i, rows]) for _, rows in present],
            traces=list(range(len(lines), len(lines) + len(heads))),
        )
        for i in range(points)
    ]
    figure = go.Figure([*lines, *heads], frames=frames)
    spans = [_span(curves[..., i]) for i in range(curves.shape[-1])]
    if curves.shape[-1] == 3:
        scene = {
            f"{axis}axis": {"title": {"text": title}, "range": span, "nticks": 5, "tickangle": 0}
            for axis, title, span in zip("xyz", axes, spans, strict=True)
        }
        # From further away than by default, so that the box and the titles of its axes are inside the picture.
        camera = {"eye": {"x": 1.6, "y": 1.6, "z": 1.1}, "center": {"x": 0, "y": 0, "z": -0.1}}
        figure.update_layout(
            scene={**scene, "aspectmode": "cube", "camera": camera},
            margin={"l": 0, "r": 0, "t": 0, "b": 0},
            height=_SPACE_HEIGHT,
        )
    else:
        figure.update_xaxes(title_text=axes[0], range=spans[0])
        figure.update_yaxes(title_text=axes[1], range=spans[1])
    return figure


def class_colors(count: int) -> list[str]:
    """Colours for so many classes.

    Args:
        count: The number of classes.

    Returns:
        Petroff's colours if there are at most ten, else a scale of colours.

    ```python
    from charax.plotting import class_colors

    assert len(set(class_colors(12))) == 12
    ```
    """
    if count <= len(CLASSES):
        return list(CLASSES[:count])
    from plotly.colors import sample_colorscale

    return [str(color) for color in sample_colorscale("Viridis", np.linspace(0, 1, count).tolist())]


def _line(curves: np.ndarray, color: str) -> go.Scatter | go.Scatter3d:
    """All curves of a class as one, with gaps between them."""
    gaps = np.full((1, *curves.shape[1:]), np.nan, curves.dtype)
    joined = np.concatenate([curves, gaps]).swapaxes(0, 1).reshape(-1, curves.shape[-1])
    style = {"mode": "lines", "line": {"color": color, "width": 3}, "opacity": 0.5}
    return _coordinates(joined, **style, showlegend=False, hoverinfo="skip")


def _head(points: np.ndarray, color: str, name: str, *, shown: bool) -> go.Scatter | go.Scatter3d:
    size = 4 if points.shape[-1] == 3 else 8
    return _coordinates(points, mode="markers", marker={"color": color, "size": size}, name=name, showlegend=shown)


def _coordinates(points: np.ndarray, **style) -> go.Scatter | go.Scatter3d:
    kind = go.Scatter3d if points.shape[-1] == 3 else go.Scatter
    return kind(dict(zip("xyz", np.moveaxis(points, -1, 0), strict=False)), **style)


def _span(values: np.ndarray) -> list[float]:
    low, high = float(np.nanmin(values)), float(np.nanmax(values))
    margin = 0.05 * (high - low) or 1.0
    return [low - margin, high + margin]
