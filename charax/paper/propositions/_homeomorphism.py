"""Any homeomorphism is the end of a C-NODE (paper, section 4.2).

The paper's construction writes ∂u/∂x = h(u0), a Jacobian that reads u0. The same field with the roles
exchanged keeps the Jacobian constant: dx/ds = (h(u0), u0) in 2n directions and ∂u/∂x = (I, −I), so that
du/ds = h(u0) − u0. It reads u0, so it gives a map and not a density.
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

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
    forward: Map
    inverse: Map


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


class Course(NamedTuple):
    """Where some points are on the way to their image."""

    s: Float[Array, "points"]
    u: Float[Array, "points batch n"]


class Homeomorphisms(NamedTuple):
    """The courses of all maps, and the largest errors over them."""

    courses: dict[str, Course]
    forward_error: float
    inverse_error: float


def field_of(homeomorphism: Map, dimension: int) -> CharacteristicField:
    """The C-NODE whose walk from u0 ends at h(u0)."""

    def velocity(s, x, u, z: Condition) -> Array:
        assert z.u0 is not None
        return jnp.concatenate([homeomorphism(z.u0), z.u0], axis=-1)

    def jacobian(x, u) -> Array:
        identity = jnp.eye(dimension, dtype=u.dtype)
        return jnp.broadcast_to(jnp.concatenate([identity, -identity]), (u.shape[0], 2 * dimension, dimension))

    k = 2 * dimension
    return CharacteristicField(FunctionVelocity(velocity, k, reads=("u0",)), FunctionJacobian(jacobian, k))


def _points(dimension: int) -> Float[Array, "batch n"]:
    """A line, or the spokes of a wheel, one after the other."""
    if dimension == 1:
        return jnp.linspace(-1, 1, 33)[:, None]
    angle, radius = jnp.meshgrid(jnp.arange(8) * jnp.pi / 4, jnp.linspace(0.1, 1, 12), indexing="ij")
    return jnp.stack([radius * jnp.cos(angle), radius * jnp.sin(angle)], axis=-1).reshape(-1, 2)


def run() -> Homeomorphisms:
    """Walk there and back for every map.

    "Back" is measured twice: along the same field, which still knows u0, and along the field of the
    inverse map, which knows only h(u0).
    """
    solver, s = Solver(rtol=1e-6, atol=1e-6), jnp.linspace(0, 1, 41)
    courses: dict[str, Course] = {}
    forward, inverse = [], []
    for name, (dimension, there, back) in MAPS.items():
        u0 = _points(dimension)
        field, field_back = field_of(there, dimension), field_of(back, dimension)
        solution = solver.solve(field, u0, at=s)
        retraced = solver.solve(field, solution.u, s0=1.0, s1=0.0, conditioned_on=u0).u
        inverted = solver.solve(field_back, solution.u).u
        assert solution.trajectory is not None
        courses[name] = Course(s, solution.trajectory)
        forward.append(jnp.max(jnp.abs(solution.u - there(u0))))
        inverse.append(jnp.max(jnp.abs(jnp.stack([retraced, inverted]) - u0)))
    return Homeomorphisms(courses, float(max(forward)), float(max(inverse)))


def plot(result: Homeomorphisms, path: Path) -> Path:
    """Straight lines in one dimension, and a plane that is twisted."""
    with save_figure(path, width=9.6, height=3.1) as figure:
        for axis, (name, (s, u)) in zip(figure.subplots(1, len(result.courses)), result.courses.items(), strict=True):
            if u.shape[-1] == 1:
                axis.plot(s, u[..., 0], color=C_NODE, linewidth=0.9)
                axis.set_xlabel("s")
                axis.set_ylabel("u(s)")
            else:
                for course, colour, when in (
                    (u[0], EXACT, "s = 0"),
                    (u[20], "#8fb3dc", "s = ½"),
                    (u[-1], C_NODE, "s = 1"),
                ):
                    spokes = np.moveaxis(np.reshape(course, (8, -1, 2)), 0, 1)
                    lines = axis.plot(spokes[..., 0], spokes[..., 1], ".-", color=colour, linewidth=1, markersize=3)
                    lines[0].set_label(when)
                axis.set_aspect("equal")
                axis.legend(loc="upper left", bbox_to_anchor=(1, 1), fontsize="small")
            axis.set_title(name)
        figure.suptitle(f"largest error {result.forward_error:.1e} there, {result.inverse_error:.1e} back", fontsize=10)
    return path
