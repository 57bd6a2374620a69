"""Densities: negative log-likelihood, or bits per dimension of images."""

import math
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from charax.data import DensityData, Split, Standardizer, read_inputs
from charax.models.flows import (
    AbstractDensity,
    AbstractFlowDesign,
    AbstractTrace,
    Assessed,
    ExactTrace,
    Hutchinson,
    HutchPlusPlus,
    read_flow_design,
)
from charax.solve import Solver
from charax.train._stored_solver import solver_from_json, solver_to_json
from charax.train._task import AbstractTask, Predictions, Samples

TRACES: dict[str, AbstractTrace] = {
    "exact": ExactTrace(),
    "hutchinson": Hutchinson(),
    "gaussian": Hutchinson(distribution="gaussian"),
    "hutch++": HutchPlusPlus(),
}
"""The traces by name."""

_EXACT_UP_TO = 16
"""Numbers in a sample up to which densities are measured with the exact trace, however they were trained."""


class DensityTask(AbstractTask):
    """Learn the density of a data set.

    ```python
    import jax
    from charax.data import load_density_data
    from charax.models.flows import VectorFlowDesign
    from charax.solve import Solver
    from charax.tasks.density import DensityTask

    task = DensityTask.of(load_density_data("moons"), VectorFlowDesign("c-node"), Solver())
    flow = task.build(jax.random.key(0))
    ```
    """

    design: AbstractFlowDesign = eqx.field(static=True)
    solver: Solver
    shape: tuple[int, ...] = eqx.field(static=True)
    levels: int | None = eqx.field(static=True)
    standardizer: Standardizer = eqx.field(static=True)
    columns: tuple[str, ...] = eqx.field(static=True, default=())
    classes: tuple[str, ...] = eqx.field(static=True, default=())
    """The classes of a density for each class; empty if there is one for all."""
    trace: str = eqx.field(static=True, default="exact")
    kinetic: float = eqx.field(static=True, default=0.0)
    jacobian: float = eqx.field(static=True, default=0.0)
    flip: bool = eqx.field(static=True, default=False)

    @property
    def name(self) -> str:
        return "density"

    @property
    def chosen_by(self) -> str:
        return "loss"

    @property
    def higher_is_better(self) -> bool:
        return False

    @property
    def measured_in(self) -> str:
        """What the loss of a sample is: `nll`, or `bits_per_dim` for images."""
        return "nll" if self.levels is None else "bits_per_dim"

    @classmethod
    def of(
        cls, data: DensityData, design: AbstractFlowDesign, solver: Solver, *, conditional: bool = False, **how: Any
    ) -> "DensityTask":
        """The task of learning a data set; `how` are the fields that are not about the data."""
        return cls(
            design=design,
            solver=solver,
            shape=data.shape,
            levels=data.levels,
            standardizer=data.standardizer,
            columns=data.columns,
            classes=data.classes if conditional else (),
            **how,
        )

    def build(self, key: PRNGKeyArray) -> AbstractDensity:
        return self.design.build(self.shape, key=key)

    def loss(
        self, model: eqx.Module, batch: Split, key: PRNGKeyArray
    ) -> tuple[Float[Array, ""], dict[str, Float[Array, ""]]]:
        key, flip_key = jax.random.split(key)
        inputs = jnp.asarray(batch.inputs)
        if self.flip:
            flip = jax.random.bernoulli(flip_key, shape=(len(inputs), 1, 1, 1))
            inputs = jnp.where(flip, inputs[:, :, ::-1], inputs)
        energies = self.kinetic > 0 or self.jacobian > 0
        assessed = self._assess(model, batch._replace(inputs=inputs), TRACES[self.trace], key, energies=energies)
        score = _density(model).score(assessed.log_prob).mean()
        values = {name: value.mean() for name, value in _counts(assessed, len(inputs)).items()}
        if assessed.kinetic is None or assessed.jacobian is None:
            return score, values
        kinetic, jacobian = assessed.kinetic.mean(), assessed.jacobian.mean()
        loss = score + self.kinetic * kinetic + self.jacobian * jacobian
        return loss, {**values, self.measured_in: score, "kinetic": kinetic, "jacobian": jacobian}

    def measure(self, model: eqx.Module, batch: Split) -> dict[str, Float[Array, "batch"]]:
        # The same noise for every evaluation, so that epochs can be compared.
        trace = ExactTrace() if math.prod(self.shape) <= _EXACT_UP_TO else TRACES[self.trace]
        assessed = self._assess(model, batch, trace, jax.random.key(0))
        score = _density(model).score(assessed.log_prob)
        return {"loss": score, self.measured_in: score, **_counts(assessed, len(batch.inputs))}

    def summarise(self, best: dict[str, Any], test: dict[str, Any]) -> dict[str, Any]:
        name = self.measured_in
        return {name: test[f"test_{name}"], f"validation_{name}": best[f"validation_{name}"]}

    def predict(self, model: eqx.Module, inputs: Path) -> Predictions:
        """The log-density of the inputs in a file or folder, of standardised columns if it is a table."""
        if self.classes:
            raise ValueError("a density for each class needs to be told the class: predict has none to tell")
        raw, names = read_inputs(inputs, shape=self.shape, columns=self.columns, white=self.standardizer.white)
        batch = Split(self.standardizer.apply(raw), np.zeros(len(raw), np.int32))
        scores = _measured(self, model, batch)
        failed = ~np.isfinite(scores)
        if failed.any():
            raise RuntimeError(
                f"the solve failed for {failed.sum()} of {len(raw)} inputs: they may be far from the data"
            )
        log_density = -scores if self.levels is None else scores
        column = "log density" if self.levels is None else "bits per dimension"
        return Predictions(
            ["input", column], [[name, f"{value:.6g}"] for name, value in zip(names, log_density, strict=True)]
        )

    def sample(self, model: eqx.Module, n: int, *, seed: int = 0, temperature: float = 1.0) -> Samples:
        """New samples, in the units of the data. Those of a density for each class take the classes in turn."""
        context = None if not self.classes else jnp.eye(len(self.classes))[jnp.arange(n) % len(self.classes)]
        drawn = _density(model).sample(
            n, key=jax.random.key(seed), solver=self.solver, context=context, temperature=temperature
        )
        mean, std = (np.asarray(value, np.float32) for value in (self.standardizer.mean, self.standardizer.std))
        return Samples(np.asarray(drawn, np.float32) * std + mean, self.standardizer.white)

    def _assess(
        self, model: eqx.Module, batch: Split, trace: AbstractTrace, key: PRNGKeyArray, *, energies: bool = False
    ) -> Assessed:
        context = jax.nn.one_hot(batch.targets, len(self.classes)) if self.classes else None
        return _density(model).assess(
            jnp.asarray(batch.inputs), solver=self.solver, trace=trace, context=context, energies=energies, key=key
        )

    def to_json(self) -> dict[str, Any]:
        return {
            "design": self.design.to_json(),
            "solver": solver_to_json(self.solver),
            "shape": list(self.shape),
            "levels": self.levels,
            "standardizer": self.standardizer.to_json(),
            "columns": list(self.columns),
            "classes": list(self.classes),
            "trace": self.trace,
            "kinetic": self.kinetic,
            "jacobian": self.jacobian,
            "flip": self.flip,
        }

    @classmethod
    def from_json(cls, stored: dict[str, Any]) -> "DensityTask":
        return cls(
            design=read_flow_design(stored["design"]),
            solver=solver_from_json(stored["solver"]),
            shape=tuple(stored["shape"]),
            levels=stored["levels"],
            standardizer=Standardizer.from_json(stored["standardizer"]),
            columns=tuple(stored["columns"]),
            classes=tuple(stored["classes"]),
            trace=stored["trace"],
            kinetic=stored["kinetic"],
            jacobian=stored["jacobian"],
            flip=stored["flip"],
        )


def _density(model: eqx.Module) -> AbstractDensity:
    assert isinstance(model, AbstractDensity)
    return model


@eqx.filter_jit
def _scores(task: DensityTask, model: eqx.Module, batch: Split) -> Array:
    return task.measure(model, batch)["loss"]


def _measured(task: DensityTask, model: eqx.Module, batch: Split) -> np.ndarray:
    return np.asarray(_scores(task, model, batch))


def _counts(assessed: Assessed, batch: int) -> dict[str, Array]:
    """Whether the solve of each sample failed, and its evaluations where they are known."""
    each = lambda value: jnp.broadcast_to(value, (batch,)).astype(float)
    return {
        "failed": each(assessed.outcome != 0),
        **({} if assessed.nfe is None else {"nfe": each(assessed.nfe)}),
    }
