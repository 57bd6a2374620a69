"""Any homeomorphism is the solution map of a C-NODE (paper, section 4.2).

The paper's construction writes ∂u/∂x = h(u0), a Jacobian that reads u0. The same field with the roles exchanged keeps
the Jacobian constant: dx/ds = (h(u0), u0) in 2n dimensions and ∂u/∂x = (I, −I), so that du/ds = h(u0) − u0. It reads
u0, so it represents a map and not a density.
"""

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from charax.fields import CharacteristicField, Condition, FunctionJacobian, FunctionVelocity
from charax.plotting import C_NODE, EXACT, save_figure
from charax.solve import Solver

Map = Callable[[Float[Array, "batch n"]], Float[Array, "batch n"]]


class Homeomorphism(NamedTuple):
    """A continuous bijection of Rⁿ with a continuous inverse."""

    dimension: int
    """The dimension n."""
    forward: Map
    """The map h."""
    inverse: Map
    """Its inverse."""


def _twist(u: Array, turn: float) -> Array:
    """Rotate the plane by an angle that grows with the radius."""
    radius = jnp.sqrt(jnp.sum(u**2, axis=-1) + 1e-12)
    cos, sin = jnp.cos(turn * radius), jnp.sin(turn * radius)
    return jnp.stack([cos * u[:, 0] - sin * u[:, 1], sin * u[:, 0] + cos * u[:, 1]], axis=-1)


MAPS: Mapping[str, Homeomorphism] = MappingProxyType(
    {
        "stretch": Homeomorphism(1, lambda u: jnp.sinh(2 * u), lambda u: jnp.arcsinh(u) / 2),
        "reversal": Homeomorphism(1, lambda u: -jnp.sinh(2 * u), lambda u: -jnp.arcsinh(u) / 2),
        "twist": Homeomorphism(2, lambda u: _twist(u, 2.0), lambda u: _twist(u, -2.0)),
    }
)


class Trajectories(NamedTuple):
    """The trajectories of some points to their images."""

    s: Float[Array, "points"]
    """Where the trajectories are evaluated."""
    u: Float[Array, "points batch n"]
    """The states there."""


class Homeomorphisms(NamedTuple):
    """The trajectories of all maps, and the largest errors."""

    trajectories: dict[str, Trajectories]
    """By the name of the map."""
    forward_error: float
    """Largest distance of a final state from h(u0)."""
    inverse_error: float
    """Largest distance from u0 after the inverse, computed in both ways."""


def field_of(homeomorphism: Map, dimension: int) -> CharacteristicField:
    """The C-NODE whose trajectory from u0 ends at h(u0)."""

    def velocity(s, x, u, z: Condition) -> Array:
        assert z.u0 is not None
        return jnp.concatenate([homeomorphism(z.u0), z.u0], axis=-1)

    def jacobian(x, u) -> Array:
        identity = jnp.eye(dimension, dtype=u.dtype)
        return jnp.broadcast_to(jnp.concatenate([identity, -identity]), (u.shape[0], 2 * dimension, dimension))

    k = 2 * dimension
    return CharacteristicField(FunctionVelocity(velocity, k, reads=("u0",)), FunctionJacobian(jacobian, k))


def _points(dimension: int) -> Float[Array, "batch n"]:
    """Points on a line, or on the spokes of a wheel, one spoke after another."""
    if dimension == 1:
        return jnp.linspace(-1, 1, 33)[:, None]
    angle, radius = jnp.meshgrid(jnp.arange(8) * jnp.pi / 4, jnp.linspace(0.1, 1, 12), indexing="ij")
    return jnp.stack([radius * jnp.cos(angle), radius * jnp.sin(angle)], axis=-1).reshape(-1, 2)


@partial(jax.jit, static_argnums=0)
def _solve(homeomorphism: Homeomorphism, u0: Float[Array, "batch n"], s: Array) -> tuple[Array, Array, Array]:
    """The trajectories of a map, the error of their ends, and the error of the inverse."""
    # du/ds is constant along a trajectory, so that Euler's method is exact.
    solver, (dimension, forward, inverse) = Solver("euler", steps=10), homeomorphism
    field = field_of(forward, dimension)
    solution = solver.solve(field, u0, at=s)
    backward = solver.solve(field, solution.u, s0=1.0, s1=0.0, conditioned_on=u0).u
    inverted = solver.solve(field_of(inverse, dimension), solution.u).u
    assert solution.trajectory is not None
    largest = lambda difference: jnp.max(jnp.abs(difference))
    return solution.trajectory, largest(solution.u - forward(u0)), largest(jnp.stack([backward, inverted]) - u0)


def run() -> Homeomorphisms:
    """Integrate every map forward, and invert it.

    The inverse is computed in two ways: by integrating the same field backward, which is still given u0, and by the
    field of the inverse map, which is given h(u0) only.
    """
    s = jnp.linspace(0, 1, 41)
    solved = {name: _solve(one, _points(one.dimension), s) for name, one in MAPS.items()}
    return Homeomorphisms(
        trajectories={name: Trajectories(s, u) for name, (u, _, _) in solved.items()},
        forward_error=max(float(error) for _, error, _ in solved.values()),
        inverse_error=max(float(error) for _, _, error in solved.values()),
    )


def plot(result: Homeomorphisms, path: Path) -> Path:
    """Plot the trajectories: straight lines in one dimension, and the plane at three times."""
    with save_figure(path, width=9.6, height=3.1) as figure:
        for axis, (name, (s, u)) in zip(figure.subplots(1, len(MAPS)), result.trajectories.items(), strict=True):
            if u.shape[-1] == 1:
                axis.plot(s, u[..., 0], color=C_NODE, linewidth=0.9)
                axis.set_xlabel("s")
                axis.set_ylabel("u(s)")
            else:
                for state, colour, label in (
                    (u[0], EXACT, "s = 0"),
                    (u[20], "#8fb3dc", "s = ½"),
                    (u[-1], C_NODE, "s = 1"),
                ):
                    spokes = np.moveaxis(np.reshape(state, (8, -1, 2)), 0, 1)
                    lines = axis.plot(spokes[..., 0], spokes[..., 1], ".-", color=colour, linewidth=1, markersize=3)
                    lines[0].set_label(label)
                axis.set_aspect("equal")
                axis.legend(loc="upper left", bbox_to_anchor=(1, 1), fontsize="small")
            axis.set_title(name)
        figure.suptitle(
            f"largest error: h {result.forward_error:.1e}, its inverse {result.inverse_error:.1e}", fontsize=10
        )
    return path
