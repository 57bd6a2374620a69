"""The pieces of a page: figures with their data, blocks side by side, and the file around them."""

import base64
import io
import json
from collections.abc import Sequence
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np

from charax._version import __version__
from charax.plotting import Cell, Section

_HEIGHT = 440


def write_page(path: Path, title: str, body: str) -> None:
    """Write a page that needs no other file. An existing one is replaced only when the new one is complete."""
    from plotly.offline import get_plotlyjs

    assets = files("charax.report") / "assets"
    read = lambda name: (assets / name).read_text(encoding="utf-8")
    page = read("page.html")
    for mark, text in (
        ("TITLE", escape(f"charax: {title}")),
        ("HEADING", escape(title)),
        ("VERSION", __version__),
        ("STYLE", read("page.css")),
        ("SCRIPT", read("page.js")),
        ("PLOTLY", get_plotlyjs()),
        ("BODY", body),
    ):
        page = page.replace(f"<!--{mark}-->", text, 1)
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(path.name + ".part")
    part.write_text(page, encoding="utf-8")
    part.replace(path)


def block(title: str, cells: Sequence[tuple[str | None, str]]) -> str:
    """A part of the page under a title: cells side by side, each perhaps with a name."""
    anchor = "".join(letter if letter.isalnum() else "-" for letter in title.lower()).strip("-")
    inside = "".join(
        f"<div class='cell'>{f'<h3>{escape(name)}</h3>' if name else ''}{content}</div>" for name, content in cells
    )
    return f"<section id='{anchor}'><h2>{escape(title)}</h2><div class='cells'>{inside}</div></section>"


def content(section: Section) -> str:
    """The text of a section, and its figure as data that the page draws."""
    text = f"<p>{escape(section.text)}</p>"
    if section.figure is None:
        return text
    figure = json.loads(section.figure.to_json() or "{}")
    payload: dict[str, Any] = {name: figure.get(name) for name in ("data", "layout", "frames")}
    payload["layout"].pop("template", None)  # the page has its own, in light and dark
    payload["along"] = section.frame_label
    if section.details is not None:
        details = section.details
        payload["details"] = {
            "columns": list(details.columns),
            "rows": {key: [[_cell(cell) for cell in row] for row in rows] for key, rows in details.rows.items()},
            "hint": details.hint,
            "first": details.first,
        }
    height = payload["layout"].get("height", _HEIGHT)
    # In a script nothing but its end is special.
    data = json.dumps(payload).replace("</", "<\\/")
    return (
        f"{text}<div class='figure' style='--height: {height}px'><script type='application/json'>{data}</script></div>"
    )


def _cell(cell: Cell) -> str | dict[str, str]:
    if isinstance(cell, str):
        return cell
    from PIL import Image

    file = io.BytesIO()
    Image.fromarray(np.rint(255 * np.clip(cell, 0, 1)).astype(np.uint8)).save(file, "PNG")
    return {"image": f"data:image/png;base64,{base64.b64encode(file.getvalue()).decode()}"}
