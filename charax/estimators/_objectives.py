"""What an estimator trains: a model, its loss per row, and its predictions."""

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jax import lax
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from charax.estimators._rows import Batch
from charax.models import (
    AbstractRegressor,
    Classifier,
    Scaling,
    VectorArchitecture,
    build_regressor,
    crossing_penalty,
)
from charax.models.flows import ContinuousFlow, ExactTrace, Hutchinson, VectorFlowDesign
from charax.models.matching import TIMES, FlowMatching, PairMap
from charax.solve import Solver
from charax.train import SolverConfig, small_products

_MAX_EXACT_TRACE_DIM = 16
"""Up to this many features a density is trained with the exact trace. Predictions always use the exact trace."""

MATCHING = FlowMatching(times=TIMES["data"])
"""Straight paths, and most of the times near the data."""


@dataclass(frozen=True)
class AbstractObjective(ABC):
    """A model, its loss and its solver. Equal objectives share their compiled programs."""

    solver_config: SolverConfig
    features: int
    outputs: int

    @property
    def training_solver(self) -> Solver:
        """The solver of training: one step size for the whole mini-batch."""
        return self.solver_config.build(Solver())

    @property
    def prediction_solver(self) -> Solver:
        """The solver of predictions: adaptive steps per row, so that no prediction depends on the other rows."""
        solver = self.training_solver
        return replace(solver, per_sample=solver.steps is None)

    @property
    def prediction_options(self) -> dict[str, bool | str]:
        """Compiler options of the predictions."""
        return small_products()

    @abstractmethod
    def build(self, key: PRNGKeyArray) -> eqx.Module:
        """Initialize a model."""

    @abstractmethod
    def losses(self, model: Any, rows: Batch, key: PRNGKeyArray) -> Float[Array, "rows"]:
        """The loss of each row; NaN where the solve failed."""

    @abstractmethod
    def predict(self, model: Any, inputs: Float[Array, "rows features"]) -> Any:
        """Predictions: arrays with the rows in their first axis."""

    def augment(self, batch: Batch, key: PRNGKeyArray) -> Batch:
        """The rows as they are, as `charax.train.Objective` has it."""
        return batch

    def loss(
        self, model: eqx.Module, batch: Batch, key: PRNGKeyArray
    ) -> tuple[Float[Array, ""], dict[str, Float[Array, ""]]]:
        """The weighted mean loss and no further metrics, as `charax.train.Objective` has it."""
        loss = weighted_mean(self.losses(model, batch, key), batch.weights)
        return loss, {"failed": jnp.zeros(())}


def weighted_mean(values: Float[Array, "rows"], weights: Float[Array, "rows"]) -> Float[Array, ""]:
    """The mean over the rows with a weight above zero; NaN if one of these is NaN."""
    return jnp.where(weights > 0, values * weights, 0).sum() / jnp.maximum(weights.sum(), 1e-6)


@dataclass(frozen=True)
class SupervisedObjective(AbstractObjective):
    """Classification or regression: a neural ODE and a linear readout."""

    architecture: VectorArchitecture
    is_classification: bool

    @property
    def prediction_options(self) -> dict[str, bool | str]:
        """None: XLA's default is faster for the few products of a field with one hidden layer and few steps."""
        return {}

    def build(self, key: PRNGKeyArray) -> Classifier:
        return self.architecture.build((self.features,), self.outputs, key=key)

    def losses(self, model: Classifier, rows: Batch, key: PRNGKeyArray) -> Float[Array, "rows"]:
        out, _ = model(rows.inputs, solver=self.training_solver)
        if self.is_classification:
            return optax.softmax_cross_entropy(out, rows.targets)
        return jnp.mean(jnp.square(out - rows.targets), axis=1)

    def predict(self, model: Classifier, inputs: Float[Array, "rows features"]) -> Float[Array, "rows outputs"]:
        out, _ = model(inputs, solver=self.prediction_solver)
        return jax.nn.softmax(out) if self.is_classification else out


@dataclass(frozen=True)
class DensityObjective(AbstractObjective):
    """Density estimation by a continuous normalizing flow: flow matching, or maximum likelihood."""

    design: VectorFlowDesign
    by_likelihood: bool = True
    """Train by maximum likelihood instead of flow matching."""

    def build(self, key: PRNGKeyArray) -> ContinuousFlow:
        return self.design.build((self.features,), key=key)

    def loss(self, model: Any, batch: Batch, key: PRNGKeyArray) -> tuple[Float[Array, ""], dict[str, Float[Array, ""]]]:
        if self.by_likelihood:
            return super().loss(model, batch, key)
        losses = model.match(batch.inputs, MATCHING, key=key)
        return weighted_mean(losses, batch.weights), {"failed": jnp.zeros(())}

    def losses(self, model: ContinuousFlow, rows: Batch, key: PRNGKeyArray) -> Float[Array, "rows"]:
        trace = ExactTrace() if self.features <= _MAX_EXACT_TRACE_DIM else Hutchinson()
        return -model.log_prob(rows.inputs, solver=self.training_solver, trace=trace, key=key)

    def predict(
        self, model: ContinuousFlow, inputs: Float[Array, "rows features"]
    ) -> tuple[Float[Array, "rows features"], Float[Array, "rows"]]:
        """The rows mapped to the base distribution, and their log-densities."""
        result = model.forward(inputs, solver=self.prediction_solver)
        return result.u, result.log_prob


