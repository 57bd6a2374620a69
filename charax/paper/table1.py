"""The paper's Table 1: eight methods on three data sets."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, ClassVar, Literal, NamedTuple

from charax import data, models
from charax.models import METHOD_NAMES, Method, Preset
from charax.paper import _ode_table
from charax.paper._comparison import (
    MethodResult,
    compare,
    count_parameters,
    match_width,
    plot_dynamics,
    plot_first_runs,
    record_curves,
)
from charax.paper._experiment import AbstractExperiment, choose
from charax.paper._report import Column, Figure, Report
from charax.tasks import ClassificationConfig
from charax.train import LoopConfig, OptimizerConfig, SolverConfig, Sweep, check_range

Budget = Literal["smoke", "demo", "cpu", "long", "ode", "exact", "paper"]
Training = Literal["adjoint", "Euler"]
FIGURE_METHODS: tuple[Method, ...] = ("node", "c-node")
"""The methods whose training the paper's figure shows."""


class Reported(NamedTuple):
    """What the paper reports: accuracy in percent, and function evaluations."""

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


class Size(NamedTuple):
    """How large the models for one data set are, and how long they train."""

    preset: Preset
    epochs: int


class Setting(NamedTuple):
    """What a budget trains, and what it changes from the paper's setting."""

    datasets: Mapping[str, Size]
    seeds: int
    batch_size: int
    training: Training
    optimizer: OptimizerConfig
    other: SolverConfig
    """Solver of the second training of the figure: the paper shows the adjoint above and Euler below."""
    changed: str
    methods: tuple[Method, ...] = METHOD_NAMES
    solver: SolverConfig = SolverConfig()
    """Solver of the table, where it is not the preset's."""
    shrink: int = 1
    """Images are averaged over squares of this many pixels per side."""
    max_samples: int | None = None
    """Only the first so many training images."""
    fewer_seeds: int | None = None
    """Seeds of the methods that the figure does not show."""
    steps_per_epoch: int | None = None
    """Steps per epoch, where an epoch is less than a pass."""


