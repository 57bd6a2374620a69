"""The paper's Table 2: densities of images, NODE and C-NODE flows of equal size."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, ClassVar, Literal, NamedTuple

from charax import data, models
from charax.models import FlowMethod
from charax.paper._comparison import MethodResult, compare, largest_width, plot_dynamics, plot_first_runs, record_curves
from charax.paper._experiment import AbstractExperiment, choose
from charax.paper._report import Column, Figure, Report
from charax.tasks import DensityConfig
from charax.train import LoopConfig, OptimizerConfig, SolverConfig, Sweep

Budget = Literal["smoke", "cpu", "full", "paper"]
METHODS: tuple[FlowMethod, ...] = ("node", "c-node")


class Published(NamedTuple):
    """A row that the paper quotes, or FFJORD's: bits/dim, and parameters where they are given."""

    dataset: str
    method: str
    bits_per_dim: float
    parameters: float | None


PUBLISHED = (
    Published("mnist", "FFJORD", 0.99, 800_646),
    Published("cifar10", "FFJORD", 3.40, 1_358_882),
    Published("mnist", "Real NVP", 1.05, None),
    Published("mnist", "Glow", 1.06, None),
    Published("mnist", "Residual Flow", 0.97, 16.6e6),
    Published("mnist", "CP-Flow", 1.02, 2.9e6),
    Published("cifar10", "Real NVP", 3.49, None),
    Published("cifar10", "Glow", 3.35, 44.0e6),
    Published("cifar10", "RQ-NSF", 3.38, 11.8e6),
    Published("cifar10", "Residual Flow", 3.28, 25.2e6),
    Published("cifar10", "CP-Flow", 3.40, 1.9e6),
)


class Case(NamedTuple):
    """A data set at one size, and how it is trained."""

    data: str
    epochs: int
    batch_size: int
    shrink: int = 1
    width: int | None = None
    passes: int | None = None
    learning_rate: float | None = None
    """Instead of the budget's."""


class Setting(NamedTuple):
    """What a budget trains, and what it changes from the paper's setting."""

    cases: tuple[Case, ...]
    seeds: int
    preset: Literal["small", "paper"]
    solver: SolverConfig
    optimizer: OptimizerConfig
    changed: str
    objective: Literal["likelihood", "matching"] = "likelihood"


_OPTIMIZER = OptimizerConfig(learning_rate=5e-3, weight_decay=0.0, clip=10.0)

SETTINGS: Mapping[Budget, Setting] = MappingProxyType(
    {
        "smoke": Setting(
            cases=(Case("digits", 1, 128, width=8),),
            seeds=1,
            preset="small",
            solver=SolverConfig(),
            optimizer=_OPTIMIZER,
            changed="digits instead of the paper's data; 1 epoch; two hidden layers of width 8; bosh3 at 1e-2; one "
            "seed: it shows that the pipeline runs, and nothing about which flow is better",
        ),
        "cpu": Setting(
            cases=(Case("digits", 40, 64), Case("mnist", 1, 128, shrink=2)),
            seeds=1,
            preset="small",
            solver=SolverConfig(),
            optimizer=_OPTIMIZER,
            changed="digits, and MNIST shrunk to 14x14, instead of the paper's data; two hidden layers of width 24, or "
            "what matches its parameters; bosh3 at 1e-2; 40 epochs of digits, 1 of MNIST; one seed, unless more are "
            "asked for",
        ),
        "full": Setting(
            cases=(
                Case("mnist", 8, 128, passes=4),
                # Few evaluations: one takes as long as several passes over the parts.
                Case("cifar10", 9, 32, passes=12, learning_rate=2e-3),
                Case("svhn", 7, 32, passes=12, learning_rate=2e-3),
            ),
            seeds=1,
            preset="small",
            solver=SolverConfig(),
            optimizer=OptimizerConfig(learning_rate=5e-3, weight_decay=0.0, schedule="cosine", clip=10.0, ema=0.999),
            changed="flow matching instead of likelihood, of one field with a U-Net instead of a multi-scale flow, "
            "after every pixel of MNIST has become normal through a histogram of its own, and colour images have been "
            "whitened; the images at full size; 32 passes over MNIST in mini-batches of 128, 108 over the part of "
            "CIFAR-10 and 84 over that of SVHN in mini-batches of 32 with a smaller learning rate; the moving average "
            "of the weights over 1,000 steps; the likelihood of 1,000 test images with dopri5 at 1e-3 and one probe; "
            "one seed, unless more are asked for",
            objective="matching",
        ),
        "paper": Setting(
            cases=tuple(Case(data, 100, 200) for data in ("mnist", "cifar10", "svhn")),
            seeds=4,
            preset="paper",
            solver=SolverConfig(),
            optimizer=OptimizerConfig(learning_rate=1e-3, weight_decay=0.0, schedule="warmup", clip=1e6),
            changed="nothing that the paper states; the widths are those that come closest to its parameters, and a "
            "validation split selects the weights",
        ),
    }
)