@dataclass(frozen=True)
class ConditionalDensityObjective(AbstractObjective):
    """The density of the targets given the inputs: a flow of the targets whose field reads the inputs."""

    design: VectorFlowDesign
    by_likelihood: bool = False
    """Train by maximum likelihood instead of flow matching."""
    points: int = 0
    """What is predicted: 0 for the log-densities of targets, which are then columns after the inputs; else the targets
    that belong to this many points of the base distribution, which are then columns after the inputs."""

    def build(self, key: PRNGKeyArray) -> ContinuousFlow:
        return self.design.build((self.outputs,), key=key)

    def loss(self, model: Any, batch: Batch, key: PRNGKeyArray) -> tuple[Float[Array, ""], dict[str, Float[Array, ""]]]:
        if self.by_likelihood:
            return super().loss(model, batch, key)
        losses = model.match(batch.targets, MATCHING, context=batch.inputs, key=key)
        return weighted_mean(losses, batch.weights), {"failed": jnp.zeros(())}

    def losses(self, model: ContinuousFlow, rows: Batch, key: PRNGKeyArray) -> Float[Array, "rows"]:
        trace = ExactTrace() if self.outputs <= _MAX_EXACT_TRACE_DIM else Hutchinson()
        return -model.log_prob(rows.targets, solver=self.training_solver, trace=trace, context=rows.inputs, key=key)

    def predict(self, model: ContinuousFlow, inputs: Float[Array, "rows columns"]) -> Float[Array, "rows *values"]:
        context, given = inputs[:, : self.features], inputs[:, self.features :]
        if not self.points:
            return model.log_prob(given, solver=self.prediction_solver, context=context)
        z, context = given.reshape(-1, self.outputs), jnp.repeat(context, self.points, axis=0)
        solution = self.prediction_solver.solve(model.field, z, s0=model.end_time, s1=0.0, context=context)
        return solution.u.reshape(-1, self.points, self.outputs)


@dataclass(frozen=True)
class PairObjective(AbstractObjective):
    """A map from pairs: flow matching on straight paths, selected by the squared error of the solution."""

    method: str
    width: int
    characteristic_dim: int

    def build(self, key: PRNGKeyArray) -> PairMap:
        hidden = (self.width, self.width)
        return PairMap.build(
            self.method,
            self.features,
            self.outputs,
            hidden=hidden,
            characteristic_dim=self.characteristic_dim,
            key=key,
        )

    def loss(self, model: Any, batch: Batch, key: PRNGKeyArray) -> tuple[Float[Array, ""], dict[str, Float[Array, ""]]]:
        losses = model.match(batch.inputs, batch.targets, FlowMatching(), key=key)
        return weighted_mean(losses, batch.weights), {"failed": jnp.zeros(())}

    def losses(self, model: PairMap, rows: Batch, key: PRNGKeyArray) -> Float[Array, "rows"]:
        return jnp.mean(jnp.square(model(rows.inputs, solver=self.training_solver) - rows.targets), axis=1)

    def predict(self, model: PairMap, inputs: Float[Array, "rows features"]) -> Float[Array, "rows outputs"]:
        return model(inputs, solver=self.prediction_solver)


@dataclass(frozen=True)
class PDEObjective(AbstractObjective):
    """Regression of u(x, t) along learned characteristics; t is the last column of the inputs."""

    method: str
    width: int

    def build(self, key: PRNGKeyArray) -> AbstractRegressor:
        return build_regressor(
            self.method, Scaling.identity(self.features - 1, self.outputs), width=self.width, key=key
        )

    def losses(self, model: AbstractRegressor, rows: Batch, key: PRNGKeyArray) -> Float[Array, "rows"]:
        out = model(rows.inputs[:, :-1], rows.inputs[:, -1], solver=self.training_solver)
        error = jnp.mean(jnp.square(out.u - rows.targets), axis=1)
        # A point without a characteristic counts in the loss, but its gradient would be meaningless.
        return jnp.where(out.found, error, lax.stop_gradient(error)) + crossing_penalty(out.jacobian_determinant)

    def predict(
        self, model: AbstractRegressor, inputs: Float[Array, "rows features"]
    ) -> tuple[Float[Array, "rows outputs"], Bool[Array, "rows"]]:
        """The values, and whether a characteristic through each point was found."""
        out = model(inputs[:, :-1], inputs[:, -1], solver=self.prediction_solver)
        return out.u, out.found
