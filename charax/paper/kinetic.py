"""Regularization by the kinetic energy: fewer function evaluations for the same likelihood."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

from charax import data as datasets
from charax import plotting
from charax.models import FlowMethod
from charax.paper._comparison import MethodResult, compare, plot_curve
from charax.paper._experiment import AbstractExperiment
from charax.paper._report import Column, Figure, Report
from charax.tasks import DensityConfig
from charax.train import Sweep

_COLUMNS = (
    Column("weight", "kinetic", "g"),
    Column("test NLL", "nll_mean", ".4f", "nll_sd"),
    Column("of the first", "nll_ratio", ".1%"),
    Column("NFE", "nfe", ".1f"),
    Column("of the first", "nfe_ratio", ".0%"),
    Column("parameters", "parameters", ",.0f"),
    Column("s", "seconds", ".0f"),
)


@dataclass(frozen=True)
class Kinetic(AbstractExperiment):
    """What regularization by the kinetic energy saves: a flow with it and without. An interrupted run resumes."""

    name: ClassVar[str] = "kinetic"

    data: str = "checkerboard"
    """Data set (circles, moons, pinwheel, checkerboard), or the path of a file of points."""
    method: FlowMethod = "c-node"
    """The field of the flow."""
    sharpness: float | None = None
    """Factor inside the activations. By default 1."""
    weight: float = 1.5
    """Weight of the kinetic energy next to the NLL."""
    seeds: int = 3
    """Seeds per flow."""
    epochs: int | None = None
    """Epochs, instead of those of `charax train density`."""

    def run(self, folder: Path, sweep: Sweep) -> Report:
        if not self.weight > 0:
            raise ValueError(f"weight must be above 0, got {self.weight}: the flow without it is trained anyway")
        if datasets.load_density_data(self.data, points=100).levels is not None:
            raise ValueError(f"{self.data} has images; this compares densities of points: use checkerboard")
        plain = DensityConfig(data=self.data, method=self.method, sharpness=self.sharpness or 1.0)
        if self.epochs is not None:
            plain = replace(plain, loop=replace(plain.loop, epochs=self.epochs))
        configs = [plain, replace(plain, kinetic_penalty=self.weight)]
        results = compare([(one, folder) for one in configs], seeds=self.seeds, sweep=sweep)
        record = {"sharpness": self.sharpness, "dynamics": self._curves(results)}
        return Report(
            name=self.name,
            title=f"Regularization by the kinetic energy: {self.method} flow of {self.data}, {self.seeds} seeds",
            columns=_COLUMNS,
            answer={"rows": self._rows(results)},
            record=record,
            figures=self.figures(record),
        )

    def figures(self, stored: Mapping[str, Any]) -> Mapping[str, Figure]:
        return {"kinetic.png": lambda path, curves=stored["dynamics"]: _plot(curves, path)}

    def _curves(self, results: list[MethodResult]) -> list[dict[str, Any]]:
        """What the figure shows, as it is stored."""
        return [
            {"kinetic": weight} | {f"validation_{metric}": one.learning_curves(metric) for metric in _LABELS}
            for weight, one in zip((0.0, self.weight), results, strict=True)
        ]

    def _rows(self, results: list[MethodResult]) -> list[dict[str, Any]]:
        """Test NLL and function evaluations of both, and their ratios to the first."""
        rows = [one.row("nll") | {"kinetic": weight} for weight, one in zip((0.0, self.weight), results, strict=True)]
        return [
            row
            | {f"{name}_ratio": _ratio(row[key], rows[0][key]) for name, key in (("nll", "nll_mean"), ("nfe", "nfe"))}
            for row in rows
        ]


_LABELS = {"nll": "validation NLL, nats", "nfe": "function evaluations per solve"}


def _plot(curves: Sequence[Mapping[str, Any]], path: Path) -> Path:
    """Validation NLL and function evaluations over the epochs: mean over seeds, and the band of all seeds."""
    with plotting.save_figure(path, width=7.0, height=3.2) as figure:
        for axis, (metric, label) in zip(figure.subplots(1, 2), _LABELS.items(), strict=True):
            for row, color in zip(curves, (plotting.EXACT, plotting.C_NODE), strict=True):
                weight = row["kinetic"]
                name = f"kinetic energy, weight {weight:g}" if weight else "no regularization"
                plot_curve(axis, row[f"validation_{metric}"], color, name)
            axis.set(xlabel="epoch", ylabel=label)
        figure.axes[0].legend()
        figure.suptitle("Learning curves on validation data, mean and range over seeds", fontsize="medium")
    return path


def _ratio(value: float | None, first: float | None) -> float | None:
    return None if value is None or not first else value / first
