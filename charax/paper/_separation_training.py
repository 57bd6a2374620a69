"""Training of the separations: all seeds of a variant side by side, through the engine's epoch function."""

import time
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Float, PRNGKeyArray

from charax.models import FlowMatching, NeuralODE, neural_ode
from charax.nn import Chain, Linear, count_parameters, mlp
from charax.paper._comparison import largest_width
from charax.paper.separations import PROBLEMS, SeparationProblem, Variant
from charax.solve import Solver
from charax.train import OptimizerConfig, flatten_model
from charax.train._step import TrainState, initial_state, make_epoch, make_optimizer

_SOLVER = Solver("dopri5", rtol=1e-3, atol=1e-3, max_steps=256)
_OPTIMIZER = OptimizerConfig(learning_rate=1e-2, weight_decay=0.0, schedule="cosine")
_REFERENCE = Variant("c-node", 2, True)
_WIDTH = 16
"""Of the reference; the others get at most as many parameters."""
_BATCH = 128
_SHOWN = 48


@dataclass(frozen=True)
class Result:
    """What is kept of a variant on a problem."""

    errors: list[float]
    """Root mean square error of a map, or fraction of wrong classes, of the test points, per seed."""
    nfe: float
    """Mean number of function evaluations at the end of training."""
    parameters: int
    seconds: float
    shown: dict[str, Any]
    """Trajectories and decisions of the first seed, for the figure."""


class Separator(eqx.Module):
    """A neural ODE, and a linear readout for classes."""

    ode: NeuralODE
    head: Linear | None

    def __call__(self, u: Float[Array, "batch d"], **options: Any) -> tuple[Float[Array, "batch outputs"], Any]:
        solution = self.ode(u, solver=_SOLVER, **options)
        return solution.u[:, : u.shape[1]] if self.head is None else self.head(solution.u), solution


class Perceptron(eqx.Module):
    """A perceptron instead of a neural ODE: its one evaluation is a solve that always succeeds."""

    network: Chain

    def __call__(self, u: Float[Array, "batch d"]) -> tuple[Float[Array, "batch outputs"], Any]:
        return self.network(u), SimpleNamespace(outcome=jnp.zeros((), int), stats=SimpleNamespace(nfe=1))


@dataclass(frozen=True)
class SeparationObjective:
    """What the engine trains."""

    problem: SeparationProblem
    variant: Variant
    width: int

    def build(self, key: PRNGKeyArray) -> Separator | Perceptron:
        """A new model."""
        ode_key, head_key = jax.random.split(key)
        variant, dim = self.variant, self.problem.dim
        if variant.method == "mlp":
            return Perceptron(mlp([dim, self.width, self.width, dim], key=ode_key))
        ode = neural_ode(
            variant.method,
            dim,
            width=self.width,
            augment_dim=variant.augment_dim,
            characteristic_dim=max(variant.k, 1),
            velocity_reads=("s", "u0") if variant.reads_u0 else ("s", "u"),
            key=ode_key,
        )
        if self.problem.kind == "map":
            return Separator(ode, None)
        lifted = dim + variant.augment_dim
        channels = {"anode": lifted, "il-node": lifted, "2nd-order": 2 * lifted}.get(variant.method, dim)
        return Separator(ode, Linear(channels, 2, key=head_key))

    def augment(self, batch: tuple[Array, Array], key: PRNGKeyArray) -> tuple[Array, Array]:
        """The points as they are."""
        return batch

    def loss(
        self, model: Separator | Perceptron, batch: tuple[Array, Array], key: PRNGKeyArray
    ) -> tuple[Array, dict[str, Array]]:
        """Squared error of a map, cross entropy of classes, or the loss of flow matching."""
        u, y = batch
        if self.variant.matched:
            assert isinstance(model, Separator)
            return FlowMatching().losses(model.ode.field, u, y, key=key).mean(), {"failed": jnp.zeros(())}
        out, solution = model(u)
        if self.problem.kind == "map":
            loss = jnp.mean(jnp.square(out - y))
        else:
            loss = optax.softmax_cross_entropy_with_integer_labels(out, y[:, 0].astype(int)).mean()
        return loss, {"failed": (solution.outcome != 0).astype(float)}


