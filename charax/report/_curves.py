"""Figures of all runs together: learning curves and function evaluations."""

import math
from collections import Counter
from collections.abc import Sequence

import plotly.graph_objects as go
from plotly.subplots import make_subplots

from charax.plotting import CLASSES, method_color
from charax.train import Run

_SHADES = 3
"""Runs of one method that are told apart by shades of its colour."""
_POSITIVE = ("loss", "deviation_percent")
"""Metrics whose axis is logarithmic, unless one of them is negative or all of them are of one size."""
_LOG_FROM, _MANY_POWERS = 5.0, 3e3
_LOSSES = {"nll": "negative log-likelihood", "bits_per_dim": "bits/dim"}
_TITLES = {
    "loss": "loss",
    "accuracy": "accuracy",
    "deviation_percent": "relative error, %",
    "nfe": "function evaluations per solve",
}


def run_colors(runs: Sequence[Run]) -> list[str]:
    """One colour per run: that of its method, lighter for each further run of it; one of ten if there are many."""
    colors = [method_color(str(run.config.method)) for run in runs]
    if max(Counter(colors).values()) > _SHADES:
        return [CLASSES[i % len(CLASSES)] for i in range(len(runs))]
    return [_lighten(color, colors[:i].count(color) / _SHADES) for i, color in enumerate(colors)]


def _lighten(color: str, share: float) -> str:
    """A colour mixed with white."""
    return "#" + "".join(f"{round(int(color[i : i + 2], 16) * (1 - share) + 255 * share):02x}" for i in (1, 3, 5))


def learning_curves(runs: Sequence[Run], names: Sequence[str], metrics: Sequence[str]) -> go.Figure | None:
    """Metrics over epochs, of all runs that have them; None if none has."""
    shown = [metric for metric in metrics if any(f"validation_{metric}" in run.epochs[0] for run in runs)]
    if not shown:
        return None
    figure = make_subplots(1, len(shown), horizontal_spacing=0.12)
    for column, metric in enumerate(shown, start=1):
        seen: list[float] = []
        for run, name, color in zip(runs, names, run_colors(runs), strict=True):
            for key, split, dash in ((metric, "training", "dot"), (f"validation_{metric}", "validation", "solid")):
                values = [row.get(key) for row in run.epochs]
                if all(value is None for value in values):
                    continue
                seen += [value for value in values if value is not None]
                figure.add_scatter(
                    x=[row["epoch"] for row in run.epochs],
                    y=values,
                    mode="lines+markers" if len(values) < 3 else "lines",
                    line={"color": color, "dash": dash},
                    name=f"{name}, {split}" if len(runs) > 1 else split,
                    legendgroup=f"{name}{split}",
                    showlegend=column == 1,
                    row=1,
                    col=column,
                )
        figure.update_xaxes(title_text="epoch", row=1, col=column)
        if max(len(run.epochs) for run in runs) <= 12:
            figure.update_xaxes(dtick=1, row=1, col=column)
        figure.update_yaxes(title_text=_title(metric, runs), row=1, col=column)
        if metric in _POSITIVE and seen and min(seen) > 0 and max(seen) > _LOG_FROM * min(seen):
            ticks = log_ticks(min(seen), max(seen))
            figure.update_yaxes(type="log", tickvals=ticks, ticktext=[f"{tick:g}" for tick in ticks], row=1, col=column)
    return figure


def _title(metric: str, runs: Sequence[Run]) -> str:
    """What the axis of a metric is called. Losses that are likelihoods have a name of their own."""
    names = {_LOSSES.get(next((each for each in _LOSSES if f"validation_{each}" in run.epochs[0]), "")) for run in runs}
    own = names.pop() if len(names) == 1 else None
    return own if own and metric == "loss" else _TITLES.get(metric, metric)


def log_ticks(low: float, high: float) -> list[float]:
    """1, 2 and 5 times powers of ten, or the powers alone where there are many; plotly's own are small print."""
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    digits = (1, 2, 5) if high < _MANY_POWERS * low else (1,)
    ticks = [digit * 10.0**power for power in powers for digit in digits]
    return [tick for tick in ticks if low / 2.5 <= tick <= high * 2.5]
