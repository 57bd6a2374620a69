"""The method of characteristics for a vector-valued semilinear PDE (paper, appendix B).

    ∂u/∂t + x ∂u/∂x = B u,    u(x, 0) = g(x),    u in R²,

has the characteristics x(t) = x₀ eᵗ and the solution u(x, t) = exp(B t) g(x e⁻ᵗ). It is written as a characteristic
field in (t, x) with velocity (1, x); because dt/ds = 1, a Jacobian whose first column is the right-hand side gives
du/ds = B u.
"""

from pathlib import Path
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from charax.fields import CharacteristicField, FunctionJacobian, FunctionVelocity
from charax.plotting import EXACT, save_figure
from charax.solve import Solver

DECAY, TURN = -0.3, 2.0  # B = [[DECAY, −TURN], [TURN, DECAY]]


class Characteristics(NamedTuple):
    """Characteristics (t, x), and the solution along them."""

    t: Float[np.ndarray, "points curves"]
    """Times."""
    x: Float[np.ndarray, "points curves"]
    """Positions."""
    u: Float[np.ndarray, "points curves 2"]
    """Values."""
    error: float
    """Largest absolute error against the closed form."""


@jax.jit
def initial_value(x: Float[Array, "..."]) -> Float[Array, "... 2"]:
    """The initial value g(x)."""
    return jnp.stack([jnp.exp(-(x**2)), jnp.sin(2 * x)], axis=-1)


@jax.jit
def closed_form(x: Float[Array, "..."], t: Float[Array, "..."]) -> Float[Array, "... 2"]:
    """The solution exp(B t) g(x e⁻ᵗ), where exp(B t) is a decay and a rotation."""
    g = initial_value(x * jnp.exp(-t))
    cos, sin = jnp.cos(TURN * t), jnp.sin(TURN * t)
    rotated = jnp.stack([cos * g[..., 0] - sin * g[..., 1], sin * g[..., 0] + cos * g[..., 1]], axis=-1)
    return jnp.exp(DECAY * t)[..., None] * rotated


def field() -> CharacteristicField:
    """The PDE as a characteristic field in x = (t, position)."""

    def velocity(s, x, u, z) -> Array:
        return jnp.stack([jnp.ones_like(x[:, 1]), x[:, 1]], axis=-1)

    def jacobian(x, u) -> Array:
        source = jnp.stack([DECAY * u[:, 0] - TURN * u[:, 1], TURN * u[:, 0] + DECAY * u[:, 1]], axis=-1)
        return jnp.stack([source, jnp.zeros_like(source)], axis=1)

    return CharacteristicField(FunctionVelocity(velocity, 2, reads=("x",)), FunctionJacobian(jacobian, 2))


def run() -> Characteristics:
    """Integrate along 21 characteristics in float64 and compare with the closed form at 41 times.

    ```python
    from charax.paper.propositions import _characteristics as characteristics

    assert characteristics.run().error < 1e-6
    ```
    """
    with jax.enable_x64(True):
        x0 = jnp.linspace(-1, 1, 21)
        solution = Solver("dopri8", rtol=1e-10, atol=1e-10).solve(
            field(),
            initial_value(x0),
            x0=jnp.stack([jnp.zeros_like(x0), x0], axis=-1),
            at=jnp.linspace(0.0, 1.0, 41),
        )
        assert solution.characteristic is not None
        assert solution.trajectory is not None
        t, x = solution.characteristic[..., 0], solution.characteristic[..., 1]
        error = float(jnp.max(jnp.abs(solution.trajectory - closed_form(x, t))))
    return Characteristics(t=np.asarray(t), x=np.asarray(x), u=np.asarray(solution.trajectory), error=error)


def plot(result: Characteristics, path: Path) -> Path:
    """Plot the characteristics in the (x, t) plane, coloured by each component of the solution."""
    with save_figure(path, width=7.2, height=3.4) as figure:
        axes = figure.subplots(1, 2, sharey=True)
        for component, axis in enumerate(axes):
            axis.plot(result.x, result.t, color=EXACT, linewidth=0.5)
            dots = axis.scatter(
                np.ravel(result.x), np.ravel(result.t), c=np.ravel(result.u[..., component]), s=6, cmap="coolwarm"
            )
            figure.colorbar(dots, ax=axis, label=f"$u_{component + 1}$")
            axis.set_xlabel("x")
        axes[0].set_ylabel("t")
        figure.suptitle(
            f"$u_t + x\\,u_x = Bu$ along its characteristics, largest error {result.error:.1e}", fontsize=10
        )
    return path
