"""The paper's propositions, each checked in numbers: one module per proposition."""

from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, ClassVar

from charax.paper._experiment import AbstractExperiment
from charax.paper._report import Column, Report
from charax.train import Sweep

_CHECKED = {
    "intersecting": ("construction_error", "c_node_error", "c_node_parameters", "node_error", "node_parameters"),
    "homeomorphism": ("forward_error", "inverse_error"),
    "characteristics": ("error",),
    "log_density": ("error", "error_when_conditioned", "refusal"),
}
"""The propositions, and what is measured of each."""

_RANDOM = ("intersecting", "log_density")
"""Those that draw random numbers."""

_COLUMNS = (Column("proposition", "proposition"), Column("measured", "measured"), Column("value", "value", "s"))


@dataclass(frozen=True)
class Propositions(AbstractExperiment):
    """The paper's propositions in numbers, with a figure each."""

    name: ClassVar[str] = "propositions"

    seed: int = 0
    """Seed of every random number."""

    def run(self, folder: Path, sweep: Sweep) -> Report:
        folder.mkdir(parents=True, exist_ok=True)  # before the work, so that a bad path is known at once
        answer: dict[str, dict[str, Any]] = {}
        figures = {}
        for proposition, measured in _CHECKED.items():
            sweep.progress.say(proposition.replace("_", " "))
            module = import_module(f"{__name__}._{proposition}")
            result = module.run(**({"seed": self.seed} if proposition in _RANDOM else {}))
            answer[proposition] = {name: getattr(result, name) for name in measured}
            figures[f"{proposition}.png"] = lambda path, module=module, result=result: module.plot(result, path)
            if proposition == "intersecting":
                from charax.paper.propositions._moving import plot_moving

                figures[f"{proposition}.svg"] = lambda path, result=result: plot_moving(result, path)
        return Report(
            name=self.name,
            title="The paper's propositions",
            columns=_COLUMNS,
            answer=answer,
            figures=figures,
            rows=[
                {
                    "proposition": proposition.replace("_", " "),
                    "measured": name.replace("_", " "),
                    "value": f"{value:,}" if isinstance(value, int) else f"{value:.1e}",
                }
                for proposition, values in answer.items()
                for name, value in values.items()
                if not isinstance(value, str)
            ],
        )
