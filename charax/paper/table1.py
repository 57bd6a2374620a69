"""The paper's Table 1: eight methods on three data sets."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

from charax.data import load_dataset
from charax.models import METHOD_NAMES, Preset
from charax.models._paper_models import RECIPES
from charax.paper._comparison import Compared, compare, count_architecture, match_width
from charax.tasks.classification import ClassificationConfig
from charax.train import AbstractProgress, LoopConfig, OptimizerConfig, SolverConfig

Budget = Literal["smoke", "demo", "cpu", "long", "paper"]


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


Training = Literal["adjoint", "Euler"]
FIGURE_METHODS = ("node", "c-node")
"""The methods whose training the paper's figure shows."""


class Budgeted(NamedTuple):
    """How large the models for one data set are, and how long they train."""

    preset: Preset
    epochs: int


class Plan(NamedTuple):
    """What a budget trains, and what it changes about the paper's setting."""

    datasets: Mapping[str, "Budgeted"]
    seeds: int
    batch_size: int
    training: Training
    optimizer: OptimizerConfig
    other: SolverConfig
    """How the other training of the figure integrates: the paper shows the adjoint above and Euler below."""
    changed: str
    methods: tuple[str, ...] = METHOD_NAMES
    integration: SolverConfig = SolverConfig()
    """Of the table, where it is not the preset's."""


PLANS: Mapping[Budget, Plan] = MappingProxyType(
    {
        "smoke": Plan(
            datasets={"digits": Budgeted("dense", 6)},
            seeds=1,
            batch_size=64,
            training="Euler",
            optimizer=OptimizerConfig(),
            other=SolverConfig(solver="midpoint", steps=1, adjoint="backsolve"),
            integration=SolverConfig(solver="euler", steps=2),
            changed="digits instead of the paper's data; perceptrons instead of convolutions, which take minutes to "
            "compile, and all methods have the C-NODE's parameters; 6 epochs; two Euler steps (the figure's adjoint: "
            "a midpoint step, solved back); one seed",
        ),
        "demo": Plan(
            datasets={"digits": Budgeted("small", 8)},
            methods=FIGURE_METHODS,
            seeds=1,
            batch_size=64,
            training="Euler",
            optimizer=OptimizerConfig(),
            other=SolverConfig(solver="midpoint", steps=1, adjoint="backsolve"),
            changed="NODE and C-NODE only; digits instead of the paper's data; 8 epochs; a learned stem, width 24 for "
            "the C-NODE, the NODE matches its parameters; two Euler steps; one seed",
        ),
        "cpu": Plan(
            datasets={"svhn": Budgeted("small", 10), "cifar10": Budgeted("small", 10), "mnist": Budgeted("small", 3)},
            seeds=1,
            batch_size=128,
            training="Euler",
            optimizer=OptimizerConfig(),
            other=SolverConfig(solver="midpoint", steps=4, adjoint="backsolve"),
            changed="a learned stem to a grid of 8x8 (MNIST: 10x10); width 24 for the C-NODE, the others match its "
            "parameters; two Euler steps (the figure's adjoint: four midpoint steps, solved back); batches of 128; "
            "10 epochs (MNIST: 3); AdamW 5e-3, decay 5e-2, cosine; one seed",
        ),
        "long": Plan(
            datasets={"svhn": Budgeted("cpu", 10), "cifar10": Budgeted("cpu", 20)},
            methods=FIGURE_METHODS,
            seeds=3,
            batch_size=128,
            training="Euler",
            optimizer=OptimizerConfig(),
            other=SolverConfig(solver="midpoint", steps=4, adjoint="backsolve"),
            changed="NODE and C-NODE only; a learned stem to a grid of 16x16; width 32 for the C-NODE, the NODE "
            "matches its parameters; two Euler steps; batches of 128; 10 epochs (CIFAR-10: 20); AdamW 5e-3, decay "
            "5e-2, cosine; three seeds",
        ),
        "paper": Plan(
            datasets={name: Budgeted("paper", 100) for name in ("svhn", "cifar10", "mnist")},
            seeds=5,
            batch_size=256,
            training="adjoint",
            optimizer=OptimizerConfig(learning_rate=1e-3, weight_decay=5e-4, schedule="paper"),
            other=SolverConfig(solver="euler", steps=10, adjoint="checkpoint"),
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
    dynamics: Mapping[Training, list[Compared]]
    """The runs of the figure: NODE and C-NODE, trained both ways."""

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

    def curves(self) -> list[dict[str, Any]]:
        """What the figure shows: the validation accuracy after every epoch, seed by seed."""
        return [
            {"training": training, "dataset": one.dataset, "method": one.method, "validation_accuracy": one.courses()}
            for training, compared in self.dynamics.items()
            for one in compared
        ]


def plan_rows(
    budget: Budget, *, datasets: Sequence[str] | None = None, methods: Sequence[str] | None = None
) -> list[ClassificationConfig]:
    """The settings of every row. Below the paper's budget all methods get the C-NODE's number of parameters."""
    plan = PLANS[budget]
    rows: list[ClassificationConfig] = []
    for name in datasets or tuple(plan.datasets):
        if name not in plan.datasets:
            raise ValueError(f"budget {budget} has no data set {name!r}; choose from {', '.join(plan.datasets)}")
        preset, epochs = plan.datasets[name]
        data = None if preset == "paper" else load_dataset(name)
        for method in methods or plan.methods:
            one = ClassificationConfig(
                data=name,
                method=method,  # pyright: ignore[reportArgumentType]
                preset=preset,
                optimizer=plan.optimizer,
                solver=plan.integration,
                loop=LoopConfig(epochs=epochs, batch_size=plan.batch_size),
            )
            if data is not None:
                shape, classes = data.input_shape, len(data.classes)
                reference = ClassificationConfig(data=name, method="c-node", preset=preset)
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
    both_trainings: bool = True,
    folder: Path,
    progress: AbstractProgress,
) -> Table:
    """Train every row, or go on where an interrupted table stopped.

    Without `both_trainings` the figure shows only the training of the table.
    """
    plan = PLANS[budget]
    seeds = plan.seeds if seeds is None else seeds
    rows = plan_rows(budget, datasets=datasets, methods=methods)
    compared = compare(rows, seeds=seeds, folder=folder, progress=progress)
    shown = [row for row in rows if row.method in FIGURE_METHODS]
    other: Training = "Euler" if plan.training == "adjoint" else "adjoint"
    again = [replace(row, solver=plan.other) for row in shown if both_trainings]
    dynamics: dict[Training, list[Compared]] = {
        plan.training: [one for one in compared if one.method in FIGURE_METHODS],
        other: compare(again, seeds=seeds, folder=folder / other.lower(), progress=progress),
    }
    return Table(budget, plan.changed, compared, {name: dynamics[name] for name in ("adjoint", "Euler")})
