"""The paper's toy flow: two circles, a small C-NODE against a larger NODE."""

from pathlib import Path
from typing import Any, NamedTuple

from charax.experiments.comparison import Compared, compare
from charax.training import AbstractProgress, DensitySettings, LoopSettings, OptimiserSettings

ITERATIONS = 1_000
_BATCH = 1_024
_EPOCHS = 10


class ToyFlows(NamedTuple):
    """Both methods over seeds."""

    compared: list[Compared]

    def rows(self) -> list[dict[str, Any]]:
        """Test NLL, evaluations and parameters of both."""
        return [one.row("nll") for one in self.compared]


def settings(method: str, *, iterations: int = ITERATIONS) -> DensitySettings:
    """The paper's: 1,024 points an iteration, Adam 1e-3, dopri5 at 1e-5, t over 10, N(0, 0.1·I) at the end.

    The points are drawn beforehand, and each is used once in every tenth of the iterations.
    """
    return DensitySettings(
        data="circles",
        method=method,  # pyright: ignore[reportArgumentType]
        preset="paper",
        points=max(iterations // _EPOCHS, 1) * _BATCH,
        optimiser=OptimiserSettings(learning_rate=1e-3, weight_decay=0.0, schedule="constant", clip=1e6),
        loop=LoopSettings(epochs=min(_EPOCHS, iterations), batch_size=_BATCH),
    )


def run(*, seeds: int = 3, iterations: int = ITERATIONS, folder: Path, progress: AbstractProgress) -> ToyFlows:
    """Train both over the seeds, or go on where an interrupted comparison stopped."""
    both = [settings(method, iterations=iterations) for method in ("c-node", "node")]
    return ToyFlows(compare(both, seeds=seeds, folder=folder, progress=progress))
