"""The two sections of a report that every model with trajectories has."""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float, Int

from charax.plotting._follow import Followed
from charax.plotting._moving import moving_curves, principal_directions
from charax.plotting._section import Section

_COINCIDE = 0.1
"""Curves that differ by less than this part of their length lie on top of each other."""


def spread_curves(x: Float[np.ndarray, "points n k"]) -> tuple[Float[np.ndarray, "points n k"], bool]:
    """Curves, or their differences from the mean curve if they would lie on top of each other; and whether they do."""
    mean = x.mean(axis=1, keepdims=True)
    coincide = x.shape[1] > 1 and float(np.abs(x - mean).max()) < _COINCIDE * float(np.abs(mean - mean[0]).max())
    return (x - mean if coincide else x), coincide


def curve_sections(
    followed: Followed,
    labels: Int[np.ndarray, "n"],
    classes: Sequence[str],
    *,
    each: str,
    ending: str = "",
    colors: Sequence[str] | None = None,
) -> list[Section]:
    """Show the learned characteristics x(s), if there are any, and the trajectories u(s).

    Args:
        followed: The states and the characteristics.
        labels: The class of every curve, which colours it.
        classes: The names of the classes.
        each: What one curve is, such as "test sample, coloured by its class".
        ending: A sentence about what follows the states.
        colors: The colours of the classes.

    Returns:
        One or two sections.

    ```python
    import numpy as np
    from charax.plotting import Followed, curve_sections

    s = np.linspace(0, 1, 5)
    u = np.ones((5, 2, 3)) * s[:, None, None]
    (section,) = curve_sections(Followed(s, u, None), np.array([0, 1]), ["a", "b"], each="row")
    assert section.title == "Trajectories u(s)"
    ```
    """
    s, u, x = followed
    sections = []
    if x is not None:
        shown = " The first three dimensions are shown." if x.shape[2] > 3 else ""
        curves, coincide = spread_curves(x)
        less = " They lie on top of each other, so their differences from the mean curve are shown." if coincide else ""
        text = f"One curve per {each}.{shown}{less} Drag to turn, move the slider to follow them."
        names = [f"x<sub>{i + 1}</sub>{' minus mean' if coincide else ''}" for i in range(x.shape[2])]
        figure = moving_curves(curves, s, labels, classes, names, colors=colors)
        sections.append(Section("Learned characteristics x(s)", text, figure))
    coordinates, names = principal_directions(u)
    text = (
        f"The states, one curve per {each}, in the directions in which they vary most, with their shares of the "
        f"variance.{f' {ending}' if ending else ''}"
    )
    figure = moving_curves(coordinates, s, labels, classes, names, colors=colors)
    return [*sections, Section("Trajectories u(s)", text, figure)]
