"""The ratios as bars."""

from pathlib import Path
from typing import Any

from charax.plotting import C_NODE, EXACT, save_figure


def plot(rows: list[dict[str, Any]], path: Path) -> Path:
    """One bar a row, on a logarithmic scale, with a mark where the target is."""
    shown = [row for row in rows if row["ratio"] is not None]
    with save_figure(path, width=9.0, height=0.8 + 0.28 * len(shown)) as figure:
        axis = figure.subplots()
        places = range(len(shown))
        axis.barh(places, [row["ratio"] for row in shown], color=C_NODE, height=0.65)
        for place, row in zip(places, shown, strict=True):
            axis.text(row["ratio"] * 1.03, place, f"{row['ratio']:.2f}", va="center", fontsize="small")
            if row["target"] is not None:
                axis.plot([row["target"]] * 2, [place - 0.4, place + 0.4], color=EXACT, linewidth=2)
        axis.set_yticks(places, [f"{row['row']}: {row['case']}\n{row['peer']}" for row in shown], fontsize=6)
        axis.invert_yaxis()
        axis.set_xscale("log")
        axis.set_xlabel("time of the peer / time of charax (row 7: fraction of the peak); the mark is the target")
    return path
