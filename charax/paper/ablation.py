"""The paper's ablation of k, the characteristic dimension."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple

from charax import select
from charax.models import Preset
from charax.paper._experiment import AbstractExperiment, choose
from charax.paper._report import Column, Figure, Report
from charax.tasks import ClassificationConfig
from charax.train import LoopConfig, OptimizerConfig, SolverConfig, Sweep

if TYPE_CHECKING:
    from charax.select import Selection

Budget = Literal["smoke", "cpu", "paper"]


class Setting(NamedTuple):
    """What a budget trains, and what it changes from the paper's setting."""

    dimensions: Mapping[str, tuple[int, ...]]
    """The grid of k for each data set."""
    preset: Preset
    seeds: int
    epochs: int
    batch_size: int
    optimizer: OptimizerConfig
    solver: SolverConfig
    changed: str


def _powers_of_two(last: int) -> tuple[int, ...]:
    return tuple(2**i for i in range(last.bit_length()))


SETTINGS: Mapping[Budget, Setting] = MappingProxyType(
    {
        "smoke": Setting(
            dimensions={"digits": (1, 2, 8)},
            preset="dense",
            seeds=1,
            epochs=2,
            batch_size=64,
            optimizer=OptimizerConfig(),
            solver=SolverConfig(),
            changed="digits instead of the paper's data; perceptrons instead of convolutions, whose compilation takes "
            "longer than their training; three k, 2 epochs, one seed",
        ),
        "cpu": Setting(
            dimensions={"mnist": (1, 2, 4, 16, 64, 256, 1024)},
            preset="small",
            seeds=2,
            epochs=1,
            batch_size=128,
            optimizer=OptimizerConfig(),
            solver=SolverConfig(),
            changed="MNIST only, on a learned grid of 10x10, width 24, two Euler steps; seven k instead of eleven; "
            "one epoch in batches of 128, AdamW 5e-3, decay 5e-2, cosine; two seeds instead of four",
        ),
        "paper": Setting(
            dimensions={"mnist": _powers_of_two(1024), "svhn": _powers_of_two(128), "cifar10": _powers_of_two(128)},
            preset="paper",
            seeds=4,
            epochs=100,
            batch_size=256,
            optimizer=OptimizerConfig(learning_rate=1e-3, weight_decay=5e-4, schedule="paper"),
            solver=SolverConfig(solver="euler", steps=10, adjoint="checkpoint"),
            changed="nothing but what the published training gets wrong: logits instead of a second softmax, a "
            "validation split that selects the weights, gradients clipped at norm 1",
        ),
    }
)

_COLUMNS = (
    Column("data set", "dataset"),
    Column("k", "k", "d"),
    Column("validation", "validation_mean", ".2%"),
    Column("accuracy", "accuracy_mean", ".2%", "accuracy_sd"),
    Column("train loss", "train_loss", ".4f"),
    Column("test loss", "test_loss", ".4f"),
    Column("params", "parameters", ",d"),
    Column("AIC", "aic", ",.0f"),
    Column("BIC", "bic", ",.0f"),
    Column("picked by", "picked_by"),
)
_NOTE = (
    "AIC and BIC use the likelihood of the training samples under the best weights; every trained number counts as a "
    "parameter, every training sample as an observation. Each picks its smallest value, validation the best validation "
    "accuracy; the test split is not used."
)


@dataclass(frozen=True)
class Ablation(AbstractExperiment):
    """The paper's ablation: accuracy, test and training loss against k. An interrupted run resumes."""

    name: ClassVar[str] = "ablation"

    budget: Budget = "smoke"
    """smoke: digits, a minute. cpu: MNIST, smaller and shorter. paper: the paper's setting, for a GPU."""
    dataset: tuple[str, ...] = ()
    """Only these data sets."""
    k: tuple[int, ...] = ()
    """These values of k instead of the budget's."""
    seeds: int | None = None
    """Seeds per k, instead of the budget's."""
    epochs: int | None = None
    """Epochs per run, instead of the budget's."""

    @property
    def label(self) -> str:
        return f"{self.name}-{self.budget}"

    def run(self, folder: Path, sweep: Sweep) -> Report:
        setting = SETTINGS[self.budget]
        epochs = setting.epochs if self.epochs is None else self.epochs
        selections = [
            select.select_dimension(
                ClassificationConfig(
                    data=name,
                    preset=setting.preset,
                    solver=setting.solver,
                    optimizer=setting.optimizer,
                    loop=LoopConfig(epochs=epochs, batch_size=setting.batch_size),
                ),
                self.k or setting.dimensions[name],
                seeds=setting.seeds if self.seeds is None else self.seeds,
                folder=folder / name,
                sweep=sweep,
            )
            for name in choose(self.dataset, tuple(setting.dimensions), "data set", self.budget)
        ]
        title, changed = f"Ablation of k, budget {self.budget}", f"Changed from the paper: {setting.changed}. "
        return report_selection(selections, title, changed)

    def figures(self, stored: Mapping[str, Any]) -> Mapping[str, Figure]:
        return plot_stored(stored)


def plot_stored(stored: Mapping[str, Any]) -> Mapping[str, Figure]:
    """The figure of a selection from its rows."""
    groups: dict[str, list[Mapping[str, Any]]] = {}
    for row in stored["rows"]:
        groups.setdefault(row["dataset"], []).append(row)

    def plot(path: Path) -> Path:
        from charax.select._plots import plot_rows

        return plot_rows(list(groups.values()), path)

    return {"ablation.png": plot}


def report_selection(selections: "Sequence[Selection]", title: str, note: str = "") -> Report:
    """Report the selection of k on one or more data sets."""
    rows = [row for selection in selections for row in selection.rows()]
    picked = {selection.candidates[0].dataset: selection.picked() for selection in selections}
    criteria = lambda row: [name for name, k in picked[row["dataset"]].items() if k == row["k"]]
    one = len(selections) == 1
    answer = {"rows": rows, "picked": next(iter(picked.values())) if one else picked}
    return Report(
        name="ablation",
        title=title,
        columns=_COLUMNS[1:] if one else _COLUMNS,  # one data set needs no column
        # One data set is the usual case, and its answer needs no name.
        answer=answer,
        note=note + _NOTE,
        figures=plot_stored(answer),
        rows=[row | {"picked_by": ", ".join(criteria(row))} for row in rows],
    )
