"""The initial curve moved along its characteristics: X(t; σ) and u(t; σ), interpolated in a table."""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Bool, Float, Int

from charax.pde._entropy_graph import PARTS, Graph, gauss_legendre, pad_rows
from charax.pde._flow import Flow
from charax.pde._problem import AbstractProblem
from charax.solve import Outcome, Solver

_ROWS = 1024
_TO_COEFFICIENTS = np.linalg.inv(np.vander(np.arange(PARTS + 1.0), increasing=True)).T
_REFINEMENTS = 5


class Level(NamedTuple):
    """The curve at one time."""

    t: float
    x: Float[np.ndarray, "nodes"]
    u: Float[np.ndarray, "nodes"]


class CurvePoints(NamedTuple):
    """Points of the curve, and u there."""

    interval: Int[np.ndarray, "points"]
    coordinate: Float[np.ndarray, "points"]
    """The position in the cell of the interval, from 0 to `PARTS`."""
    u: Float[np.ndarray, "points"]
    slope: Float[np.ndarray, "points"]
    """∂u/∂x along the curve."""


class Curve(NamedTuple):
    """Positions and values of characteristics with their time derivatives, at equidistant times."""

    end: float
    x: Float[np.ndarray, "times nodes"]
    u: Float[np.ndarray, "times nodes"]
    dx: Float[np.ndarray, "times nodes"]
    """∂x/∂t"""
    du: Float[np.ndarray, "times nodes"]
    """∂u/∂t"""

    def at(self, t: float) -> Level:
        """The whole curve at one time."""
        nodes = np.arange(self.x.shape[1])
        times = np.full(nodes.shape, t)
        return Level(float(t), self.position(times, nodes), self._value(times, nodes))

    def position(self, t: np.ndarray, node: np.ndarray) -> np.ndarray:
        """The positions of nodes at any times, in arrays of the same shape."""
        return self._interpolate(self.x, self.dx, t, node)

    def _value(self, t: np.ndarray, node: np.ndarray) -> np.ndarray:
        return self._interpolate(self.u, self.du, t, node)

    def _interpolate(self, values: np.ndarray, derivatives: np.ndarray, t: np.ndarray, node: np.ndarray) -> np.ndarray:
        steps = values.shape[0] - 1
        share = np.clip(t / self.end, 0, 1) * steps
        row = np.minimum(share.astype(int), steps - 1)
        width = self.end / steps
        slopes = width * derivatives[row, node], width * derivatives[row + 1, node]
        return hermite(share - row, values[row, node], values[row + 1, node], *slopes)

    def invert(
        self, x: Float[np.ndarray, "points"], t: Float[np.ndarray, "points"], interval: Int[np.ndarray, "points"]
    ) -> CurvePoints:
        """The point of each interval at position x, each at its own time."""
        nodes = _cell_nodes(interval)
        times = np.broadcast_to(t[:, None], nodes.shape)
        return _invert(self.position(times, nodes), self._value(times, nodes), x, interval)


def hermite(share, left, right, left_slope, right_slope):
    """The cubic with these values and slopes at both ends of an interval of width 1."""
    rise = right - left
    bend, twist = 3 * rise - 2 * left_slope - right_slope, left_slope + right_slope - 2 * rise
    return left + share * (left_slope + share * (bend + share * twist))


