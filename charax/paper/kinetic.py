"""What a price on kinetic energy does: fewer evaluations for the same likelihood."""

from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from charax.data import load_density_data
from charax.models.flows import FlowMethod
from charax.paper._comparison import Compared, compare
from charax.tasks.density import DensityConfig
from charax.train import AbstractProgress


class Priced(NamedTuple):
    """The same flow without and with the price, over seeds."""

    weight: float
    free: Compared
    priced: Compared

    def rows(self) -> list[dict[str, Any]]:
        """Test NLL and evaluations of both, and of the second in parts of the first."""
        rows = [one.row("nll") | {"kinetic": weight} for weight, one in ((0.0, self.free), (self.weight, self.priced))]
        return [
            row | {"nll_ratio": row["nll_mean"] / rows[0]["nll_mean"], "nfe_ratio": row["nfe"] / rows[0]["nfe"]}
            for row in rows
        ]


def run(
    *,
    data: str = "checkerboard",
    method: FlowMethod = "c-node",
    sharpness: float | None = None,
    weight: float = 1.5,
    seeds: int = 3,
    folder: Path,
    progress: AbstractProgress,
) -> Priced:
    """Train both over the seeds, or go on where an interrupted comparison stopped."""
    if not weight > 0:
        raise ValueError(f"weight must be above 0, got {weight}: the flow without a price is trained beside it anyway")
    free = DensityConfig(data=data, method=method, sharpness=sharpness)
    if load_density_data(data, points=100).levels is not None:
        raise ValueError(f"{data} has images, and this compares densities of points or rows: take checkerboard, say")
    both = compare([free, replace(free, kinetic=weight)], seeds=seeds, folder=folder, progress=progress)
    return Priced(weight, *both)
