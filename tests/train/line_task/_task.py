"""Least squares: no solve at all, so that nothing but the engine is tested."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from charax.data import read_inputs
from charax.nn import Linear
from charax.solve import Solver
from charax.train import AbstractTask, Predictions, Splits, mark_failures


class Points(NamedTuple):
    """Positions and heights."""

    x: np.ndarray
    y: np.ndarray


@dataclass(frozen=True)
class LineSpec:
    """What a line must know about its points."""

    inputs: int


class LineTask(AbstractTask):
    """Learn the height of points. What lies beyond 100 is a failed solve; each trace adds to `traces`."""

    solver: Solver
    spec: LineSpec = eqx.field(static=True)
    has_intercept: bool = eqx.field(static=True, default=True)
    traces: list[str] = eqx.field(static=True, default_factory=list)

    @property
    def monitor(self) -> str:
        return "loss"

    @property
    def higher_is_better(self) -> bool:
        return False

    def build(self, key):
        return Linear(self.spec.inputs, 1, bias=self.has_intercept, key=key)

    def loss(self, model, batch, key):
        self.traces.append("loss")
        far = (batch.x > 100).any()
        loss = self.metrics(model, batch)["loss"].mean()
        if self.solver.adjoint == "backsolve":  # whose failure has no solution that could carry it
            return eqx.error_if(loss, far, "the backward solve failed"), {"failed": jnp.zeros(())}
        return loss, {"failed": far.astype(float)}

    def metrics(self, model: Any, batch):
        self.traces.append("metrics")
        return {"loss": jnp.square(model(batch.x)[:, 0] - batch.y)}

    def summary(self, best, test):
        return {"loss": test["test_loss"], "validation_loss": best["validation_loss"]}

    def predict(self, model: Any, inputs: Path, *, strict: bool = False, class_name: str | None = None) -> Predictions:
        x, names = read_inputs(inputs, shape=(self.spec.inputs,))
        heights = np.asarray(model(jnp.asarray(x, jnp.float32)))[:, 0]
        return mark_failures(
            Predictions(
                ["input", "height"], [[name, f"{y:.6g}"] for name, y in zip(names, heights, strict=True)], shown=2
            ),
            (x > 100).any(axis=1),
            inputs=1,
            names=[f"{inputs}, input {name}" for name in names],
            reason="the solve failed: too far away",
            strict=strict,
        )

    def plot(self, model: eqx.Module, splits: Splits, folder: Path, *, data: str) -> list[Path]:
        path = folder / "points.txt"
        path.write_text(f"{data}: {len(splits.test.x)} test points\n")
        return [path]
