"""A conservation law uₜ + f(u)ₓ = 0 tabulated: its flux from its velocity f′, and ∫u₀dx."""

from collections.abc import Callable

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from charax.pde._entropy_graph import (
    Graph,
    cumulative,
    gauss_legendre,
    initial_of,
    pad_rows,
    resolve,
    speed,
    speed_of,
)
from charax.pde._problem import AbstractProblem

_NODES = 1024


class Law(eqx.Module):
    """A conservation law at the nodes of its initial curve: what the search for the least potential needs."""

    problem: AbstractProblem
    foot: Float[Array, "nodes"]
    value: Float[Array, "nodes"]
    speed: Float[Array, "nodes"]
    potential: Float[Array, "nodes"]
    """U₀ = ∫u₀dξ"""
    flux: Float[Array, "nodes"]
    fan: Bool[Array, "intervals"]
    knots: Float[Array, "knots"]
    """Values of u at which the flux is tabulated."""
    knot_flux: Float[Array, "knots"]
    sign: float
    """1 where the least potential is the entropy solution, -1 where the greatest is."""


def make_law(problem: AbstractProblem, graph: Graph, dtype: jnp.dtype) -> Law:
    """Tabulate flux and potential; refuses what no extremum of the potential decides."""
    lowest, highest = float(graph.value.min()), float(graph.value.max())
    margin = 1e-3 * (1 + abs(lowest)) if lowest == highest else 0.0
    function = speed_of(problem, dtype)
    table = resolve(function, lowest, highest + margin, dtype, "velocity(x, t, u)")
    knots = np.append(table.points[:, :-1].ravel(), table.points[-1, -1])
    knot_flux = cumulative(function, knots)
    # The flux at the nodes of the curve, by the same quadrature from the knot below.
    cell = np.clip(np.searchsorted(knots, graph.value, side="right") - 1, 0, knots.size - 2)
    points, weights = gauss_legendre(4)
    width = graph.value - knots[cell]
    between = function((knots[cell][:, None] + width[:, None] * points).ravel()).reshape(-1, points.size)
    flux = knot_flux[cell] + width * (between @ weights)
    padded = lambda values: jnp.asarray(pad_rows(values, _NODES), dtype)
    return Law(
        problem=problem,
        foot=padded(graph.foot),
        value=padded(graph.value),
        speed=padded(function(graph.value)),
        potential=padded(cumulative(initial_of(problem, dtype), graph.foot)),
        flux=padded(flux),
        fan=jnp.asarray(pad_rows(np.append(graph.fan, False), _NODES)[:-1]),
        knots=padded(knots),
        knot_flux=padded(knot_flux),
        sign=_sign(table.values, graph, dtype),
    )


def _sign(speeds: np.ndarray, graph: Graph, dtype: jnp.dtype) -> float:
    """Which extremum of the potential is the entropy solution."""
    slack = 64 * float(jnp.finfo(dtype).eps)
    rise, change = np.diff(speeds, axis=1), np.diff(graph.value)
    tolerance = slack * max(float(np.abs(speeds).max()), 1e-300)
    noise = slack * max(float(np.abs(graph.value).max()), 1e-300)
    if (rise >= -tolerance).all() or (change <= noise).all():
        return 1.0
    if (rise <= tolerance).all() or (change >= -noise).all():
        return -1.0
    raise ValueError(
        "after_shock='entropy' needs a flux that is convex or concave, that is, a velocity that is monotone in u, or "
        "else an initial value that is monotone in x. Here the velocity rises and falls between "
        f"u={graph.value.min():.6g} and u={graph.value.max():.6g}, and so does the initial value on the domain: narrow "
        "its range to where the velocity is monotone, or the domain to where the initial value is"
    )


def flux_at(law: Law, u: Float[Array, "batch"]) -> Float[Array, "batch"]:
    """f(u), as the integral of the velocity from the least initial value."""
    cell = jnp.clip(jnp.searchsorted(law.knots, u, side="right") - 1, 0, law.knots.size - 2)
    return law.knot_flux[cell] + integral(lambda u: speed(law.problem, u), law.knots[cell], u)


def integral(
    function: Callable[[Array], Array], lower: Float[Array, "batch"], upper: Float[Array, "batch"]
) -> Float[Array, "batch"]:
    """The integral of a smooth function between two close ends."""
    points, weights = (jnp.asarray(values, lower.dtype) for values in gauss_legendre(4))
    width = upper - lower
    values = function((lower[:, None] + width[:, None] * points).reshape(-1)).reshape(-1, points.size)
    return width * (values @ weights)