def draw(name: str, points: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Points of a problem, and where they go or which class they are of."""
    random = np.random.default_rng([seed, *map(ord, name)])
    problem = PROBLEMS[name]
    normal, uniform = random.normal(size=(points, problem.dim)), random.uniform(size=(points, 1))
    label = np.arange(points)[:, None] % 2
    if name == "swap":
        u, y = label.astype(float), 1.0 - label
    elif name == "reverse":
        u = random.uniform(-1, 1, (points, 1))
        y = -u
    elif name in ("rotation", "fold"):
        u = normal / np.linalg.norm(normal, axis=1, keepdims=True) * np.sqrt(uniform)
        y = -u if name == "rotation" else np.column_stack([np.abs(u[:, 0]), u[:, 1]])
    elif name.startswith("spheres"):
        radius = np.where(label == 0, 0.5 * uniform ** (1 / problem.dim), 1 + 0.5 * uniform)
        u, y = normal / np.linalg.norm(normal, axis=1, keepdims=True) * radius, label
    elif name == "xor":
        u = random.uniform(0.1, 1, (points, 2)) * random.choice([-1, 1], (points, 2))
        y = (u[:, :1] * u[:, 1:] > 0).astype(float)
    else:
        angle = 3 * np.pi * np.sqrt(uniform) + 0.5
        radius = angle / (3 * np.pi + 0.5)
        turned = angle + np.pi * label
        u = radius * np.column_stack([np.cos(turned), np.sin(turned)]) + 0.01 * normal
        y = label
    return u.astype(np.float32), y.astype(np.float32)


def count(problem: SeparationProblem, variant: Variant, width: int) -> int:
    """The number of parameters of a variant."""
    return count_parameters(jax.eval_shape(SeparationObjective(problem, variant, width).build, jax.random.key(0)))


def learn(name: str, variant: Variant, *, seeds: int, steps: int, points: int) -> Result:
    """Train a variant on a problem with all seeds side by side."""
    problem = PROBLEMS[name]
    target = count(problem, _REFERENCE, _WIDTH)
    width = _WIDTH if variant == _REFERENCE else largest_width(lambda size: count(problem, variant, size), target)
    objective = SeparationObjective(problem, variant, width)
    data = [
        jnp.asarray(part)
        for part in map(np.stack, zip(*(draw(name, points, 2 * s) for s in range(seeds)), strict=True))
    ]
    test = [
        jnp.asarray(part)
        for part in map(np.stack, zip(*(draw(name, points, 2 * s + 1) for s in range(seeds)), strict=True))
    ]
    start = time.monotonic()
    optimizer = make_optimizer(_OPTIMIZER, epochs=1, steps_per_epoch=steps)
    batch = min(_BATCH, points)
    first = tuple(part[0, :batch] for part in data)
    states = [initial_state(objective, first, optimizer, seed=seed, ema=None) for seed in range(seeds)]  # pyright: ignore[reportArgumentType]
    unflatten = states[0][1]
    epoch = make_epoch(objective, unflatten, optimizer, None)  # pyright: ignore[reportArgumentType]
    state: TrainState = jax.tree.map(lambda *leaves: jnp.stack(leaves), *(state for state, _ in states))
    random = np.random.default_rng(0)
    order = np.stack([[random.permutation(points)[:batch] for _ in range(steps)] for _ in range(seeds)])
    state, _ = jax.jit(jax.vmap(epoch))(state, tuple(data), jnp.asarray(order))
    measure = lambda params, u, y: _measure(objective, unflatten(params), u, y)
    errors, nfe = jax.jit(jax.vmap(measure))(state.params, *test)
    model = unflatten(state.params[0])
    assert isinstance(model, Separator | Perceptron)
    return Result(
        errors=[float(error) for error in errors],
        nfe=float(jnp.mean(nfe)),
        parameters=int(flatten_model(model)[0].size),
        seconds=time.monotonic() - start,
        shown=_show(problem, model, *(np.asarray(part[0]) for part in test)),
    )


def _measure(objective: SeparationObjective, model: eqx.Module, u: Array, y: Array) -> tuple[Array, Array]:
    out, solution = model(u)  # pyright: ignore[reportCallIssue]
    if objective.problem.kind == "map":
        error = jnp.sqrt(jnp.mean(jnp.sum(jnp.square(out - y), axis=1)))
    else:
        error = jnp.mean(jnp.where(jnp.isfinite(out).all(1), jnp.argmax(out, 1) != y[:, 0], 1.0))
    return error, jnp.asarray(solution.stats.nfe, float)


def _show(problem: SeparationProblem, model: Separator | Perceptron, u: np.ndarray, y: np.ndarray) -> dict[str, Any]:
    """Trajectories of some points (by point, dimension, time), and the probability of the second class on a grid."""
    if problem.dim > 2 or isinstance(model, Perceptron):
        return {"trajectories": [], "labels": [], "decision": None, "reach": None}
    few = u[:_SHOWN]
    _, solution = eqx.filter_jit(lambda model, u: model(u, at=jnp.linspace(0, 1, 21)))(model, jnp.asarray(few))
    label = y[:_SHOWN, 0] if problem.kind == "classify" else (few[:, 0] > np.median(few[:, 0]))
    decision, reach = None, float(1.1 * np.abs(u).max())
    if problem.kind == "classify" and problem.dim == 2:
        side = np.linspace(-reach, reach, 41, dtype=np.float32)
        grid = np.stack([part.ravel() for part in np.meshgrid(side, side)], axis=1)
        logits, _ = eqx.filter_jit(lambda model, u: model(u))(model, jnp.asarray(grid))
        decision = np.round(np.asarray(jax.nn.softmax(logits)[:, 1]).reshape(41, 41), 2).tolist()
    path = np.round(np.moveaxis(np.asarray(solution.trajectory)[..., : problem.dim], 0, -1).astype(float), 3)
    return {"trajectories": path.tolist(), "labels": [int(one) for one in label], "decision": decision, "reach": reach}
