"""Names that appear in configs. This module imports nothing heavy, so that a command line can read it without JAX."""

from typing import Literal

SolverName = Literal["euler", "midpoint", "heun", "bosh3", "tsit5", "dopri5", "dopri8"]
"""The Runge-Kutta methods that have a name; they are the keys of `METHODS`."""

Adjoint = Literal["checkpoint", "backsolve", "direct"]
"""How gradients are computed: see `Solver.adjoint`."""

Precision = Literal["float32", "bfloat16", "float64"]
"""What a run is computed in; bfloat16 is for its networks only: see `Solver.precision`."""
