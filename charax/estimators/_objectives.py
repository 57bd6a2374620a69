"""What the members of an estimator learn: a model, its loss, and what it says of new rows."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
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

_EXACT_UP_TO = 16
"""Columns up to which a density is trained with the exact trace. It is always told with the exact one."""


@dataclass(frozen=True)
class How:
    """How to integrate, in words and numbers that can be compared, so that equal ones share a compiled program."""

    solver: str
    steps: int
    rtol: float | None
    adjoint: str

    def together(self) -> Solver:
        """For training: one step size for a batch."""
        return self._build(per_sample=False)

    def each(self) -> Solver:
        """For predictions: what is said of a row does not depend on which others are asked about."""
        return self._build(per_sample=self.rtol is not None)

    def _build(self, *, per_sample: bool) -> Solver:
        if self.rtol is None:
            return Solver(self.solver, steps=self.steps, adjoint=self.adjoint)
        return Solver(self.solver, rtol=self.rtol, atol=self.rtol, adjoint=self.adjoint, per_sample=per_sample)


@dataclass(frozen=True)
class AbstractObjective(ABC):
    """Everything about an estimator that is not learned and not about its data's units."""

    how: How
    features: int
    outputs: int

    @abstractmethod
    def build(self, key: PRNGKeyArray) -> eqx.Module:
        """A new model."""

    @abstractmethod
    def measure(self, model: Any, rows: Batch, key: PRNGKeyArray) -> Float[Array, "rows"]:
        """The loss of every row; NaN where a solve failed."""

    @abstractmethod
    def respond(self, model: Any, inputs: Float[Array, "rows features"]) -> Any:
        """What the model says of rows: arrays with the rows in their first axis."""

    def loss(
        self, model: eqx.Module, batch: Batch, key: PRNGKeyArray
    ) -> tuple[Float[Array, ""], dict[str, Float[Array, ""]]]:
        """The weighted mean of the losses, as a step of training asks for it."""
        loss = weighted_mean(self.measure(model, batch, key), batch.weights)
        return loss, {"failed": jnp.zeros(())}


def weighted_mean(values: Float[Array, "rows"], weights: Float[Array, "rows"]) -> Float[Array, ""]:
    """The mean over the rows that count; not a number if one of those is not."""
    return jnp.where(weights > 0, values * weights, 0).sum() / jnp.maximum(weights.sum(), 1e-6)


@dataclass(frozen=True)
class Supervised(AbstractObjective):
    """Classes or values of rows of numbers: a neural ODE and a linear readout."""

    architecture: VectorArchitecture
    classifies: bool

    def build(self, key: PRNGKeyArray) -> Classifier:
        return self.architecture.build((self.features,), self.outputs, key=key)

    def measure(self, model: Classifier, rows: Batch, key: PRNGKeyArray) -> Float[Array, "rows"]:
        out, _ = model(rows.inputs, solver=self.how.together())
        if self.classifies:
            return optax.softmax_cross_entropy(out, rows.targets)
        return jnp.mean(jnp.square(out - rows.targets), axis=1)

    def respond(self, model: Classifier, inputs: Float[Array, "rows features"]) -> Float[Array, "rows outputs"]:
        out, _ = model(inputs, solver=self.how.each())
        return jax.nn.softmax(out) if self.classifies else out


@dataclass(frozen=True)
class Density(AbstractObjective):
    """The density of rows of numbers."""

    design: VectorFlowDesign

    def build(self, key: PRNGKeyArray) -> ContinuousFlow:
        return self.design.build((self.features,), key=key)

    def measure(self, model: ContinuousFlow, rows: Batch, key: PRNGKeyArray) -> Float[Array, "rows"]:
        trace = ExactTrace() if self.features <= _EXACT_UP_TO else Hutchinson()
        return -model.log_prob(rows.inputs, solver=self.how.together(), trace=trace, key=key)

    def respond(
        self, model: ContinuousFlow, inputs: Float[Array, "rows features"]
    ) -> tuple[Float[Array, "rows features"], Float[Array, "rows"]]:
        """The rows in the base distribution, and their log-densities."""
        result = model.forward(inputs, solver=self.how.each())
        return result.u, result.log_prob


@dataclass(frozen=True)
class Pde(AbstractObjective):
    """Values at places and times, the last column, along learned characteristics."""

    method: str
    width: int

    def build(self, key: PRNGKeyArray) -> AbstractRegressor:
        return build_regressor(self.method, Scaling.identity(self.features - 1, self.outputs), width=self.width, key=key)

    def measure(self, model: AbstractRegressor, rows: Batch, key: PRNGKeyArray) -> Float[Array, "rows"]:
        out = model(rows.inputs[:, :-1], rows.inputs[:, -1], solver=self.how.together())
        error = jnp.mean(jnp.square(out.u - rows.targets), axis=1)
        # A path that was not found counts, but has nothing to teach.
        return jnp.where(out.found, error, lax.stop_gradient(error)) + crossing_penalty(out.jacobian_determinant)

    def respond(
        self, model: AbstractRegressor, inputs: Float[Array, "rows features"]
    ) -> tuple[Float[Array, "rows outputs"], Bool[Array, "rows"]]:
        """The values, and whether a path was found to them."""
        out = model(inputs[:, :-1], inputs[:, -1], solver=self.how.each())
        return out.u, out.found
