"""The paper's toy flow: two circles, a small C-NODE against a larger NODE."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal

from charax.models import FlowMethod
from charax.paper._comparison import compare, plot_dynamics, plot_first_runs, record_curves
from charax.paper._experiment import AbstractExperiment
from charax.paper._report import Column, Figure, Report
from charax.tasks import DensityConfig
from charax.train import LoopConfig, OptimizerConfig, Sweep, check_range

Recipe = Literal["paper", "sharp", "timed", "matching"]
Toy = Literal["circles", "moons", "pinwheel", "checkerboard", "eight-gaussians"]
_BATCH = 1_024
_EPOCHS = 10
_OPTIMIZERS: dict[Recipe, OptimizerConfig] = {
    "paper": OptimizerConfig(learning_rate=1e-3, weight_decay=0.0, schedule="constant", clip=1e6),
    "sharp": OptimizerConfig(learning_rate=3e-3, weight_decay=0.0, schedule="cosine", clip=10.0),
    "timed": OptimizerConfig(learning_rate=1e-2, weight_decay=0.0, schedule="cosine", clip=10.0),
    "matching": OptimizerConfig(learning_rate=1e-2, weight_decay=0.0, schedule="cosine", clip=10.0),
}
_COLUMNS = (
    Column("method", "method"),
    Column("test NLL", "nll_mean", ".4f", "nll_sd"),
    Column("NFE", "nfe", ".0f"),
    Column("parameters", "parameters", ",.0f"),
    Column("s", "seconds", ".0f"),
)


@dataclass(frozen=True)
class ToyFlow(AbstractExperiment):
    """The paper's toy flow: two circles, a C-NODE of 2,136 parameters against a NODE of 5,034."""

    name: ClassVar[str] = "toy-flow"

    recipe: Recipe = "paper"
    """paper: the paper's settings. sharp: the same with sharper fields, and a larger learning rate that decays to 0.
    timed: fields that read s, too (2,152 and 4,546 parameters), and a larger learning rate still. matching: flow
    matching instead of maximum likelihood, with Fourier features (13,412 and 9,262 parameters)."""
    data: Toy = "circles"
    """The points. The paper's fields, of the recipes paper and sharp, are for circles only."""
    seeds: int = 3
    """Seeds per method."""
    iterations: int = 1_000
    """Steps of training: a multiple of 10, or less than 10."""

    @property
    def label(self) -> str:
        return f"{self.name}-{self.recipe}" + ("" if self.data == "circles" else f"-{self.data}")

    def config(self, method: FlowMethod) -> DensityConfig:
        """Build the config of a method: 1,024 points per iteration and dopri5 at 1e-5; the rest is the recipe's.

        - `paper` is the paper's: Adam 1e-3, fields of u alone, s over 10, N(0, 0.1·I) at the end.
        - `sharp` is the same with sharper fields, and Adam from 3e-3 down to 0.
        - `timed` has fields that read s, too, s over 1, N(0, I) at the end, and Adam from 1e-2 down to 0.
        - `matching` is flow matching with Fourier features and coupled partners, Adam from 1e-2 down to 0, and dopri5
          at 1e-4 for the likelihoods. An iteration is four steps of 256 points.

        The points are drawn beforehand, and each is used once in every tenth of the iterations.

        Args:
            method: node or c-node.

        Returns:
            The config.

        Raises:
            ValueError: If there are no iterations, they cannot be divided into ten epochs, or the recipe is not for
                these points.
        """
        check_range(self, least={"iterations": 1})
        if self.iterations > _EPOCHS and self.iterations % _EPOCHS:
            raise ValueError(f"iterations must be a multiple of {_EPOCHS}, or less than that, got {self.iterations}")
        if self.data != "circles" and self.recipe in ("paper", "sharp"):
            raise ValueError(f"recipe {self.recipe} is for circles: use --recipe timed or matching for {self.data}")
        matching = self.recipe == "matching"
        return DensityConfig(
            data=self.data,
            method=method,
            objective="matching" if matching else "likelihood",
            preset="small" if self.recipe in ("timed", "matching") else "paper",
            passes=1,
            sharpness={"sharp": 8.0, "timed": 1.0}.get(self.recipe),
            frequency_scale=6.0 if matching else None,
            points=max(self.iterations // _EPOCHS, 1) * _BATCH,
            optimizer=_OPTIMIZERS[self.recipe],
            loop=LoopConfig(epochs=min(_EPOCHS, self.iterations), batch_size=_BATCH // 4 if matching else _BATCH),
        )

    def run(self, folder: Path, sweep: Sweep) -> Report:
        methods: tuple[FlowMethod, ...] = ("c-node", "node")
        results = compare([(self.config(method), folder) for method in methods], seeds=self.seeds, sweep=sweep)
        plot_first_runs(results)
        curves = record_curves({"": results}, "nll")
        record = {"recipe": self.recipe, "data": self.data, "iterations": self.iterations, "dynamics": curves}
        return Report(
            name=self.name,
            title=f"{self.data}, recipe {self.recipe}, {self.iterations:,} iterations, {self.seeds} seeds",
            columns=_COLUMNS,
            answer={"rows": [result.row("nll") for result in results]},
            record=record,
            figures=self.figures(record),
        )

    def figures(self, stored: Mapping[str, Any]) -> Mapping[str, Figure]:
        return {"toy-flow.png": lambda path, curves=stored["dynamics"]: plot_dynamics(curves, path, metric="nll")}
