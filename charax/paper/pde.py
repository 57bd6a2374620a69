"""The paper's PDE experiment: learn a solution from 200 samples of it; and three more problems like it."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

import numpy as np

from charax.data import BOXES, sample_problem
from charax.tasks.pde import PDEConfig, PDETask
from charax.train import AbstractProgress, LoopConfig, OptimizerConfig, Run, SolverConfig, spread, train_seeds

PdeBudget = Literal["smoke", "cpu", "paper"]
PdeMethod = Literal["c-node", "node", "node-fair", "equation"]

REPORTED: Mapping[str, float] = MappingProxyType({"c-node": 8.05, "node": 30.52})
"""What the paper reports for its problem: mean relative deviation in percent."""

WIDTHS: Mapping[PdeMethod, int] = MappingProxyType({"c-node": 15, "node": 32, "node-fair": 24})
"""755 parameters (the paper's C-NODE: 809), 1,185 (as the paper's NODE), and 770: as many as the C-NODE."""

EXTRAPOLATED = ("paper", "paper-steep", "variable-advection")
"""Problems whose solution exists for twice the time of the data."""


class Plan(NamedTuple):
    """What a budget trains."""

    problems: tuple[str, ...]
    seeds: int
    epochs: int


PLANS: Mapping[PdeBudget, Plan] = MappingProxyType(
    {
        "smoke": Plan(("paper",), 1, 6),
        "cpu": Plan(("paper", "paper-steep", "variable-advection", "burgers-sine"), 5, 40),
        "paper": Plan(("paper", "paper-steep", "variable-advection", "burgers-sine"), 5, 200),
    }
)


class Learned(NamedTuple):
    """One method on one problem, over seeds."""

    problem: str
    method: PdeMethod
    runs: list[Run]

    def row(self) -> dict[str, Any]:
        """Deviations in percent, inside of the data's time and in the same time again."""
        summaries = [run.summary() for run in self.runs]
        mean, sd = spread([summary["deviation_percent"] for summary in summaries])
        later = [extrapolate(run, self.problem) for run in self.runs] if self.problem in EXTRAPOLATED else []
        later_mean, later_sd = spread([deviation for deviation, _ in later]) if later else (None, None)
        return {
            "problem": self.problem,
            "method": self.method,
            "parameters": summaries[0]["parameters"],
            "deviation_percent_mean": mean,
            "deviation_percent_sd": sd,
            "deviation_percent_paper": REPORTED.get(self.method) if self.problem == "paper" else None,
            "extrapolation_percent_mean": later_mean,
            "extrapolation_percent_sd": later_sd,
            "extrapolation_lost_percent": spread([lost for _, lost in later])[0] if later else None,
            "seconds": max(summary["seconds"] for summary in summaries),
        }


def extrapolate(run: Run, problem: str, *, points: int = 200) -> tuple[float, float]:
    """The mean deviation, in percent, in the time after the data, and the share of points that no path leads to."""
    task, model = run.trained
    assert isinstance(task, PDETask)
    _, end = BOXES[problem]
    later = sample_problem(problem, points, seed=[run.settings.loop.seed, 1], between=(end, 2 * end))
    u, found = task.evaluate(model, np.concatenate([later.x, later.t[:, None]], axis=1))
    deviation = np.linalg.norm(u - later.u, axis=1) / np.linalg.norm(later.u, axis=1)
    return 100 * float(deviation.mean()), 100 * float(1 - found.mean())


class Equation(NamedTuple):
    """What the structured form learned about Burgers' equation, over seeds."""

    problem: str
    runs: list[Run]
    u: np.ndarray
    """From the smallest to the largest of the data, a row for each run."""
    velocities: np.ndarray
    sources: np.ndarray

    def to_json(self) -> dict[str, Any]:
        """How far the learned velocities are from u over the data's range, in percent of u."""
        miss = 100 * np.abs(self.velocities - self.u) / self.u
        summaries = [run.summary() for run in self.runs]
        return {
            "problem": self.problem,
            "seeds": len(self.runs),
            "parameters": summaries[0]["parameters"],
            "u_range": [float(self.u.min()), float(self.u.max())],
            "velocity_error_percent_mean": float(miss.mean()),
            "velocity_error_percent_max": float(miss.max()),
            "source_largest": float(np.abs(self.sources).max()),
            "deviation_percent": max(summary["deviation_percent"] for summary in summaries),
            "seconds": max(summary["seconds"] for summary in summaries),
        }


class Experiment(NamedTuple):
    """The rows, and the runs behind them."""

    learned: list[Learned]
    equation: Equation | None

    def to_json(self) -> dict[str, Any]:
        """Flat rows, the paper's problem first."""
        equation = {} if self.equation is None else {"equation": self.equation.to_json()}
        return {"rows": [one.row() for one in self.learned], **equation}


def learn_equation(*, seeds: int, folder: Path, progress: AbstractProgress) -> Equation:
    """The structured form on noise-free Burgers data.

    A wave, of which the smallest and the largest u are seen at all times. Where a value leaves the data at once, as the
    smallest of `burgers-sine` does, or where all neighbours are alike, its velocity cannot be seen.
    """
    settings = PDEConfig(
        data="burgers-wave",
        method="equation",
        width=16,
        points=1000,
        solver=SolverConfig(steps=3),
        optimizer=OptimizerConfig(learning_rate=1e-2, weight_decay=0.0),
        loop=LoopConfig(epochs=100, batch_size=200),
    )
    runs = train_seeds(settings, seeds=seeds, folder=folder, progress=progress)
    tables = [run.trained.task.tabulate_equation(run.trained.model) for run in runs]  # pyright: ignore[reportAttributeAccessIssue]
    stack = lambda name: np.array([learned[name] for _, learned, _ in tables])
    return Equation(settings.data, runs, np.array([u for u, _, _ in tables]), stack("velocity"), stack("source"))


def run(
    budget: PdeBudget,
    *,
    problems: Sequence[str] = (),
    methods: Sequence[PdeMethod] = (),
    seeds: int | None = None,
    folder: Path,
    progress: AbstractProgress,
) -> Experiment:
    """Train every row and the structured form (`equation`), or go on where an interrupted experiment stopped."""
    plan = PLANS[budget]
    unknown = set(problems) - set(plan.problems)
    if unknown:
        raise ValueError(
            f"budget {budget} has no problem {sorted(unknown)[0]!r}; choose from {', '.join(plan.problems)}"
        )
    folder.mkdir(parents=True, exist_ok=True)
    learned: list[Learned] = []
    for problem in problems or plan.problems:
        # The paper's own baseline cannot have a u(x, 0) that is not 0: it is shown once.
        for method in methods or (tuple(WIDTHS) if problem == "paper" else ("c-node", "node-fair")):
            if method not in WIDTHS:
                continue
            one = PDEConfig(data=problem, method=method, width=WIDTHS[method])
            one = replace(one, loop=replace(one.loop, epochs=plan.epochs))
            runs = train_seeds(one, seeds=plan.seeds if seeds is None else seeds, folder=folder, progress=progress)
            learned.append(Learned(problem, method, runs))
    whole = budget != "smoke" and not problems and not methods
    wanted = whole or "equation" in methods
    equation = learn_equation(seeds=seeds or 3, folder=folder, progress=progress) if wanted else None
    experiment = Experiment(learned, equation)
    (folder / "pde.json").write_text(json.dumps({"budget": budget, **experiment.to_json()}, indent=2) + "\n")
    return experiment
