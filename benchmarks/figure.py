"""The ratios as bars: how many times as fast as its peer charax is, and how much of the machine's peak it reaches."""

from pathlib import Path
from typing import Any

from matplotlib.axes import Axes
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from charax.plotting import C_NODE, EXACT, NODE, save_figure

_PEAK = 7
"""The row that is a fraction of the machine's peak, and no comparison with a peer."""
_TICKS = (0.25, 0.5, 1, 2, 5, 10, 20)


def plot(rows: list[dict[str, Any]], path: Path) -> Path:
    """One bar per row, from 1: blue where charax is faster; a mark where the target is."""
    shown = [row for row in rows if row["ratio"] is not None]
    peers = [row for row in shown if row["row"] != _PEAK]
    peak = [row for row in shown if row["row"] == _PEAK]
    groups = [(peers, "times as fast as the peer", 1.0), (peak, "fraction of the peak of matrix products", 0.0)]
    groups = [group for group in groups if group[0]]
    with save_figure(path, width=9.0, height=1.6 + 0.4 * len(shown)) as figure:
        panels = figure.subplots(len(groups), 1, height_ratios=[len(group) for group, _, _ in groups], squeeze=False)
        for axis, (group, label, start) in zip(panels[:, 0], groups, strict=True):
            _bars(axis, group, start)
            axis.set_xlabel(label)
        if peers:
            axis = panels[0, 0]
            axis.set_xscale("log")
            axis.xaxis.set_major_locator(FixedLocator(_TICKS))
            axis.xaxis.set_minor_locator(NullLocator())
            axis.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
            axis.axvline(1, color="black", linewidth=0.8)
        figure.suptitle("charax and its peers on two cores; the grey marks are targets")
    return path


def _bars(axis: Axes, rows: list[dict[str, Any]], start: float) -> None:
    places = range(len(rows))
    ratios = [row["ratio"] for row in rows]
    colors = [NODE if start and ratio < start else C_NODE for ratio in ratios]
    axis.barh(places, [ratio - start for ratio in ratios], left=start, color=colors, height=0.65)
    for place, row in zip(places, rows, strict=True):
        end = max(row["ratio"], start)
        axis.annotate(f"{row['ratio']:.2f}", (end, place), (6, 0), textcoords="offset points", va="center", fontsize=8)
        if row["target"] is not None:
            axis.plot([row["target"]] * 2, [place - 0.4, place + 0.4], color=EXACT, linewidth=2)
    axis.set_yticks(places, [f"{row['row']}: {row['case']}\n{row['peer']}" for row in rows], fontsize=8)
    axis.set_ylim(len(rows) - 0.4, -0.6)
