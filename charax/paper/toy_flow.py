"""The paper's toy flow: two circles, a small C-NODE against a larger NODE."""

from pathlib import Path
from typing import Any, Literal, NamedTuple

from charax.paper._comparison import Compared, compare
from charax.tasks.density import DensityConfig
from charax.train import AbstractProgress, LoopConfig, OptimizerConfig

Recipe = Literal["paper", "sharp", "timed"]
ITERATIONS = 1_000
_BATCH = 1_024
_EPOCHS = 10
_OPTIMISERS: dict[Recipe, OptimizerConfig] = {
    "paper": OptimizerConfig(learning_rate=1e-3, weight_decay=0.0, schedule="constant", clip=1e6),
    "sharp": OptimizerConfig(learning_rate=3e-3, weight_decay=0.0, schedule="cosine", clip=10.0),
    "timed": OptimizerConfig(learning_rate=1e-2, weight_decay=0.0, schedule="cosine", clip=10.0),
}


class ToyFlows(NamedTuple):
    """Both methods over seeds."""

    compared: list[Compared]

    def rows(self) -> list[dict[str, Any]]:
        """Test NLL, evaluations and parameters of both."""
        return [one.row("nll") for one in self.compared]


def settings(method: str, recipe: Recipe = "paper", *, iterations: int = ITERATIONS) -> DensityConfig:
    """1,024 points an iteration and dopri5 at 1e-5; the rest is the recipe's.

    - `paper` is the paper's: Adam 1e-3, fields of u alone, s over 10, N(0, 0.1·I) at the end.
    - `sharp` is the same with sharper fields, and Adam from 3e-3 down to 0.
    - `timed` has fields that read s too, s over 1, N(0, I) at the end, and Adam from 1e-2 down to 0.

    The points are drawn beforehand, and each is used once in every tenth of the iterations.
    """
    return DensityConfig(
        data="circles",
        method=method,  # pyright: ignore[reportArgumentType]
        preset="small" if recipe == "timed" else "paper",
        sharpness=8.0 if recipe == "sharp" else None,
        points=max(iterations // _EPOCHS, 1) * _BATCH,
        optimizer=_OPTIMISERS[recipe],
        loop=LoopConfig(epochs=min(_EPOCHS, iterations), batch_size=_BATCH),
    )


def run(
    recipe: Recipe = "paper", *, seeds: int = 3, iterations: int = ITERATIONS, folder: Path, progress: AbstractProgress
) -> ToyFlows:
    """Train both over the seeds, or go on where an interrupted comparison stopped."""
    both = [settings(method, recipe, iterations=iterations) for method in ("c-node", "node")]
    return ToyFlows(compare(both, seeds=seeds, folder=folder, progress=progress))
