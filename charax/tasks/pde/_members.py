"""Equations of one structure at samples, several at once: one vmapped program for single models and for ensembles.

The program takes `BLOCKS` blocks, each of them the parameters of a model and `ROWS` samples. The blocks of a single
model are parts of its samples; those of an ensemble belong to its members. So one shape, which is compiled once, serves
ensembles of any size and samples of any number, and a member that has converged takes no part any more.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Bool, Float

from charax.data import SolutionSamples
from charax.models import EquationRegressor
from charax.solve import Solver
from charax.tasks.pde._apply import compile_solves, model_at
from charax.train import padded_batches
from charax.train._precision import widen

BLOCKS, ROWS = 8, 64
"""Compiling takes longer than solving, so that all callers share one shape."""

_Arrays = tuple[Array, ...]
_Rows = tuple[np.ndarray, np.ndarray, np.ndarray]
"""Positions, times and values, with the blocks in the first axis."""


class Member(NamedTuple):
    """All parameters of a model, and where it is evaluated."""

    vector: Float[np.ndarray, "parameters"]
    samples: SolutionSamples


class Values(NamedTuple):
    """A model at points."""

    u: Float[np.ndarray, "points n"]
    found: Bool[np.ndarray, "points"]
    """Whether a characteristic leads there."""
    foot_point: Float[np.ndarray, "points d"]


def ravel(model: EquationRegressor) -> Float[np.ndarray, "parameters"]:
    """All parameters as one vector."""
    return np.asarray(ravel_pytree(eqx.filter(model, eqx.is_inexact_array))[0])


def unravel(vector: np.ndarray, like: EquationRegressor) -> EquationRegressor:
    """The model with these parameters."""
    return _with_parameters(jnp.asarray(vector, _dtype(like)), like)


def evaluate_members(like: EquationRegressor, members: Sequence[Member], solver: Solver) -> list[Values]:
    """The values of models with the structure of one, each at its own points."""
    parts: list[list[tuple[np.ndarray, ...]]] = [[] for _ in members]
    for which, out in _in_blocks(like, lambda vectors, rows: _evaluate(like, vectors, rows, solver), members):
        parts[which].append(out)
    return [Values(*map(np.concatenate, zip(*pieces, strict=True))) for pieces in parts]


def evaluate_model(model: EquationRegressor, points: Float[np.ndarray, "points dt"], solver: Solver) -> Values:
    """The values of one model at points (x, t)."""
    points = np.asarray(points)
    samples = SolutionSamples(points[:, :-1], points[:, -1], np.zeros((len(points), model.scaling.values), np.float32))
    return evaluate_members(model, [Member(ravel(model), samples)], solver)[0]


def linearize_members(
    like: EquationRegressor, members: Sequence[Member], solver: Solver
) -> Iterator[tuple[int, tuple[np.ndarray, ...]]]:
    """The Jacobian of the residuals by all parameters, the residuals, and which have a characteristic.

    They come in pieces of some rows of one member each, in the order of the rows, with the index of the member: all
    Jacobians at once would need much memory.
    """
    return _in_blocks(like, lambda vectors, rows: _linearize(like, vectors, rows, solver), members)


def _in_blocks(
    like: EquationRegressor, function: Callable[[np.ndarray, _Rows], _Arrays], members: Sequence[Member]
) -> Iterator[tuple[int, tuple[np.ndarray, ...]]]:
    blocks = [
        (which, rows) for which, member in enumerate(members) for rows in padded_batches(len(member.samples.t), ROWS)
    ]
    left = [len(member.samples.t) for member in members]

    def compute(part: list[tuple[int, np.ndarray]]) -> _Arrays:
        full = [*part, *([part[0]] * (BLOCKS - len(part)))]
        taken = [members[which].samples.take(rows) for which, rows in full]
        vectors = np.stack([members[which].vector for which, _ in full]).astype(_dtype(like))
        return function(vectors, tuple(np.stack(column) for column in zip(*taken, strict=True)))  # pyright: ignore[reportArgumentType]

    parts = [blocks[start : start + BLOCKS] for start in range(0, len(blocks), BLOCKS)]
    ahead = compute(parts[0]) if parts else ()
    for part, after in zip(parts, [*parts[1:], None], strict=True):
        # The next blocks are computed while the caller uses these.
        out, ahead = ahead, compute(after) if after else ()
        arrays = [np.asarray(each) for each in out]
        owners = [which for which, _ in part]
        for which in sorted(set(owners)):
            first, count = owners.index(which), owners.count(which)
            joined = [each[first : first + count].reshape(-1, *each.shape[2:]) for each in arrays]
            kept = min(left[which], count * ROWS)
            left[which] -= kept
            yield which, tuple(each[:kept] for each in joined)


def _dtype(like: EquationRegressor) -> np.dtype:
    leaves = jax.tree.leaves(eqx.filter(like, eqx.is_inexact_array))
    return leaves[0].dtype if leaves else np.dtype(np.float32)  # an equation that is known has no parameters


def _with_parameters(vector: Array, like: EquationRegressor) -> EquationRegressor:
    params, static = eqx.partition(like, eqx.is_inexact_array)
    return eqx.combine(ravel_pytree(params)[1](vector), static)


@compile_solves
def _evaluate(like: EquationRegressor, vectors: Array, rows: tuple[Array, Array, Array], solver: Solver) -> _Arrays:
    def at(vector: Array, x: Array, t: Array) -> _Arrays:
        return model_at(_with_parameters(vector, like), jnp.concatenate([x, t[:, None]], axis=1), solver)[1:]

    return jax.vmap(at)(vectors, *rows[:2])


@compile_solves
def _linearize(like: EquationRegressor, vectors: Array, rows: tuple[Array, Array, Array], solver: Solver) -> _Arrays:
    def residual(vector: Array, x: Array, t: Array, u: Array) -> tuple[Array, tuple[Array, Array]]:
        out = _with_parameters(vector, like)(x[None], t[None], solver=solver)
        error = (out.u[0] - u) / jnp.asarray(like.scaling.value_scale, u.dtype)
        # A point without a characteristic has no gradient; the others are fitted without it.
        error = jnp.where(out.found, error, 0)
        return error, (error, out.found[0])

    # One gradient per number of each row.
    of_rows = jax.vmap(jax.jacrev(residual, has_aux=True), in_axes=(None, 0, 0, 0))
    jacobian, (error, found) = jax.vmap(of_rows)(vectors, *widen(rows))
    return jacobian, error, found
