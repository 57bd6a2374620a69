"""Trajectories may cross: u(0) = 0 must end at 1, and u(0) = 1 at 0 (paper, section 4.1).

In one dimension the solutions of du/ds = f(s, u) keep their order, so that a plain Neural ODE can do no better than to
map both points to 1/2.
"""

from pathlib import Path
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float

from charax.fields import CharacteristicField, Condition, FunctionJacobian, FunctionVelocity
from charax.models import NeuralODE, neural_ode
from charax.nn import count_parameters
from charax.plotting import C_NODE, EXACT, NODE, save_figure
from charax.solve import Solver

STARTS = ((0.0,), (1.0,))
ENDS = ((1.0,), (0.0,))


class Intersecting(NamedTuple):
    """The trajectories of three models from both points, and the largest errors of their ends."""

    s: Float[Array, "points"]
    """Where the trajectories are evaluated."""
    construction: Float[Array, "points 2"]
    """The paper's construction."""
    c_node: Float[Array, "points 2"]
    """A trained C-NODE."""
    node: Float[Array, "points 2"]
    """A trained plain Neural ODE."""
    construction_error: float
    """Largest error of the construction."""
    c_node_error: float
    """Largest error of the C-NODE."""
    node_error: float
    """Largest error of the plain Neural ODE."""
    c_node_parameters: int
    """Size of the C-NODE."""
    node_parameters: int
    """Size of the plain Neural ODE."""


def construction() -> NeuralODE:
    """The paper's construction: dx/ds = (1, u0) and ∂u/∂x = (1, −2), so u(s) = u0 + (1 − 2 u0) s."""

    def velocity(s, x, u, z: Condition) -> Array:
        assert z.u0 is not None
        return jnp.concatenate([jnp.ones_like(z.u0), z.u0], axis=-1)

    def jacobian(x, u) -> Array:
        return jnp.broadcast_to(jnp.array([[1.0], [-2.0]], u.dtype), (u.shape[0], 2, 1))

    return NeuralODE(CharacteristicField(FunctionVelocity(velocity, 2, reads=("u0",)), FunctionJacobian(jacobian, 2)))


def run(*, seed: int = 0, steps: int = 500) -> Intersecting:
    """Check the construction, and train a C-NODE and a larger plain NODE on the two points."""
    c_node = neural_ode("c-node", 1, width=8, key=jax.random.key(seed))
    node = neural_ode("node", 1, width=32, key=jax.random.key(seed))
    s = jnp.linspace(0, 1, 51)
    trajectories, errors = {}, {}
    for name, model in {
        "construction": construction(),
        "c_node": _train(c_node, steps),
        "node": _train(node, steps),
    }.items():
        solution = model(jnp.array(STARTS), solver=Solver(rtol=1e-6, atol=1e-6), at=s)
        assert solution.trajectory is not None
        trajectories[name] = solution.trajectory[..., 0]
        errors[f"{name}_error"] = float(jnp.max(jnp.abs(solution.u - jnp.array(ENDS))))
    return Intersecting(
        s=s,
        **trajectories,
        **errors,
        c_node_parameters=count_parameters(c_node),
        node_parameters=count_parameters(node),
    )


@eqx.filter_jit
def _train(model: NeuralODE, steps: int) -> NeuralODE:
    """Full-batch Adam on the squared error at the two ends, as one compiled loop."""
    optimizer = optax.adam(optax.cosine_decay_schedule(2e-2, steps))
    parameters, static = eqx.partition(model, eqx.is_inexact_array)

    def loss(parameters) -> Array:
        ends = eqx.combine(parameters, static)(jnp.array(STARTS), solver=Solver("heun", steps=10)).u
        return jnp.mean((ends - jnp.array(ENDS)) ** 2)

    def step(carry, _):
        parameters, state = carry
        updates, state = optimizer.update(jax.grad(loss)(parameters), state)
        return (optax.apply_updates(parameters, updates), state), None

    (parameters, _), _ = jax.lax.scan(step, (parameters, optimizer.init(parameters)), length=steps)
    return eqx.combine(parameters, static)  # pyright: ignore[reportReturnType]


def plot(result: Intersecting, path: Path) -> Path:
    """Plot the trained trajectories, which should cross: those of the plain model cannot."""
    panels = [
        (f"Neural ODE, {result.node_parameters} parameters", result.node, NODE, result.node_error),
        (f"C-NODE, {result.c_node_parameters} parameters", result.c_node, C_NODE, result.c_node_error),
    ]
    with save_figure(path, width=7.2, height=3.0) as figure:
        axes = figure.subplots(1, 2, sharey=True)
        for axis, (title, trajectory, colour, error) in zip(axes, panels, strict=True):
            axis.plot(result.s, result.construction, color=EXACT, linestyle="--", linewidth=1.2)
            axis.plot(result.s, trajectory, color=colour)
            axis.plot([0, 0], [0, 1], "o", color=EXACT, markersize=5)
            axis.plot([1, 1], [0, 1], "o", color=EXACT, markersize=5, markerfacecolor="white")
            axis.set_title(f"{title}\nlargest error {error:.2g}")
            axis.set_xlabel("s")
        axes[0].set_ylabel("u(s)")
        axes[0].plot([], [], color=EXACT, linestyle="--", linewidth=1.2, label="construction")
        axes[0].legend(loc="upper center")
    return path
