"""One function per picture, one style for all."""

from charax.plots.propositions import (
    draw_characteristics,
    draw_homeomorphisms,
    draw_intersecting,
    draw_log_density,
    draw_propositions,
)
from charax.plots.style import C_NODE, EXACT, NODE, picture

__all__ = [
    "C_NODE",
    "EXACT",
    "NODE",
    "draw_characteristics",
    "draw_homeomorphisms",
    "draw_intersecting",
    "draw_log_density",
    "draw_propositions",
    "picture",
]
