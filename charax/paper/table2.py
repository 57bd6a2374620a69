"""The paper's Table 2: densities of images, NODE and C-NODE flows of equal size."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

from charax.data import DATASETS
from charax.models.flows import PAPER_FLOWS
from charax.paper._comparison import Compared, compare, largest_width
from charax.tasks.density import DensityConfig
from charax.train import AbstractProgress, LoopConfig, OptimizerConfig, SolverConfig

Budget = Literal["smoke", "cpu", "paper"]
METHODS = ("node", "c-node")


class Published(NamedTuple):
    """A row that the paper quotes: bits/dim, and parameters where it gives them."""

    dataset: str
    method: str
    bits_per_dim: float
    parameters: float | None


PUBLISHED = (
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
    """A data set at one size, and how long it is trained."""

    data: str
    epochs: int
    batch_size: int
    shrink: int = 1
    width: int | None = None


class Plan(NamedTuple):
    """What a budget trains, and what it changes about the paper's setting."""

    cases: tuple[Case, ...]
    seeds: int
    preset: Literal["small", "paper"]
    solver: SolverConfig
    optimizer: OptimizerConfig
    changed: str


_FAST = OptimizerConfig(learning_rate=5e-3, weight_decay=0.0, clip=10.0)

PLANS: Mapping[Budget, Plan] = MappingProxyType(
    {
        "smoke": Plan(
            cases=(Case("digits", 1, 128, width=8),),
            seeds=1,
            preset="small",
            solver=SolverConfig(),
            optimizer=_FAST,
            changed="digits instead of the paper's data; 1 epoch; two hidden layers of width 8; bosh3 at 1e-2; one "
            "seed: it shows that the pipeline runs, and nothing about which flow is better",
        ),
        "cpu": Plan(
            cases=(Case("digits", 40, 64), Case("mnist", 1, 128, shrink=2)),
            seeds=1,
            preset="small",
            solver=SolverConfig(),
            optimizer=_FAST,
            changed="digits, and MNIST shrunk to 14x14, instead of the paper's data; two hidden layers of width 24, or "
            "what matches its parameters; bosh3 at 1e-2; 40 epochs of digits, 1 of MNIST; one seed, unless more are "
            "asked for",
        ),
        "paper": Plan(
            cases=tuple(Case(data, 100, 200) for data in ("mnist", "cifar10", "svhn")),
            seeds=4,
            preset="paper",
            solver=SolverConfig(),
            optimizer=OptimizerConfig(learning_rate=1e-3, weight_decay=0.0, schedule="warmup", clip=1e6),
            changed="nothing that the paper states; the widths are those that come closest to its parameters, and a "
            "validation part chooses the weights",
        ),
    }
)


class Table(NamedTuple):
    """The rows, and the runs behind them."""

    budget: Budget
    changed: str
    compared: list[Compared]

    def rows(self) -> list[dict[str, Any]]:
        """Flat rows with the paper's numbers beside ours, and then the rows that the paper quotes."""
        rows: list[dict[str, Any]] = []
        for one in self.compared:
            paper = PAPER_FLOWS.get(one.dataset, {}).get(one.method)  # pyright: ignore[reportArgumentType]
            rows.append(
                one.row("bits_per_dim")
                | {
                    "bits_per_dim_paper": None if paper is None else paper.bits_per_dim,
                    "nfe_paper": None if paper is None else paper.nfe,
                    "parameters_paper": None if paper is None else paper.parameters,
                }
            )
        nothing = dict.fromkeys(rows[0])
        return rows + [nothing | row for row in quote({one.dataset for one in self.compared})]


def quote(datasets: Collection[str]) -> list[dict[str, Any]]:
    """The rows that the paper quotes for these data sets."""
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


def plan_rows(
    budget: Budget, *, datasets: Sequence[str] | None = None, methods: Sequence[str] | None = None
) -> list[DensityConfig]:
    """The settings of every row. Below the paper's budget both methods get the C-NODE's number of parameters."""
    plan = PLANS[budget]
    known = [case.data for case in plan.cases]
    for name in datasets or ():
        if name not in known:
            raise ValueError(f"budget {budget} has no data set {name!r}; choose from {', '.join(known)}")
    rows: list[DensityConfig] = []
    for case in (case for case in plan.cases if not datasets or case.data in datasets):
        for method in methods or METHODS:
            one = DensityConfig(
                data=case.data,
                method=method,  # pyright: ignore[reportArgumentType]
                preset=plan.preset,
                width=case.width,
                shrink=case.shrink,
                solver=plan.solver,
                optimizer=plan.optimizer,
                loop=LoopConfig(epochs=case.epochs, batch_size=case.batch_size),
            )
            rows.append(one if plan.preset == "paper" or method == "c-node" else _match(one))
    return rows


def _match(settings: DensityConfig) -> DensityConfig:
    """The width that gives a plain flow as many parameters as the characteristic one has, or a few less."""
    height, width, channels = DATASETS[settings.data].shape
    shape = (height // settings.shrink, width // settings.shrink, channels)
    count = lambda one: one.design(shape, 256)[0].count(shape)
    target = count(replace(settings, method="c-node"))
    return replace(settings, width=largest_width(lambda size: count(replace(settings, width=size)), target))


def run(
    budget: Budget,
    *,
    datasets: Sequence[str] | None = None,
    methods: Sequence[str] | None = None,
    seeds: int | None = None,
    folder: Path,
    progress: AbstractProgress,
) -> Table:
    """Train every row, or go on where an interrupted table stopped."""
    plan = PLANS[budget]
    rows = plan_rows(budget, datasets=datasets, methods=methods)
    compared = compare(rows, seeds=plan.seeds if seeds is None else seeds, folder=folder, progress=progress)
    return Table(budget, plan.changed, compared)
