"""The initial value as a curve in the (x, u) plane, with a vertical piece at every discontinuity.

The method of characteristics moves every point of this curve on its own. A discontinuity is no exception once the
values between its two sides are part of the curve: they spread where the solution is a rarefaction, and are absorbed
at once where it is a shock.
"""

from collections.abc import Callable
from typing import NamedTuple

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from charax.pde._problem import AbstractProblem

PARTS = 4
"""Intervals of a cell. Its five points carry a polynomial of degree four."""
_CELLS = 512
_FAN_CELLS = 16
_MOST_CELLS = 8192
_BATCH = 1024
_TOLERANCE = 1e-7

Function = Callable[[np.ndarray], np.ndarray]
"""A function of one variable on the host, in float64 whatever it computes with."""


class Resolved(NamedTuple):
    """A function of one variable at five equidistant points of every cell."""

    points: Float[np.ndarray, "cells 5"]
    values: Float[np.ndarray, "cells 5"]
    jump: Bool[np.ndarray, "cells"]
    """Which cells are as narrow as the precision allows and still hold a change: a discontinuity."""


def resolve(function: Function, lower: float, upper: float, dtype: jnp.dtype, name: str) -> Resolved:
    """Divide an interval into cells in which a function is smooth, or which enclose a discontinuity.

    A cell is halved as long as the fourth difference of its five points is too large. That closes in on kinks until
    they do not matter, and on discontinuities until the precision is exhausted.
    """
    eps = float(jnp.finfo(dtype).eps)
    thinnest = 16 * eps * max(abs(lower), abs(upper))
    edges = np.linspace(lower, upper, _CELLS + 1).astype(dtype).astype(float)
    left, right = edges[:-1], edges[1:]
    done: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []
    count, tolerance = 0, None
    while left.size:
        points = (left[:, None] + (right - left)[:, None] * np.linspace(0, 1, PARTS + 1)).astype(dtype).astype(float)
        values = function(points.ravel()).reshape(points.shape)
        if not np.isfinite(values).all():
            where = points.ravel()[np.argmin(np.isfinite(values.ravel()))]
            raise ValueError(f"{name} is not finite at {where:.6g}: it must be on all of [{lower:.6g}, {upper:.6g}]")
        if tolerance is None:
            tolerance = max(_TOLERANCE * float(np.ptp(values)), 64 * eps * float(np.abs(values).max()))
        rough = np.abs(values @ np.array([1.0, -4.0, 6.0, -4.0, 1.0])) > tolerance
        wide = right - left > thinnest
        split = rough & wide
        done.append((points[~split], values[~split], (rough & ~wide)[~split]))
        count += int((~split).sum())
        if count + split.sum() > _MOST_CELLS:
            raise ValueError(f"{name} is too rough to be resolved by {_MOST_CELLS} cells: smooth it")
        middle = points[split, PARTS // 2]
        left, right = np.concatenate([left[split], middle]), np.concatenate([middle, right[split]])
    points, values, jump = (np.concatenate(parts) for parts in zip(*done, strict=True))
    order = np.argsort(points[:, 0], kind="stable")
    return Resolved(points[order], values[order], jump[order])


class Graph(NamedTuple):
    """Points of the initial curve in order, `PARTS` intervals to a cell."""

    foot: Float[np.ndarray, "nodes"]
    value: Float[np.ndarray, "nodes"]
    fan: Bool[np.ndarray, "intervals"]
    """Which intervals are part of a vertical piece, on which the value changes and the foot does not."""

    @property
    def jumps(self) -> list[tuple[int, int]]:
        """The first and the last node of every vertical piece."""
        change = np.diff(np.concatenate([[False], self.fan, [False]]).astype(int))
        return list(zip(np.flatnonzero(change > 0).tolist(), np.flatnonzero(change < 0).tolist(), strict=True))


def initial_graph(problem: AbstractProblem, dtype: jnp.dtype) -> Graph:
    """The initial value of a scalar problem on a line as a curve."""
    (lower, upper) = problem.domain[0]
    found = resolve(initial_of(problem, dtype), lower, upper, dtype, "initial(x)")
    copies = np.where(found.jump, _FAN_CELLS, 1)
    cell = np.repeat(np.arange(copies.size), copies)
    copy = np.arange(cell.size) - np.repeat(np.cumsum(copies) - copies, copies)
    share = (copy[:, None] + np.linspace(0, 1, PARTS + 1)) / _FAN_CELLS
    fan = found.jump[cell]

    def spread(values: np.ndarray) -> np.ndarray:
        rows = values[cell]
        straight = rows[:, :1] + share * (rows[:, -1:] - rows[:, :1])
        return np.where(fan[:, None], straight, rows)

    flat = lambda rows: np.append(rows[:, :-1].ravel(), rows[-1, -1])
    return Graph(flat(spread(found.points)), flat(spread(found.values)), np.repeat(fan, PARTS))


def in_batches(function: Callable[[Array], Array], dtype: jnp.dtype) -> Function:
    """A compiled function as one on the host, in calls of a single size, so that it is compiled once."""

    def call(values: np.ndarray) -> np.ndarray:
        fill = -values.size % _BATCH
        rows = np.concatenate([values, np.full(fill, values[-1])]).reshape(-1, _BATCH)
        out = [np.asarray(function(jnp.asarray(row, dtype)), float) for row in rows]
        return np.concatenate(out)[: values.size]

    return call


def initial_of(problem: AbstractProblem, dtype: jnp.dtype) -> Function:
    """The initial value on the host."""
    return in_batches(lambda x: _initial(problem, x), dtype)


def speed_of(problem: AbstractProblem, dtype: jnp.dtype) -> Function:
    """The velocity as a function of u alone, on the host."""
    return in_batches(lambda u: _speed(problem, u), dtype)


def speed(problem: AbstractProblem, u: Float[Array, "batch"]) -> Float[Array, "batch"]:
    """The velocity where it depends on u alone."""
    middle = sum(problem.domain[0]) / 2
    return problem.velocity(jnp.full((u.shape[0], 1), middle, u.dtype), jnp.zeros_like(u), u)[:, 0]


_speed = eqx.filter_jit(speed)


@eqx.filter_jit
def _initial(problem: AbstractProblem, x: Float[Array, "batch"]) -> Float[Array, "batch"]:
    return problem.initial(x[:, None])


@eqx.filter_jit
def _sample(problem: AbstractProblem, x: Array, t: Array, u: Array) -> tuple[Array, Array]:
    return problem.velocity(x[:, None], t, u)[:, 0], problem.source(x[:, None], t, u)


def is_homogeneous(problem: AbstractProblem, graph: Graph, end: float, dtype: jnp.dtype) -> bool:
    """Whether the velocity depends on u alone and there is no source, at samples all over the domain until `end`."""
    index = np.linspace(0, graph.value.size - 1, _BATCH).astype(int)
    number = np.arange(_BATCH)
    (lower, upper) = problem.domain[0]
    # Multiples of irrational numbers, so that the samples have no period.
    x = lower + (upper - lower) * np.modf(number * np.sqrt(2))[0]
    t = end * np.modf(number * np.sqrt(3))[0]
    rows = [jnp.asarray(values, dtype) for values in (x, t, graph.value[index])]
    velocity, source = (np.asarray(values, float) for values in _sample(problem, *rows))
    alone = speed_of(problem, dtype)(graph.value[index])
    slack = 1e3 * float(jnp.finfo(dtype).eps) * max(1.0, float(np.abs(alone).max()))
    return bool((np.abs(velocity - alone) <= slack).all() and (source == 0).all())


def gauss_legendre(count: int) -> tuple[np.ndarray, np.ndarray]:
    """Points and weights of a quadrature on [0, 1]."""
    points, weights = np.polynomial.legendre.leggauss(count)
    return (points + 1) / 2, weights / 2


def cumulative(function: Function, nodes: Float[np.ndarray, "nodes"]) -> Float[np.ndarray, "nodes"]:
    """The integral of a function from the first node to each of them."""
    points, weights = gauss_legendre(4)
    width = np.diff(nodes)
    values = function((nodes[:-1, None] + width[:, None] * points).ravel()).reshape(-1, points.size)
    return np.concatenate([[0.0], np.cumsum(width * (values @ weights))])


def pad_rows(values: np.ndarray, multiple: int) -> np.ndarray:
    """Repeat the last row until the number of rows is a multiple, so that few shapes are compiled."""
    return np.concatenate([values, np.repeat(values[-1:], -values.shape[0] % multiple, axis=0)])
