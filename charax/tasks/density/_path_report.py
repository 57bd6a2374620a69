"""The density along s of a flow whose samples have too many numbers for a picture of their space."""

from collections.abc import Mapping

import numpy as np
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from charax.models.flows import FlowPath
from charax.plotting import C_NODE, EXACT, Section

COLORS = (EXACT, C_NODE)
"""Of data and of samples."""


def density_section(paths: Mapping[str, FlowPath], *, unit: str, each: str) -> Section:
    """Log-densities of states and losses of samples along s: their means, and between which most of them are.

    Args:
        paths: What was followed, by name; the samples of the flow come second.
        unit: The unit of the loss.
        each: What is followed, such as "images".

    Returns:
        The section.
    """
    titles = ["log-density at s", "loss if the flow ended at s"]
    figure = make_subplots(1, 2, horizontal_spacing=0.12, subplot_titles=titles)
    size = next(iter(paths.values())).u[0, 0].size
    for (name, path), color in zip(paths.items(), COLORS, strict=True):
        for column, values in enumerate((path.log_prob / size, path.loss), start=1):
            for trace in _mean_and_range(path.s, values, name, color, is_first=column == 1):
                figure.add_trace(trace, row=1, col=column)
    path = next(iter(paths.values()))
    for start in path.starts[1:]:
        figure.add_vline(start, line={"color": "#888888", "width": 1, "dash": "dot"})
    figure.update_xaxes(title_text="s")
    figure.update_yaxes(title_text="nats per dimension", row=1, col=1)
    figure.update_yaxes(title_text=unit, row=1, col=2)
    several = " Dotted lines: where the next of its flows starts." if len(path.starts) > 1 else ""
    text = (
        f"Left: the log-density of {each} at s, under the flow's own distribution there: the learned one at s = 0, the "
        "normal distribution at the end. Samples should have the densities of data. Right: the loss if the flow ended "
        f"at s; its last value is the loss of the flow. Lines are means; nine of ten are in the shaded ranges.{several}"
    )
    return Section("Density along s", text, figure)


def _mean_and_range(s: np.ndarray, values: np.ndarray, name: str, color: str, *, is_first: bool) -> list[go.Scatter]:
    low, high = np.nanquantile(values, [0.05, 0.95], axis=1)
    red, green, blue = (int(color[i : i + 2], 16) for i in (1, 3, 5))
    shade = {"fill": "toself", "fillcolor": f"rgba({red}, {green}, {blue}, 0.15)", "line": {"width": 0}}
    around = {"x": np.concatenate([s, s[::-1]]), "y": np.concatenate([high, low[::-1]])}
    return [
        go.Scatter(around, mode="lines", legendgroup=name, showlegend=False, hoverinfo="skip", **shade),
        go.Scatter(
            {"x": s, "y": np.nanmean(values, axis=1)},
            mode="lines",
            name=name,
            legendgroup=name,
            showlegend=is_first,
            line={"color": color, "width": 2},
        ),
    ]