_DEGREES = np.arange(PARTS + 1)
_cell_nodes = lambda interval: PARTS * (interval // PARTS)[:, None] + _DEGREES
_evaluate = lambda coefficients, z: (z[..., None] ** _DEGREES * coefficients).sum(axis=-1)
_differentiate = lambda coefficients: np.roll(coefficients * _DEGREES, -1, axis=-1)


def _invert(cell_x: np.ndarray, cell_u: np.ndarray, x: np.ndarray, interval: np.ndarray) -> CurvePoints:
    """The point of an interval at position x, from the nodes of its cell, one row per point."""
    part, rows = interval % PARTS, np.arange(x.size)
    left, right = cell_x[rows, part], cell_x[rows, part + 1]
    x_of, u_of = cell_x @ _TO_COEFFICIENTS, cell_u @ _TO_COEFFICIENTS
    dx_of, du_of = _differentiate(x_of), _differentiate(u_of)
    with np.errstate(divide="ignore", invalid="ignore"):
        z = part + np.clip(np.where(right != left, (x - left) / (right - left), 0.5), 0, 1)
        # Inverse interpolation: the polynomial is nearly linear, so a few corrections reach rounding errors.
        for _ in range(_REFINEMENTS):
            derivative = _evaluate(dx_of, z)
            corrected = np.clip(z - (_evaluate(x_of, z) - x) / derivative, part, part + 1)
            z = np.where(derivative > 0, corrected, z)
        return CurvePoints(interval, z, _evaluate(u_of, z), _evaluate(du_of, z) / _evaluate(dx_of, z))


def invert_level(level: Level, x: np.ndarray, interval: np.ndarray) -> CurvePoints:
    """The point of each interval at position x, at the time of the level."""
    nodes = _cell_nodes(interval)
    return _invert(level.x[nodes], level.u[nodes], x, interval)


def area(level: Level, ends: CurvePoints) -> float:
    """∫u dX along the curve between two points of it."""
    interval = np.arange(ends.interval[0], ends.interval[1] + 1)
    part = (interval % PARTS).astype(float)
    lower, upper = part.copy(), part + 1
    lower[0], upper[-1] = ends.coordinate
    points, weights = gauss_legendre(PARTS)
    z = lower[:, None] + (upper - lower)[:, None] * points
    nodes = _cell_nodes(interval)
    u_of, x_of = ((values[nodes] @ _TO_COEFFICIENTS)[:, None] for values in (level.u, level.x))
    u, dx = _evaluate(u_of, z), _evaluate(_differentiate(x_of), z)
    return float(np.sum((upper - lower)[:, None] * weights * u * dx))


@eqx.filter_jit
def _trace(problem: AbstractProblem, foot: Array, value: Array, end: Array, count: int, solver: Solver):
    ends = jnp.full(foot.shape, end, foot.dtype)
    fractions = jnp.linspace(0, 1, count, dtype=foot.dtype)
    solution = solver.solve(Flow(problem), value, x0=foot[:, None], context=ends, at=fractions)
    x, u = solution.characteristic, solution.trajectory
    assert x is not None
    assert u is not None
    derivatives = jax.vmap(lambda s, x, u: (problem.velocity(x, s * ends, u), problem.source(x, s * ends, u)))
    dx, du = derivatives(fractions, x, u)
    known = (solution.outcome == Outcome.SUCCESS) | jnp.isfinite(u)
    return tuple(jnp.where(known, values, jnp.nan) for values in (x[..., 0], u, dx[..., 0], du))


def trace_curve(
    problem: AbstractProblem, graph: Graph, end: float, count: int, solver: Solver, dtype: jnp.dtype
) -> Curve:
    """Integrate the characteristics from all nodes; NaN from where one could not be integrated."""
    foot, value = (jnp.asarray(pad_rows(values, _ROWS), dtype) for values in (graph.foot, graph.value))
    columns = _trace(problem, foot, value, jnp.asarray(end, dtype), count, solver)
    return Curve(end, *(np.asarray(values, float)[:, : graph.foot.size] for values in columns))


@eqx.filter_jit
def tracking_gradient(
    problem: AbstractProblem,
    x: Float[Array, "points"],
    t: Float[Array, "points"],
    start: tuple[Float[Array, "points"], Float[Array, "points"]],
    slope: Float[Array, "points"],
    fan: Bool[Array, "points"],
    solver: Solver,
) -> Float[Array, "points"]:
    """Zero, with the derivative of u at fixed x: what a characteristic carries, less ∂u/∂x times its displacement."""
    foot, value = start
    u0 = jnp.where(fan, value, problem.initial(foot[:, None]))
    solution = solver.solve(Flow(problem), u0, x0=foot[:, None], context=t)
    assert solution.x is not None
    u = solution.u + slope * (x - solution.x[:, 0])
    return u - lax.stop_gradient(u)
