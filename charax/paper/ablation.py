"""The paper's ablation of k, the number of characteristic dimensions."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Literal, NamedTuple

from charax.models import Preset
from charax.select import Selection, select_dimension
from charax.tasks.classification import ClassificationConfig
from charax.train import AbstractProgress, LoopConfig, OptimizerConfig, SolverConfig

AblationBudget = Literal["smoke", "cpu", "paper"]


class Plan(NamedTuple):
    """What a budget trains, and what it changes about the paper's setting."""

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


PLANS: Mapping[AblationBudget, Plan] = MappingProxyType(
    {
        "smoke": Plan(
            dimensions={"digits": (1, 2, 8)},
            preset="small",
            seeds=1,
            epochs=2,
            batch_size=64,
            optimizer=OptimizerConfig(),
            solver=SolverConfig(),
            changed="digits instead of the paper's data; three k, 2 epochs, one seed",
        ),
        "cpu": Plan(
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
        "paper": Plan(
            dimensions={"mnist": _powers_of_two(1024), "svhn": _powers_of_two(128), "cifar10": _powers_of_two(128)},
            preset="paper",
            seeds=4,
            epochs=100,
            batch_size=256,
            optimizer=OptimizerConfig(learning_rate=1e-3, weight_decay=5e-4, schedule="paper"),
            solver=SolverConfig(solver="euler", steps=10, adjoint="checkpoint"),
            changed="nothing but what the published training gets wrong: logits instead of a second softmax, a "
            "validation split that chooses, gradients clipped at norm 1",
        ),
    }
)


def run(
    budget: AblationBudget,
    *,
    datasets: Sequence[str] = (),
    dimensions: Sequence[int] = (),
    seeds: int | None = None,
    folder: Path,
    progress: AbstractProgress,
) -> list[Selection]:
    """Train every k on every data set, or go on where an interrupted ablation stopped."""
    plan = PLANS[budget]
    unknown = set(datasets) - set(plan.dimensions)
    if unknown:
        raise ValueError(
            f"budget {budget} has no data set {sorted(unknown)[0]!r}; choose from {', '.join(plan.dimensions)}"
        )
    return [
        select_dimension(
            ClassificationConfig(
                data=name,
                preset=plan.preset,
                solver=plan.solver,
                optimizer=plan.optimizer,
                loop=LoopConfig(epochs=plan.epochs, batch_size=plan.batch_size),
            ),
            dimensions or plan.dimensions[name],
            seeds=plan.seeds if seeds is None else seeds,
            folder=folder / name,
            progress=progress,
        )
        for name in datasets or plan.dimensions
    ]
