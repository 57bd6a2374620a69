"""One function per picture, one style for all."""

from charax.plots.ablation import draw_ablation
from charax.plots.deviations import draw_deviations
from charax.plots.flows import (
    density_on_grid,
    draw_density,
    draw_flow_characteristics,
    draw_grid_flow,
    draw_images,
    draw_samples,
)
from charax.plots.forecast import draw_forecasts, draw_intervals
from charax.plots.kinetic import draw_kinetic
from charax.plots.learned_pde import draw_equation, draw_regression, draw_solution
from charax.plots.pde import draw_problem
from charax.plots.propositions import (
    draw_characteristics,
    draw_homeomorphisms,
    draw_intersecting,
    draw_log_density,
    draw_propositions,
)
from charax.plots.style import C_NODE, EXACT, NODE, picture
from charax.plots.table1 import draw_dynamics
from charax.plots.training import draw_learned_characteristics, draw_run, draw_training, follow_characteristics

__all__ = [
    "C_NODE",
    "EXACT",
    "NODE",
    "density_on_grid",
    "draw_ablation",
    "draw_characteristics",
    "draw_density",
    "draw_deviations",
    "draw_dynamics",
    "draw_equation",
    "draw_flow_characteristics",
    "draw_forecasts",
    "draw_grid_flow",
    "draw_homeomorphisms",
    "draw_images",
    "draw_intersecting",
    "draw_intervals",
    "draw_kinetic",
    "draw_learned_characteristics",
    "draw_log_density",
    "draw_problem",
    "draw_propositions",
    "draw_regression",
    "draw_run",
    "draw_samples",
    "draw_solution",
    "draw_training",
    "follow_characteristics",
    "picture",
]
