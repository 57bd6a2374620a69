"""Names that appear in configs. This module imports nothing heavy, so that a command line can read it without JAX."""

from typing import Any, Literal

JacobianForm = Literal["separate", "joint"]
"""A network for each of the k derivatives, or one with k outputs per channel, whose cost hardly grows with k."""

Interpolation = Literal["hermite", "natural", "linear", "rectilinear"]
"""The interpolations of `ObservedPath.interpolate`."""

Count = int | Any
"""A whole number; in a program that is exported for any length, one of JAX's symbolic dimensions."""
