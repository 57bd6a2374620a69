"""Characteristics in closed form of the equations of `equations`: foot points and times to positions and values."""

from collections.abc import Callable, Mapping
from types import MappingProxyType

import numpy as np
from jaxtyping import Float

Values = Float[np.ndarray, "points"]
Flow = Callable[[Values, Values], tuple[Values, Values]]


def burgers(foot: Values, t: Values) -> tuple[Values, Values]:
    u = 2 + np.sin(foot)
    return foot + t * u, u


def traffic(foot: Values, t: Values) -> tuple[Values, Values]:
    u = 0.2 + 0.6 * np.exp(-(foot**2) / 2)
    return foot + t * (1 - 2 * u), u


def cubic(foot: Values, t: Values) -> tuple[Values, Values]:
    u = 1 + 0.5 * np.sin(foot)
    return foot - u**2 * np.expm1(-0.4 * t) / 0.4, u * np.exp(-0.2 * t)


def reaction(foot: Values, t: Values) -> tuple[Values, Values]:
    u = 0.05 + 0.5 * np.exp(-2 * foot**2)
    return foot + t, u / (u + (1 - u) * np.exp(-2 * t))


def growth(foot: Values, t: Values) -> tuple[Values, Values]:
    u = 1 + 0.5 * np.sin(foot)
    return foot + u * np.expm1(t), u * np.exp(t)


def medium(foot: Values, t: Values) -> tuple[Values, Values]:
    return 2 * np.arctan(np.tan(foot / 2) * np.exp(t)), (1 + 0.5 * np.cos(2 * foot)) * np.exp(-0.5 * t)


FLOWS: Mapping[str, Flow] = MappingProxyType(
    {"burgers": burgers, "traffic": traffic, "cubic": cubic, "reaction": reaction, "growth": growth, "medium": medium}
)
"""By the name of the equation."""