SETTINGS: Mapping[Budget, Setting] = MappingProxyType(
    {
        "smoke": Setting(
            datasets={"digits": Size("dense", 6)},
            seeds=1,
            batch_size=64,
            training="Euler",
            optimizer=OptimizerConfig(),
            other=SolverConfig(solver="midpoint", steps=1, adjoint="backsolve"),
            solver=SolverConfig(solver="euler", steps=2),
            changed="digits instead of the paper's data; perceptrons instead of convolutions, which take minutes to "
            "compile, and all methods have the C-NODE's number of parameters; 6 epochs; two Euler steps (the figure's "
            "adjoint: a midpoint step, backsolve); one seed",
        ),
        "demo": Setting(
            datasets={"digits": Size("small", 8)},
            methods=FIGURE_METHODS,
            seeds=1,
            batch_size=64,
            training="Euler",
            optimizer=OptimizerConfig(),
            other=SolverConfig(solver="midpoint", steps=1, adjoint="backsolve"),
            changed="NODE and C-NODE only; digits instead of the paper's data; 8 epochs; a learned stem, width 24 for "
            "the C-NODE, the NODE matches its parameters; two Euler steps; one seed",
        ),
        "cpu": Setting(
            datasets={"svhn": Size("small", 10), "cifar10": Size("small", 10), "mnist": Size("small", 3)},
            seeds=1,
            batch_size=128,
            training="Euler",
            optimizer=OptimizerConfig(),
            other=SolverConfig(solver="midpoint", steps=4, adjoint="backsolve"),
            changed="a learned stem to a grid of 8x8 (MNIST: 10x10); width 24 for the C-NODE, the others match its "
            "parameters; two Euler steps (the figure's adjoint: four midpoint steps, backsolve); batches of 128; "
            "10 epochs (MNIST: 3); AdamW 5e-3, decay 5e-2, cosine; one seed",
        ),
        "long": Setting(
            datasets={"svhn": Size("cpu", 10), "cifar10": Size("cpu", 20)},
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
        "ode": Setting(
            datasets={name: Size("ode", 8) for name in ("svhn", "cifar10", "mnist")},
            seeds=3,
            fewer_seeds=2,
            batch_size=32,
            steps_per_epoch=70,  # a quarter of a pass: the learning curves are the paper's second claim
            training="adjoint",
            optimizer=OptimizerConfig(learning_rate=5e-3),
            other=SolverConfig(solver="euler", steps=10, adjoint="checkpoint"),
            shrink=2,
            max_samples=10_000,
            changed="subsets of 10,000 training and 2,000 test images (CIFAR-10's went through JPEG once), averaged to "
            "16x16 (MNIST: 14x14); the paper's layers on the raw channels, width 20 for the C-NODE and for the others "
            "what gives the paper's ratio of parameters; the velocity ends without an activation; trained with bosh3 "
            "at 1e-2, tested at a tolerance a tenth of which changes nothing; batches of 32; 560 steps, two "
            "passes; AdamW 5e-3, decay 5e-2, cosine, the same for all methods (the best of two batch sizes and three "
            "learning rates for NODE and C-NODE together, on validation); three seeds, two for the methods "
            "other than NODE and C-NODE",
        ),
        "exact": Setting(
            datasets={"mnist": Size("paper", 8)},
            methods=FIGURE_METHODS,
            seeds=1,
            batch_size=32,
            steps_per_epoch=35,
            training="adjoint",
            optimizer=OptimizerConfig(learning_rate=1e-3, weight_decay=5e-4, schedule="cosine"),
            other=SolverConfig(solver="euler", steps=10, adjoint="checkpoint"),
            solver=SolverConfig(solver="bosh3", rtol=1e-2, atol=1e-2, adjoint="checkpoint"),
            max_samples=10_000,
            changed="NODE and C-NODE on MNIST only, with the paper's layers, widths and images of 28x28; 10,000 images "
            "to train and 2,000 to test; trained with bosh3 at 1e-2, tested at a tolerance a tenth of which changes "
            "nothing; batches of 32; 280 steps, a pass; the paper's AdamW 1e-3 and decay 5e-4, on a cosine; one seed",
        ),
        "paper": Setting(
            datasets={name: Size("paper", 100) for name in ("svhn", "cifar10", "mnist")},
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

_COLUMNS = (
    Column("data set", "dataset"),
    Column("method", "method"),
    Column("accuracy", "accuracy_mean", ".2%", "accuracy_sd"),
    Column("paper's", "accuracy_paper", ".2%"),
    Column("NFE", "nfe", ".0f"),
    Column("paper's", "nfe_paper", ".0f"),
    Column("parameters", "parameters", ",.0f"),
    Column("paper's", "parameters_paper", ",.0f"),
    Column("s", "seconds", ".0f"),
)


@dataclass(frozen=True)
class Table1(AbstractExperiment):
    """The paper's Table 1: accuracy, function evaluations and parameters of eight methods. It resumes."""

    name: ClassVar[str] = "table1"

    budget: Budget = "smoke"
    """smoke: digits without convolutions, a minute. demo: NODE and C-NODE on digits. cpu: the paper's data, narrower
    and shorter. long: NODE and C-NODE on the colour images, three seeds, minutes each. ode: ODEs of the raw image,
    as the paper has them, on small subsets; hours. exact: the paper's NODE and C-NODE on MNIST, as far as an hour of a
    CPU takes them. paper: the paper's setting, for a GPU."""
    dataset: tuple[str, ...] = ()
    """Only these data sets."""
    method: tuple[Method, ...] = ()
    """Only these methods."""
    seeds: int | None = None
    """Seeds per row, instead of the budget's."""
    epochs: int | None = None
    """Epochs per run, instead of the budget's."""
    table_only: bool = False
    """Leave out the second training of NODE and C-NODE, which only the figure needs."""
    finished_only: bool = False
    """Train nothing: build the table from the runs that are finished. For the budgets ode and exact, whose runs may be
    made in parts, on several days or machines."""

    @property
    def label(self) -> str:
        return f"{self.name}-{self.budget}"

    def configs(self) -> list[ClassificationConfig]:
        """Build the config of every row. Below the paper's budget all methods get the C-NODE's number of parameters.

        Returns:
            The configs, in the order of the table.

        Raises:
            ValueError: If the budget does not have a data set.
        """
        setting = SETTINGS[self.budget]
        configs: list[ClassificationConfig] = []
        for name in choose(self.dataset, tuple(setting.datasets), "data set", self.budget):
            preset, epochs = setting.datasets[name]
            epochs = epochs if self.epochs is None else self.epochs
            loaded = None if preset == "paper" else data.load_dataset(name, shrink=setting.shrink)
            for method in self.method or setting.methods:
                one = ClassificationConfig(
                    data=name,
                    method=method,
                    preset=preset,
                    optimizer=setting.optimizer,
                    solver=setting.solver,
                    shrink=setting.shrink,
                    max_samples=setting.max_samples,
                    loop=LoopConfig(epochs, setting.batch_size, steps_per_epoch=setting.steps_per_epoch),
                )
                if loaded is not None and method != "c-node":
                    shape, classes = loaded.input_shape, len(loaded.classes)
                    target = count_parameters(replace(one, method="c-node"), shape, classes)
                    if preset == "ode":
                        target = round(target * _paper_ratio(name, method))
                    one = match_width(one, shape, classes, target=target)
                configs.append(one)
        return configs

    def run(self, folder: Path, sweep: Sweep) -> Report:
        if self.budget in _AS_ODES:
            return self._run_odes(folder, sweep)
        if self.finished_only:
            raise ValueError(f"--finished-only is for the budgets {' and '.join(_AS_ODES)}: leave it out")
        setting = SETTINGS[self.budget]
        seeds = setting.seeds if self.seeds is None else self.seeds
        configs = self.configs()
        other: Training = "Euler" if setting.training == "adjoint" else "adjoint"
        again = [
            (replace(one, solver=setting.other), folder / other.lower())
            for one in configs
            if one.method in FIGURE_METHODS and not self.table_only
        ]
        compared = compare([*((one, folder) for one in configs), *again], seeds=seeds, sweep=sweep)
        results = compared[: len(configs)]
        trained = {
            setting.training: [one for one in results if one.method in FIGURE_METHODS],
            other: compared[len(configs) :],
        }
        dynamics = {name: trained[name] for name in ("adjoint", "Euler")}
        if self.budget != "smoke":  # plotting would take as long as the runs themselves
            plot_first_runs(results)
        record = {"budget": self.budget, "changed": setting.changed, "dynamics": record_curves(dynamics, "accuracy")}
        return Report(
            name=self.name,
            title=f"Table 1, budget {self.budget}",
            columns=_COLUMNS,
            answer={"rows": [_row(result) for result in results]},
            note=f"Changed from the paper: {setting.changed}.",
            record=record,
            figures=self.figures(record),
        )

    def figures(self, stored: Mapping[str, Any]) -> Mapping[str, Figure]:
        dynamics = stored["dynamics"]
        steps = stored.get("steps_per_epoch")
        draw = lambda metric: lambda path: plot_dynamics(dynamics, path, metric=metric, steps_per_epoch=steps)
        known = {"accuracy": "training-dynamics.png", "nfe": "training-nfe.png"}
        return {
            name: draw(metric) for metric, name in known.items() if dynamics and f"validation_{metric}" in dynamics[0]
        }

    def _run_odes(self, folder: Path, sweep: Sweep) -> Report:
        """Train what is not recorded yet, and build the table from all records."""
        if self.table_only:
            raise ValueError(f"budget {self.budget} has no second training: leave --table-only out")
        check_range(self, least={"seeds": 1})
        setting = SETTINGS[self.budget]
        groups: dict[tuple[str, str], list[_ode_table.OdeJob]] = {}
        for config in self.configs():
            few = config.method not in FIGURE_METHODS
            seeds = self.seeds or (setting.fewer_seeds if few else None) or setting.seeds
            jobs = _ode_table.seed_jobs(config, folder, range(seeds))
            groups[config.data, config.method] = [job for job in jobs if not self.finished_only or job.is_finished()]
        groups = {key: jobs for key, jobs in groups.items() if jobs}
        if not groups:
            raise ValueError(f"{folder} has no finished run of these rows: leave --finished-only out")
        results = dict(zip(groups, sweep.run_groups(list(groups.values())), strict=True))
        rows = [
            _ode_table.row(dataset, method, records, reach=_REACH[dataset]) | _paper(dataset, method)
            for (dataset, method), records in results.items()
        ]
        reported = {name: {method: each.accuracy for method, each in rows.items()} for name, rows in REPORTED.items()}
        shown = [
            MethodResult(dataset, method, records)  # pyright: ignore[reportArgumentType]
            for (dataset, method), records in results.items()
            if method in FIGURE_METHODS
        ]
        dynamics = record_curves({"": shown}, "accuracy", "nfe")
        record = {
            "budget": self.budget,
            "changed": setting.changed,
            "steps_per_epoch": setting.steps_per_epoch,
            "dynamics": dynamics,
        }
        return Report(
            name=self.name,
            title=f"Table 1, budget {self.budget}",
            columns=_ode_table.COLUMNS,
            answer={"rows": rows, "differences": _ode_table.differences(results, reported)},
            note=f"Changed from the paper: {setting.changed}.",
            record=record,
            figures=self.figures(record),
        )


_AS_ODES: tuple[Budget, ...] = ("ode", "exact")
"""The budgets that integrate the raw image with adaptive steps, and keep a record of every run."""
_REACH = {"svhn": 0.6, "cifar10": 0.3, "mnist": 0.9}
"""The validation accuracies for which the steps of training are counted in these budgets."""


def _paper_ratio(dataset: str, method: str) -> float:
    """The paper's number of parameters of a method, relative to its C-NODE."""
    ours, reference = (models.paper_parameters(dataset, each) for each in (method, "c-node"))
    assert ours is not None
    assert reference is not None
    return ours / reference


def _paper(dataset: str, method: str) -> dict[str, Any]:
    """The paper's numbers for a row; accuracies are fractions."""
    reported = REPORTED.get(dataset, {}).get(method)
    return {
        "parameters_paper": models.paper_parameters(dataset, method),
        "accuracy_paper": None if reported is None else reported.accuracy / 100,
        "nfe_paper": None if reported is None else reported.nfe,
    }


def _row(result: MethodResult) -> dict[str, Any]:
    """A flat row with the paper's numbers next to ours."""
    return result.row() | _paper(result.dataset, result.method)
