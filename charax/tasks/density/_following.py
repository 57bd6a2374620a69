"""Many points on their way along a flow: one small program for all figures of a run."""

import itertools
from typing import NamedTuple

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from charax.fields import AbstractField, Scalar
from charax.models.flows import ContinuousFlow
from charax.models.flows._path import DensityField
from charax.solve import Solver
from charax.tasks.density._options import vector_options
from charax.train import compile_with, padded_batches

_BATCH = 384
"""Points that are followed at once. Not more: a solve has one step size for all of them."""


class FollowedPoints(NamedTuple):
    """States and integrals at fractions of the end time of a flow, from the first of them on."""

    u: Float[np.ndarray, "fractions n d"]
    """The states."""
    x: Float[np.ndarray, "fractions n k"] | None
    """The characteristics; None for a plain field."""
    log_det: Float[np.ndarray, "fractions n"] | None
    """The integrals of the trace; None unless they are asked for."""


def follow_points(
    flow: ContinuousFlow,
    points: Float[np.ndarray, "n d"],
    solver: Solver,
    fractions: Float[np.ndarray, "fractions"],
    context: Float[Array, "n columns"] | None = None,
    *,
    with_density: bool = False,
) -> FollowedPoints:
    """Follow points from fraction to fraction of the end time, forward or backward.

    The program is compiled once for any number of points and any fractions, but once more `with_density`.

    Args:
        flow: The flow.
        points: The states at the first fraction.
        solver: How to integrate from one fraction to the next.
        fractions: The fractions of the end time; 0 is the data, 1 the base distribution.
        context: One row per point for a field that reads it.
        with_density: Whether to integrate the trace, too.

    Returns:
        The points; NaN where a solve failed.
    """
    field = DensityField(flow.field) if with_density else flow.field
    found = [
        _follow_batch(flow, field, points[rows], solver, fractions, None if context is None else context[rows])
        for rows in padded_batches(len(points), _BATCH)
    ]
    u, x = (np.concatenate(parts, axis=1)[:, : len(points)] for parts in zip(*found, strict=True))
    log_det, x = (x[..., 0], x[..., 1:]) if with_density else (None, x)
    return FollowedPoints(u, x if x.shape[-1] else None, log_det)


def _follow_batch(
    flow: ContinuousFlow,
    field: AbstractField,
    points: np.ndarray,
    solver: Solver,
    fractions: np.ndarray,
    context: Array | None,
) -> tuple[np.ndarray, np.ndarray]:
    path = [(points, np.zeros((len(points), field.characteristic_dim), np.float32))]
    for pair in itertools.pairwise(np.asarray(fractions, np.float32)):
        # NumPy's, since arrays that are placed on the devices of the weights would need a program of their own.
        u, x = _between(field, flow.end_time, solver, pair, *path[-1], context)
        path.append((np.asarray(u), np.asarray(x)))
    u, x = zip(*path, strict=True)
    return np.stack(u), np.stack(x)


@compile_with(vector_options)
def _between(
    field: AbstractField,
    end_time: Scalar,
    solver: Solver,
    fractions: tuple[Scalar, Scalar],
    u: Array | np.ndarray,
    x: Array | np.ndarray,
    context: Array | None,
) -> tuple[Array, Array]:
    s0, s1 = (fraction * end_time for fraction in fractions)
    start, x0 = jnp.asarray(u), jnp.asarray(x)
    learned = field.characteristic_dim > 0
    solution = solver.solve(
        field, start, s0=s0, s1=s1, x0=x0 if learned else None, context=context, with_characteristic=learned
    )
    return solution.u, x0 if solution.x is None else solution.x


@eqx.filter_jit
def _trajectories(
    flow: ContinuousFlow, u: Array, solver: Solver, fractions: Array, context: Array | None
) -> tuple[Array, Array | None]:
    at, learned = fractions * flow.end_time, flow.field.characteristic_dim > 0
    solution = solver.solve(flow.field, u, s1=flow.end_time, at=at, context=context, with_characteristic=learned)
    assert solution.trajectory is not None
    return solution.trajectory, solution.characteristic


def trajectories_of(
    flow: ContinuousFlow,
    data: Float[np.ndarray, "n d"],
    solver: Solver,
    fractions: Float[np.ndarray, "points"],
    context: Float[Array, "n columns"] | None = None,
    *,
    with_density: bool = False,
) -> tuple[Float[np.ndarray, "points n d"], Float[np.ndarray, "points n k"] | None]:
    """u(s) and x(s) of some data at fractions of the end time, the first of which is 0; by the program of
    `follow_points` with or without densities."""
    if solver.steps is not None:  # its steps are the trajectory, however many points are asked for
        u, x = _trajectories(flow, jnp.asarray(data), solver, jnp.asarray(fractions, jnp.float32), context)
        return np.asarray(u), None if x is None else np.asarray(x)
    found = follow_points(flow, data, solver, fractions, context, with_density=with_density)
    return found.u, found.x