_COLUMNS = (
    Column("data set", "dataset"),
    Column("method", "method"),
    Column("bits/dim", "bits_per_dim_mean", ".3f", "bits_per_dim_sd"),
    Column("paper's", "bits_per_dim_paper", ".2f"),
    Column("NFE", "nfe", ".0f"),
    Column("paper's", "nfe_paper", ".0f"),
    Column("parameters", "parameters", ",.0f"),
    Column("paper's", "parameters_paper", ",.0f"),
    Column("s", "seconds", ".0f"),
)


@dataclass(frozen=True)
class Table2(AbstractExperiment):
    """The paper's Table 2: bits/dim, function evaluations and parameters of flows. An interrupted run resumes."""

    name: ClassVar[str] = "table2"

    budget: Budget = "smoke"
    """smoke: digits, to see that it runs. cpu: digits and small MNIST. full: the paper's data at their full size, by
    flow matching; an hour each. paper: the paper's setting, for a GPU."""
    dataset: tuple[str, ...] = ()
    """Only these data sets."""
    method: tuple[FlowMethod, ...] = ()
    """Only these methods."""
    seeds: int | None = None
    """Seeds per row, instead of the budget's."""
    epochs: int | None = None
    """Epochs per run, instead of the budget's."""

    @property
    def label(self) -> str:
        return f"{self.name}-{self.budget}"

    def configs(self) -> list[DensityConfig]:
        """Build the config of every row. Below the paper's budget both methods get the C-NODE's number of parameters.

        Returns:
            The configs, in the order of the table.

        Raises:
            ValueError: If the budget does not have a data set.
        """
        setting = SETTINGS[self.budget]
        chosen = choose(self.dataset, [case.data for case in setting.cases], "data set", self.budget)
        configs: list[DensityConfig] = []
        for case in (case for case in setting.cases if case.data in chosen):
            epochs = case.epochs if self.epochs is None else self.epochs
            for method in self.method or METHODS:
                one = DensityConfig(
                    data=case.data,
                    method=method,
                    preset=setting.preset,
                    width=case.width,
                    shrink=case.shrink,
                    passes=case.passes,
                    objective=setting.objective,
                    solver=setting.solver,
                    optimizer=replace(
                        setting.optimizer, learning_rate=case.learning_rate or setting.optimizer.learning_rate
                    ),
                    loop=LoopConfig(epochs=epochs, batch_size=case.batch_size),
                )
                configs.append(one if setting.preset == "paper" or method == "c-node" else _match(one))
        return configs

    def run(self, folder: Path, sweep: Sweep) -> Report:
        setting = SETTINGS[self.budget]
        seeds = setting.seeds if self.seeds is None else self.seeds
        results = compare([(one, folder) for one in self.configs()], seeds=seeds, sweep=sweep)
        plot_first_runs(results)
        curves = record_curves({"": results}, "bits_per_dim")
        record = {"budget": self.budget, "changed": setting.changed, "dynamics": curves}
        return Report(
            name=self.name,
            title=f"Table 2, budget {self.budget}",
            columns=_COLUMNS,
            answer={"rows": _rows(results)},
            note=f"Changed from the paper: {setting.changed}.",
            record=record,
            figures=self.figures(record),
        )

    def figures(self, stored: Mapping[str, Any]) -> Mapping[str, Figure]:
        curves = stored["dynamics"]
        return {"table2.png": lambda path: plot_dynamics(curves, path, metric="bits_per_dim")}


def _rows(results: list[MethodResult]) -> list[dict[str, Any]]:
    """Flat rows with the paper's numbers next to ours, and then those of other flows."""
    rows: list[dict[str, Any]] = []
    for one in results:
        paper = models.PAPER_FLOWS.get(one.dataset, {}).get(one.method)  # pyright: ignore[reportArgumentType]
        rows.append(
            one.row("bits_per_dim")
            | {
                "bits_per_dim_paper": None if paper is None else paper.bits_per_dim,
                "nfe_paper": None if paper is None else paper.nfe,
                "parameters_paper": None if paper is None else paper.parameters,
            }
        )
    return rows + [dict.fromkeys(rows[0]) | row for row in quote({one.dataset for one in results})]


def quote(datasets: Collection[str]) -> list[dict[str, Any]]:
    """The published rows of other flows for these data sets."""
    return [
        {
            "dataset": row.dataset,
            "method": row.method,
            "bits_per_dim_paper": row.bits_per_dim,
            "parameters_paper": row.parameters,
        }
        for row in PUBLISHED
        if row.dataset in datasets
    ]


def _match(config: DensityConfig) -> DensityConfig:
    """The width that gives a plain flow as many parameters as the characteristic one has, or a few less."""
    height, width, channels = data.DATASETS[config.data].shape
    shape = (height // config.shrink, width // config.shrink, channels)
    count = lambda one: one.design(shape, 256)[0].count(shape)
    target = count(replace(config, method="c-node"))
    return replace(config, width=largest_width(lambda size: count(replace(config, width=size)), target))
