"""The parts of a report that a task provides."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from plotly.graph_objects import Figure
else:
    Figure = Any  # plotly is an extra

Cell = str | np.ndarray
"""A text, or an image of shape (height, width) or (height, width, 3) with values in [0, 1]."""


@dataclass(frozen=True)
class Details:
    """The samples behind the points of a figure: a click on a point shows the rows of its `customdata`.

    ```python
    from charax.plotting import Details

    details = Details(["input", "class"], {"3/8": [("row 7", "3, taken for 8")]}, "Click on a cell.")
    assert details.rows["3/8"][0][0] == "row 7"
    ```
    """

    columns: Sequence[str]
    """The names of the columns."""
    rows: Mapping[str, Sequence[Sequence[Cell]]]
    """The rows of every key, which is the `customdata` of a point."""
    hint: str
    """What to do to see them."""
    first: str | None = None
    """The key whose rows are shown at the beginning."""


@dataclass(frozen=True)
class Section:
    """A part of the report of a run. Runs that have a section of the same title are shown side by side.

    ```python
    import plotly.graph_objects as go
    from charax.plotting import Section

    section = Section("Residuals", "Observed minus predicted.", go.Figure(go.Histogram(x=[0.1, -0.2])))
    assert section.details is None
    ```
    """

    title: str
    """What is shown."""
    text: str
    """One or two sentences that say what one sees."""
    figure: Figure | None = None
    """A figure. If it has frames, the page adds a slider and a button to play them."""
    details: Details | None = None
    """What a click on a point of the figure shows."""
    frame_label: str = field(default="s", kw_only=True)
    """What the slider moves along."""
