"""Everything that can be set about a run: dataclasses that are the flags of the command line and `config.json`."""

import dataclasses
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeVar, get_type_hints

from charax.solve import Adjoint, Solver

Schedule = Literal["cosine", "paper", "warmup", "constant"]
SettingsT = TypeVar("SettingsT")


@dataclass(frozen=True)
class SolverConfig:
    """How to integrate; what is left out is the model's own choice."""

    solver: str | None = None
    """euler, midpoint, heun, bosh3, tsit5, dopri5 or dopri8."""
    steps: int | None = None
    """Make this many equal steps."""
    rtol: float | None = None
    """Keep to this relative tolerance instead of making equal steps."""
    atol: float | None = None
    """Keep to this absolute tolerance instead of making equal steps."""
    adjoint: Adjoint | None = None
    """How gradients are taken: checkpoint, backsolve or direct."""

    def change(self, default: Solver) -> Solver:
        """The default solver with what is set here."""
        adaptive = self.rtol is not None or self.atol is not None
        if adaptive and self.steps is not None:
            raise ValueError("steps and tolerances exclude each other: give either --steps or --rtol and --atol")
        rtol = default.rtol if self.rtol is None else self.rtol
        return Solver(
            default.method if self.solver is None else self.solver,
            rtol=rtol,
            atol=(rtol if adaptive else default.atol) if self.atol is None else self.atol,
            steps=None if adaptive else default.steps if self.steps is None else self.steps,
            adjoint=default.adjoint if self.adjoint is None else self.adjoint,
        )


@dataclass(frozen=True)
class OptimizerConfig:
    """AdamW and what is around it."""

    learning_rate: float = 5e-3
    weight_decay: float = 5e-2
    schedule: Schedule = "cosine"
    """cosine: up over the first tenth, then down to zero. paper: times 0.9 every 5 epochs.
    warmup: up over the first 1,000 steps. constant."""
    clip: float = 1.0
    """The largest norm of a gradient; longer ones are shortened to it."""
    ema: float | None = None
    """Evaluate with a moving average of the weights, with this decay (0.999, say)."""

    def __post_init__(self):
        for name in ("learning_rate", "clip"):
            if not getattr(self, name) > 0:
                raise ValueError(f"{name} must be above 0, got {getattr(self, name)}")
        if not self.weight_decay >= 0:
            raise ValueError(f"weight_decay must not be negative, got {self.weight_decay}")
        if self.ema is not None and not 0 < self.ema < 1:
            raise ValueError(f"ema must lie between 0 and 1, got {self.ema}; leave it out for no average")


@dataclass(frozen=True)
class LoopConfig:
    """How long to train, on how much at a time, and when to stop or save."""

    epochs: int = 20
    batch_size: int = 64
    seed: int = 0
    """Seed of the split, the initial weights, the order of the data and everything else that is random."""
    patience: int | None = None
    """Stop after this many epochs in which validation did not improve."""
    checkpoint_steps: int | None = None
    """Save every so many steps, beside the end of every epoch."""

    def __post_init__(self):
        for name in ("epochs", "batch_size", "patience", "checkpoint_steps"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise ValueError(f"{name} must be at least 1, got {value}")
        if self.seed < 0:
            raise ValueError(f"seed must not be negative, got {self.seed}")


def to_json(settings: Any) -> dict[str, Any]:
    """Settings as plain JSON; `from_json` is the inverse.

    ```python
    from charax.train import LoopConfig, from_json, to_json

    assert from_json(LoopConfig, to_json(LoopConfig(epochs=3))) == LoopConfig(epochs=3)
    ```
    """
    return dataclasses.asdict(settings)


def from_json(kind: type[SettingsT], stored: dict[str, Any], source: Path | str = "config.json") -> SettingsT:
    """Settings of one kind from plain JSON; a name that is unknown here is an error that names `source`."""
    hints = get_type_hints(kind)
    unknown = stored.keys() - hints.keys()
    if unknown:
        raise ValueError(f"{source}: this version does not know the setting {', '.join(sorted(unknown))}")
    nested = {name: hint for name, hint in hints.items() if dataclasses.is_dataclass(hint)}
    return kind(
        **{
            name: from_json(nested[name], value, source) if name in nested else value  # pyright: ignore[reportArgumentType]
            for name, value in stored.items()
        }
    )
