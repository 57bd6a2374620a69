"""Names that appear in configs. This module imports nothing heavy, so that a command line can read it without JAX."""

from typing import Literal

JacobianForm = Literal["separate", "joint"]
"""A network for each of the k derivatives, or one with k outputs per channel, whose cost hardly grows with k."""

Interpolation = Literal["hermite", "natural", "linear", "rectilinear"]
"""The interpolations of `ObservedPath.interpolate`."""
