"""The paper's Table 1: eight methods on three data sets."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

from charax.data import load_dataset
from charax.experiments.comparison import Compared, compare, count_architecture, match_width
from charax.models import METHOD_NAMES
from charax.models.paper import RECIPES
from charax.training import AbstractProgress, ClassifySettings, LoopSettings, OptimiserSettings

Budget = Literal["smoke", "cpu", "paper"]


class Reported(NamedTuple):
    """What the paper reports: accuracy in percent, and evaluations of the field."""

    accuracy: float
    nfe: int


REPORTED: Mapping[str, Mapping[str, Reported]] = MappingProxyType(
    {
        "svhn": {
            "node": Reported(75.28, 131),
            "c-node": Reported(82.19, 124),
            "anode": Reported(89.8, 167),
            "anode+c-node": Reported(92.23, 146),
            "2nd-order": Reported(88.22, 161),
            "2nd-order+c-node": Reported(92.37, 135),
            "il-node": Reported(89.69, 195),
            "il-node+c-node": Reported(93.31, 95),
        },
        "cifar10": {
            "node": Reported(56.30, 152),
            "c-node": Reported(64.28, 151),
            "anode": Reported(70.99, 177),
            "anode+c-node": Reported(71.36, 224),
            "2nd-order": Reported(70.84, 189),
            "2nd-order+c-node": Reported(73.68, 131),
            "il-node": Reported(72.55, 134),
            "il-node+c-node": Reported(73.78, 85),
        },
        "mnist": {
            "node": Reported(96.90, 72),
            "c-node": Reported(97.56, 72),
            "anode": Reported(99.12, 68),
            "anode+c-node": Reported(99.20, 60),
            "2nd-order": Reported(99.35, 52),
            "2nd-order+c-node": Reported(99.38, 61),
            "il-node": Reported(99.33, 53),
            "il-node+c-node": Reported(99.33, 60),
        },
    }
)


class Plan(NamedTuple):
    """What a budget trains, and what it changes about the paper's setting."""

    datasets: tuple[str, ...]
    seeds: int
    epochs: Mapping[str, int]
    batch_size: int
    preset: Literal["small", "cpu", "paper"]
    optimiser: OptimiserSettings
    changed: str


PLANS: Mapping[Budget, Plan] = MappingProxyType(
    {
        "smoke": Plan(
            datasets=("digits",),
            seeds=1,
            epochs={"digits": 8},
            batch_size=64,
            preset="small",
            optimiser=OptimiserSettings(),
            changed="digits instead of the paper's data; 8 epochs; a learned stem, width 24 or what matches its "
            "parameters, two Euler steps; one seed",
        ),
        "cpu": Plan(
            datasets=("svhn", "cifar10", "mnist"),
            seeds=1,
            epochs={"svhn": 6, "cifar10": 6, "mnist": 1},
            batch_size=128,
            preset="cpu",
            optimiser=OptimiserSettings(),
            changed="a learned stem to a grid of half the side; width 32 or what matches its parameters; two Euler "
            "steps; 1 epoch of MNIST, 6 of the others; one seed",
        ),
        "paper": Plan(
            datasets=("svhn", "cifar10", "mnist"),
            seeds=5,
            epochs={"svhn": 100, "cifar10": 100, "mnist": 100},
            batch_size=256,
            preset="paper",
            optimiser=OptimiserSettings(learning_rate=1e-3, weight_decay=5e-4, schedule="paper"),
            changed="nothing but what the published training gets wrong: logits instead of a second softmax, a "
            "validation split that chooses, gradients clipped at norm 1, truly second-order models",
        ),
    }
)


class Table(NamedTuple):
    """The rows, and the runs behind them."""

    budget: Budget
    changed: str
    compared: list[Compared]

    def rows(self) -> list[dict[str, Any]]:
        """Flat rows with the paper's numbers beside ours; accuracies as fractions."""
        rows: list[dict[str, Any]] = []
        for one in self.compared:
            reported = REPORTED.get(one.dataset, {}).get(one.method)
            recipes = RECIPES.get(one.dataset, {})  # pyright: ignore[reportCallIssue, reportArgumentType]
            recipe = recipes.get(one.method)  # pyright: ignore[reportCallIssue, reportArgumentType]
            rows.append(
                one.row()
                | {
                    "parameters_paper": None if recipe is None else recipe.parameters,
                    "accuracy_paper": None if reported is None else reported.accuracy / 100,
                    "nfe_paper": None if reported is None else reported.nfe,
                }
            )
        return rows


def plan_rows(
    budget: Budget, *, datasets: Sequence[str] | None = None, methods: Sequence[str] | None = None
) -> list[ClassifySettings]:
    """The settings of every row. Below the paper's budget all methods get the C-NODE's number of parameters."""
    plan = PLANS[budget]
    rows: list[ClassifySettings] = []
    for name in datasets or plan.datasets:
        if name not in plan.datasets:
            raise ValueError(f"budget {budget} has no data set {name!r}; choose from {', '.join(plan.datasets)}")
        data = None if plan.preset == "paper" else load_dataset(name)
        for method in methods or METHOD_NAMES:
            one = ClassifySettings(
                data=name,
                method=method,  # pyright: ignore[reportArgumentType]
                preset=plan.preset,
                optimiser=plan.optimiser,
                loop=LoopSettings(epochs=plan.epochs[name], batch_size=plan.batch_size),
            )
            if data is not None:
                shape, classes = data.input_shape, len(data.classes)
                reference = ClassifySettings(data=name, method="c-node", preset=plan.preset)
                target = count_architecture(reference, shape, classes)
                one = one if method == "c-node" else match_width(one, shape, classes, target=target)
            rows.append(one)
    return rows


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
