"""A table of characteristics from all over the domain: their positions and deformation at any time.

It is integrated once for a set of points, and gives each of them brackets for its root finder and a count of the
characteristics that meet there.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from charax.fields import Condition
from charax.pde._flow import Flow, Sensitivity, initial_sensitivity, linearized, value_shape
from charax.pde._problem import AbstractProblem
from charax.solve import Outcome, Solver

_TIMES = 65
_POINTS_ON_LINE = 512
_POINTS_IN_BOX = 640


def points_per_axis(d: int) -> int:
    return _POINTS_ON_LINE if d == 1 else max(3, int(_POINTS_IN_BOX ** (1 / d)))


def grid(box: Float[Array, "d 2"]) -> Float[Array, "feet d"]:
    """Foot points all over a box; on a line, in order."""
    axes = [jnp.linspace(lower, upper, points_per_axis(box.shape[0]), dtype=box.dtype) for lower, upper in box]
    return jnp.stack(jnp.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, box.shape[0])


class Table(eqx.Module):
    """Positions and deformation gradients of characteristics at equidistant times up to `end`."""

    feet: Float[Array, "feet d"]
    end: Float[Array, ""]
    x: Float[Array, "times feet d"]
    x_dot: Float[Array, "times feet d"]
    """The derivative of x with respect to t / end, as for the deformation."""
    deformation: Float[Array, "times feet d d"]
    """∂x/∂ξ"""
    deformation_dot: Float[Array, "times feet d d"]

    def at(self, t: Float[Array, "points"]) -> tuple[Float[Array, "points feet d"], Float[Array, "points feet d d"]]:
        """x and ∂x/∂ξ of every foot point at each of the times, by cubic Hermite interpolation."""
        cell, weights = self._hermite(t)

        def interpolate(values: Array, derivatives: Array) -> Array:
            return _weighted_sum(weights, (values[cell], values[cell + 1], derivatives[cell], derivatives[cell + 1]))

        return interpolate(self.x, self.x_dot), interpolate(self.deformation, self.deformation_dot)

    def determinant_at(self, t: Float[Array, "feet"]) -> Float[Array, "feet"]:
        """det ∂x/∂ξ of every foot point, each at its own time."""
        cell, weights = self._hermite(t)
        feet = jnp.arange(cell.shape[0])
        values, derivatives = self.deformation, self.deformation_dot
        corners = (values[cell, feet], values[cell + 1, feet], derivatives[cell, feet], derivatives[cell + 1, feet])
        return determinant(_weighted_sum(weights, corners))

    def _hermite(self, t: Float[Array, "points"]) -> tuple[Int[Array, "points"], tuple[Array, ...]]:
        """The cell of the table around each time, and the weights of both its values and both its derivatives."""
        cells = self.x.shape[0] - 1
        scaled = cells * jnp.clip(jnp.where(self.end > 0, t / jnp.where(self.end > 0, self.end, 1), 0), 0, 1)
        cell = jnp.clip(scaled.astype(int), 0, cells - 1)
        theta = scaled - cell
        return cell, (
            (1 + 2 * theta) * (1 - theta) ** 2,
            theta**2 * (3 - 2 * theta),
            theta * (1 - theta) ** 2 / cells,
            theta**2 * (theta - 1) / cells,
        )

    def first_crossing(self) -> tuple[Float[Array, "feet"], Float[Array, "feet"]]:
        """For every foot point, the times between which det ∂x/∂ξ first falls to 0; infinity if it does not."""
        crossed = determinant(self.deformation) <= 0
        first = jnp.argmax(crossed, axis=0)
        times = self.end * jnp.linspace(0, 1, self.x.shape[0], dtype=self.x.dtype)
        never = ~crossed.any(axis=0)
        time = lambda index: jnp.where(never, jnp.inf, times[index])
        return time(jnp.maximum(first - 1, 0)), time(first)


def _weighted_sum(weights: tuple[Array, ...], corners: tuple[Array, ...]) -> Array:
    columns = [weight.reshape(-1, *(1,) * (corners[0].ndim - 1)) for weight in weights]
    return sum((w * c for w, c in zip(columns, corners, strict=True)), jnp.zeros((), weights[0].dtype))


def determinant(matrix: Float[Array, "*points d d"]) -> Float[Array, "*points"]:
    return matrix[..., 0, 0] if matrix.shape[-1] == 1 else jnp.linalg.det(matrix)


def integrate_table(
    problem: AbstractProblem, feet: Float[Array, "feet d"], end: Float[Array, ""], solver: Solver
) -> Table:
    """Integrate characteristics from all foot points to `end`; NaN from where one could not be integrated."""
    flow, shape = Flow(problem, linearized), value_shape(problem, feet.dtype)
    fractions = jnp.linspace(0, 1, _TIMES, dtype=feet.dtype)
    ends = jnp.full(feet.shape[:1], end, feet.dtype)
    solution = solver.solve(flow, initial_sensitivity(problem, feet), x0=feet, context=ends, at=fractions)
    assert solution.characteristic is not None
    assert solution.trajectory is not None
    derivatives = jax.vmap(lambda s, x, u: flow(s, x, u, Condition(context=ends)))
    x_dot, state_dot = derivatives(fractions, solution.characteristic, solution.trajectory)
    unpack = jax.vmap(lambda state: Sensitivity.unpack(state, shape, problem.dim).dx)
    integrated = (solution.outcome == Outcome.SUCCESS) | jnp.isfinite(solution.trajectory).all(axis=-1)
    mask = lambda path: jnp.where(integrated.reshape(*integrated.shape, *(1,) * (path.ndim - 2)), path, jnp.nan)
    return Table(
        feet,
        jnp.asarray(end, feet.dtype),
        *map(mask, (solution.characteristic, x_dot, unpack(solution.trajectory), unpack(state_dot))),
    )


def guess_foot_points(table: Table, x: Float[Array, "points d"], t: Float[Array, "points"]) -> Float[Array, "points d"]:
    """A first guess of the foot points in a box: a linear step from the nearest characteristic of the table."""
    position, deformation = table.at(t)
    distance = jnp.sum((position - x[:, None]) ** 2, axis=-1)
    nearest = jnp.nanargmin(jnp.where(jnp.isfinite(distance), distance, jnp.inf), axis=1)
    select = lambda values: values[jnp.arange(x.shape[0]), nearest]
    step = jnp.linalg.solve(select(deformation), (x - select(position))[..., None])[..., 0]
    return table.feet[nearest] + jnp.where(jnp.isfinite(step), step, 0)
