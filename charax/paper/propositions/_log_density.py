"""The log-density formula, and where it does not hold (paper, section 4.2).

    log|det ∂u(1)/∂u(0)| = ∫ tr(∂/∂u [J(u) · a(s, u)]) ds

holds when the field is a function of (s, u). If the velocity also reads u0, the map u(0) ↦ u(1) is not the flow of an
ODE in u, and the integral is not its log-determinant: such a field must not be used as a flow.
"""

from pathlib import Path
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from charax.fields import (
    AbstractField,
    CharacteristicField,
    Condition,
    NetworkVelocity,
    Read,
    SeparateJacobian,
    Time,
    check_flow_field,
)
from charax.nn import mlp
from charax.plotting import C_NODE, EXACT, NODE, save_figure
from charax.solve import Solver

DIMENSION, DIRECTIONS = 5, 3


class LogDensity(NamedTuple):
    """Log-determinants by autodiff and by the formula, for a field that may be a flow and one that may not."""

    exact: Float[np.ndarray, "batch"]
    """By autodiff, for a field of (s, u)."""
    integrated: Float[np.ndarray, "batch"]
    """By the formula, for the same field."""
    exact_when_conditioned: Float[np.ndarray, "batch"]
    """By autodiff, for a velocity that reads u0."""
    integrated_when_conditioned: Float[np.ndarray, "batch"]
    """By the formula, for a velocity that reads u0."""
    error: float
    """Largest difference for the field of (s, u)."""
    error_when_conditioned: float
    """Largest difference for the velocity that reads u0."""
    refusal: str
    """The message with which the second field is refused as a flow."""


class _WithTrace(AbstractField):
    """A field whose state has one more component: the integral of the trace."""

    field: AbstractField

    @property
    def characteristic_dim(self) -> int:
        return 0

    @property
    def reads(self) -> frozenset[Read]:
        return self.field.reads

    def __call__(
        self, s: Time, x: Float[Array, "batch k"] | None, u: Float[Array, "batch n"], z: Condition
    ) -> tuple[None, Float[Array, "batch n"]]:
        value = u[:, :-1]
        # u0 has the additional component, too.
        z = Condition(None if z.u0 is None else z.u0[:, :-1], z.context)

        def push(direction: Array) -> tuple[Array, Array]:
            return jax.jvp(lambda v: self.field(s, x, v, z)[1], (value,), (jnp.broadcast_to(direction, value.shape),))

        derivatives, columns = jax.vmap(push)(jnp.eye(value.shape[-1], dtype=value.dtype))
        trace = jnp.einsum("ibi->b", columns)
        return None, jnp.concatenate([derivatives[0], trace[:, None]], axis=-1)


def field(*, conditioned: bool, seed: int = 0) -> CharacteristicField:
    """A random field in five dimensions whose velocity reads (s, u), or (s, u0) if conditioned."""
    velocity_key, *keys = jax.random.split(jax.random.key(seed), 1 + DIRECTIONS)
    velocity = NetworkVelocity(
        mlp([1 + DIMENSION, 16, DIRECTIONS], key=velocity_key),
        DIRECTIONS,
        reads=("s", "u0") if conditioned else ("s", "u"),
    )
    return CharacteristicField(velocity, SeparateJacobian([mlp([DIMENSION, 16, DIMENSION], key=key) for key in keys]))


@eqx.filter_jit
def _log_determinants(field: CharacteristicField, u0: Float[Array, "batch n"]) -> tuple[Array, Array]:
    """The log-determinant from autodiff through the solve, and from the integrated trace."""
    # Fixed steps, and the solver's own operations differentiated: a quarter of the time to compile.
    solver = Solver("dopri5", steps=100, adjoint="direct")
    _, pullback = jax.vjp(lambda u: solver.solve(field, u).u, u0)
    # One row of every sample's Jacobian per pullback: samples do not depend on each other.
    unit = jnp.broadcast_to(jnp.eye(DIMENSION)[:, None], (DIMENSION, *u0.shape))
    (rows,) = jax.vmap(pullback)(unit)
    start = jnp.concatenate([u0, jnp.zeros_like(u0[:, :1])], axis=-1)
    integrated = solver.solve(_WithTrace(field), start).u[:, -1]
    return jnp.linalg.slogdet(jnp.moveaxis(rows, 0, 1))[1], integrated


def run(*, seed: int = 0, batch: int = 16) -> LogDensity:
    """Compare both log-determinants in float64."""
    with jax.enable_x64(True):
        u0 = jax.random.normal(jax.random.key(seed + 1), (batch, DIMENSION))
        exact, integrated = _log_determinants(check_flow_field(field(conditioned=False, seed=seed)), u0)
        conditioned = field(conditioned=True, seed=seed)
        exact_c, integrated_c = _log_determinants(conditioned, u0)
        error, error_c = (float(jnp.max(jnp.abs(a - b))) for a, b in ((exact, integrated), (exact_c, integrated_c)))
    try:
        check_flow_field(conditioned)
    except ValueError as reason:
        return LogDensity(
            exact=np.asarray(exact),
            integrated=np.asarray(integrated),
            exact_when_conditioned=np.asarray(exact_c),
            integrated_when_conditioned=np.asarray(integrated_c),
            error=error,
            error_when_conditioned=error_c,
            refusal=str(reason),
        )
    raise AssertionError("a field that reads u0 was accepted as a flow")


def plot(result: LogDensity, path: Path) -> Path:
    """Plot the integrated trace against the log-determinant: equal for a flow, not if u0 is read."""
    panels = [
        ("field of (s, u)", result.exact, result.integrated, C_NODE, result.error),
        (
            "velocity reads u0: refused",
            result.exact_when_conditioned,
            result.integrated_when_conditioned,
            NODE,
            result.error_when_conditioned,
        ),
    ]
    with save_figure(path, width=7.2, height=3.4) as figure:
        for axis, (title, exact, integrated, colour, error) in zip(figure.subplots(1, 2), panels, strict=True):
            both = np.concatenate([exact, integrated])
            ends = [float(both.min()) - 0.05, float(both.max()) + 0.05]
            axis.plot(ends, ends, color=EXACT, linewidth=1)
            axis.plot(exact, integrated, "o", color=colour, markersize=4)
            axis.set_aspect("equal")
            axis.set_title(f"{title}\nlargest error {error:.1e}")
            axis.set_xlabel("log|det ∂u(1)/∂u(0)|")
            axis.set_ylabel("integrated trace")
    return path
