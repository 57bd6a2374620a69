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
from charax.solve import Solver
from charax.train import SolverConfig

_MAX_EXACT_TRACE_DIM = 16
"""Up to this many features a density is trained with the exact trace. Predictions always use the exact trace."""


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

    @abstractmethod
    def build(self, key: PRNGKeyArray) -> eqx.Module:
        """Initialize a model."""

    @abstractmethod
    def losses(self, model: Any, rows: Batch, key: PRNGKeyArray) -> Float[Array, "rows"]:
        """The loss of each row; NaN where the solve failed."""

    @abstractmethod
    def predict(self, model: Any, inputs: Float[Array, "rows features"]) -> Any:
        """Predictions: arrays with the rows in their first axis."""

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
    """Density estimation: maximum likelihood of a continuous normalizing flow."""

    design: VectorFlowDesign

    def build(self, key: PRNGKeyArray) -> ContinuousFlow:
        return self.design.build((self.features,), key=key)

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
