"""The crossing trajectories as a moving picture: an SVG file that browsers and GitHub play."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from jaxtyping import Float

from charax.paper.propositions._intersecting import Intersecting
from charax.plotting import C_NODE, EXACT, NODE

_WIDTH, _HEIGHT, _MARGIN, _SIDE, _TALL = 760, 300, 60, 290, 180
_TOP, _GAP = 70, 60
_SECONDS = 5
_MOVES = 0.7
"""The fraction of the time in which the points move; for the rest they stay where they end."""


def plot_moving(result: Intersecting, path: Path) -> Path:
    """Write the trajectories of both trained models, with points that move along them."""
    panels = [
        (f"Neural ODE, {result.node_parameters} parameters", "its trajectories cannot cross", result.node, NODE),
        (f"C-NODE, {result.c_node_parameters} parameters", "its trajectories do", result.c_node, C_NODE),
    ]
    # Both panels have one scale, with a margin for both ends.
    values = np.concatenate([np.asarray(result.node).ravel(), np.asarray(result.c_node).ravel(), [0.0, 1.0]])
    low, high = float(values.min()) - 0.05, float(values.max()) + 0.05
    parts = [
        f"<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 {_WIDTH} {_HEIGHT}' width='{_WIDTH}' height='{_HEIGHT}'"
        " font-family='system-ui, sans-serif' role='img'>",
        "<title>Two points must swap places: those of a Neural ODE cannot cross, those of a C-NODE do</title>",
        f"<rect width='{_WIDTH}' height='{_HEIGHT}' fill='white'/>",
    ]
    for number, (title, below, trajectory, color) in enumerate(panels):
        left = _MARGIN + number * (_SIDE + _GAP)
        place = lambda s, u, left=left: (left + _SIDE * s, _TOP + _TALL * (high - u) / (high - low))
        parts += _panel(title, below, left, place, color)
        for curve in np.asarray(trajectory).T:
            parts += _curve([place(s, u) for s, u in zip(np.asarray(result.s), curve, strict=True)], color)
    path.write_text("\n".join([*parts, "</svg>"]) + "\n", encoding="utf-8")
    return path


def _panel(title: str, below: str, left: float, place, color: str) -> list[str]:
    text = [
        f"<text x='{left}' y='28' font-size='17' font-weight='600' fill='{color}'>{title}</text>",
        f"<text x='{left}' y='50' font-size='14' fill='#444444'>{below}</text>",
        f"<text x='{left + _SIDE / 2}' y='{_HEIGHT - 12}' font-size='14' fill='#444444' text-anchor='middle'>s</text>",
    ]
    if left == _MARGIN:
        text.append(
            f"<text x='14' y='{(place(0, 0)[1] + place(0, 1)[1]) / 2}' font-size='14' fill='#444444'>u(s)</text>"
        )
    for start, end in ((0.0, 1.0), (1.0, 0.0)):
        (x1, y1), (x2, y2) = place(0, start), place(1, end)
        text += [
            f"<line x1='{x1:.1f}' y1='{y1:.1f}' x2='{x2:.1f}' y2='{y2:.1f}' stroke='{EXACT}' stroke-dasharray='5 5'"
            " opacity='0.5'/>",
            f"<circle cx='{x1:.1f}' cy='{y1:.1f}' r='6' fill='{EXACT}'/>",
            f"<circle cx='{x2:.1f}' cy='{y2:.1f}' r='6' fill='white' stroke='{EXACT}' stroke-width='2'/>",
        ]
    return text


def _curve(points: Sequence[tuple[float, float]], color: str) -> list[str]:
    path = "M" + " L".join(f"{x:.1f},{y:.1f}" for x, y in points)
    steps: Float[np.ndarray, "segments"] = np.hypot(*np.diff(np.asarray(points), axis=0).T)
    length = float(steps.sum())
    # The points move evenly in s, not along the curve.
    reached = np.append(0, np.cumsum(steps)) / length
    times = ";".join(f"{t:.3f}" for t in (*np.linspace(0, _MOVES, len(points)), 1))
    along = ";".join(f"{part:.4f}" for part in (*reached, 1))
    offsets = ";".join(f"{length * (1 - part):.1f}" for part in (*reached, 1))
    loop = f"dur='{_SECONDS}s' repeatCount='indefinite' calcMode='linear' keyTimes='{times}'"
    return [
        f"<path d='{path}' fill='none' stroke='{color}' stroke-width='3' stroke-dasharray='{length:.1f}'>",
        f"<animate attributeName='stroke-dashoffset' {loop} values='{offsets}'/></path>",
        f"<circle r='8' fill='{color}'><animateMotion path='{path}' {loop} keyPoints='{along}'/></circle>",
    ]
