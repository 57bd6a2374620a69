"""The paper's PDE experiment: learn a solution from 200 samples of it; and three more problems like it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple

from charax import data, plotting, train
from charax.models import PDEMethod
from charax.paper._comparison import average
from charax.paper._experiment import AbstractExperiment, choose
from charax.paper._report import Column, Figure, Report
from charax.tasks import PDEConfig
from charax.train import LoopConfig, OptimizerConfig, SolverConfig, Sweep

if TYPE_CHECKING:
    from charax.train import Run, TrainingJob

Budget = Literal["smoke", "cpu", "paper"]

REPORTED: Mapping[str, float] = MappingProxyType({"c-node": 8.05, "node": 30.52})
"""What the paper reports for its problem: mean relative error in percent."""

_USUAL: tuple[PDEMethod, ...] = ("c-node", "node-fair")

WIDTHS: Mapping[PDEMethod, int] = MappingProxyType({"c-node": 15, "node": 32, "node-fair": 24})
"""755 parameters (the paper's C-NODE: 809), 1,185 (as the paper's NODE), and 770: as many as the C-NODE."""

EXTRAPOLATED = ("paper", "paper-steep", "variable-advection")
"""Problems whose solution exists for twice the time of the data."""


class Setting(NamedTuple):
    """What a budget trains."""

    problems: tuple[str, ...]
    seeds: int
    epochs: int


SETTINGS: Mapping[Budget, Setting] = MappingProxyType(
    {
        "smoke": Setting(("paper",), 1, 6),
        "cpu": Setting(("paper", "paper-steep", "variable-advection", "burgers-sine"), 5, 40),
        "paper": Setting(("paper", "paper-steep", "variable-advection", "burgers-sine"), 5, 200),
    }
)

EQUATION = PDEConfig(
    data="burgers-wave",
    method="equation",
    width=16,
    points=1000,
    refine=False,
    solver=SolverConfig(solver="midpoint", steps=3),
    optimizer=OptimizerConfig(learning_rate=1e-2, weight_decay=0.0),
    loop=LoopConfig(epochs=100, batch_size=200),
)
"""The structured form on noise-free samples of Burgers' equation: a wave whose smallest and largest u are seen at all
times. Where a value leaves the data at once, as the smallest of `burgers-sine` does, or where all neighbours are equal,
its velocity cannot be identified."""

_EQUATION_SEEDS = 3

_COLUMNS = (
    Column("problem", "problem"),
    Column("method", "method"),
    Column("relative error", "deviation_percent_mean", ".3f", "deviation_percent_sd"),
    Column("paper's", "deviation_percent_paper", ".2f"),
    Column("later times", "extrapolation_percent_mean", ".3f", "extrapolation_percent_sd"),
    Column("parameters", "parameters", ",d"),
    Column("s", "seconds", ".0f"),
)


@dataclass(frozen=True)
class PDE(AbstractExperiment):
    """The paper's PDE experiment, and three more problems. An interrupted run resumes."""

    name: ClassVar[str] = "pde"

    budget: Budget = "cpu"
    """smoke: the paper's problem, one seed. cpu: four problems, five seeds. paper: the same, longer."""
    problem: tuple[str, ...] = ()
    """Only these problems."""
    method: tuple[PDEMethod, ...] = ()
    """Only these methods; equation is the structured form, on Burgers' equation."""
    seeds: int | None = None
    """Seeds per row, instead of the budget's."""
    epochs: int | None = None
    """Epochs per run, instead of the budget's."""

    @property
    def label(self) -> str:
        return f"{self.name}-{self.budget}"

    def run(self, folder: Path, sweep: Sweep) -> Report:
        setting = SETTINGS[self.budget]
        seeds = setting.seeds if self.seeds is None else self.seeds
        epochs = setting.epochs if self.epochs is None else self.epochs
        if self.problem and set(self.method) == {"equation"}:
            raise ValueError("the structured form is learned from Burgers' equation only: leave --problem out")
        configs: list[PDEConfig] = []
        for problem in choose(self.problem, setting.problems, "problem", self.budget):
            # The paper's own baseline cannot represent a u(x, 0) that is not 0: it is shown once.
            methods = self.method or (tuple(WIDTHS) if problem == "paper" else _USUAL)
            for method, width in WIDTHS.items():
                if method not in methods:
                    continue
                config = PDEConfig(data=problem, method=method, width=width)
                configs.append(replace(config, loop=replace(config.loop, epochs=epochs)))
        groups = [train.seed_jobs(config, folder, range(seeds)) for config in configs]
        whole = self.budget != "smoke" and not self.problem and not self.method
        if whole or "equation" in self.method:
            groups.append(self._equation_jobs(folder))
        results = sweep.run_groups(groups)
        for runs in results:
            runs[0].plot()
        rows = [_row(config.data, config.method, runs) for config, runs in zip(configs, results, strict=False)]
        answer: dict[str, Any] = {"rows": rows}
        if len(results) > len(configs):
            answer["equation"] = _measure_equation(results[-1])
        return Report(
            name=self.name,
            title=f"Learned PDEs, budget {self.budget}: mean relative error in %",
            columns=_COLUMNS,
            answer=answer,
            note=_describe(answer.get("equation")),
            record={"budget": self.budget},
            figures=self.figures(answer),
        )

    def figures(self, stored: Mapping[str, Any]) -> Mapping[str, Figure]:
        return {"deviations.png": lambda path, rows=stored["rows"]: plot_errors(rows, path)} if stored["rows"] else {}

    def _equation_jobs(self, folder: Path) -> "list[TrainingJob]":
        config = EQUATION
        if self.epochs is not None:
            config = replace(config, loop=replace(config.loop, epochs=self.epochs))
        return train.seed_jobs(config, folder, range(_EQUATION_SEEDS if self.seeds is None else self.seeds))


def _measure_equation(runs: "Sequence[Run]") -> dict[str, Any]:
    """How far the learned velocities of Burgers' equation are from u over the data's range, in percent of u."""
    import numpy as np

    tables = [run.trained.task.tabulate_equation(run.trained.model) for run in runs]  # pyright: ignore[reportAttributeAccessIssue]
    u = np.array([u for u, _, _ in tables])
    error = 100 * np.abs(np.array([learned["velocity"] for _, learned, _ in tables]) - u) / u
    summaries = [run.summary() for run in runs]
    return {
        "problem": EQUATION.data,
        "seeds": len(runs),
        "parameters": summaries[0]["parameters"],
        "u_range": [float(u.min()), float(u.max())],
        "velocity_error_percent_mean": float(error.mean()),
        "velocity_error_percent_max": float(error.max()),
        "source_largest": max(float(np.abs(learned["source"]).max()) for _, learned, _ in tables),
        "deviation_percent": max(summary["deviation_percent"] for summary in summaries),
        "seconds": max(summary["seconds"] for summary in summaries),
    }


def _row(problem: str, method: PDEMethod, runs: "Sequence[Run]") -> dict[str, Any]:
    """Relative errors in percent, within the time of the data and in the same time again."""
    summaries = [run.summary() for run in runs]
    mean, sd = average([summary["deviation_percent"] for summary in summaries])
    later = [extrapolate(run, problem) for run in runs] if problem in EXTRAPOLATED else []
    later_mean, later_sd = average([error for error, _ in later]) if later else (None, None)
    return {
        "problem": problem,
        "method": method,
        "parameters": summaries[0]["parameters"],
        "deviation_percent_mean": mean,
        "deviation_percent_sd": sd,
        "deviation_percent_paper": REPORTED.get(method) if problem == "paper" else None,
        "extrapolation_percent_mean": later_mean,
        "extrapolation_percent_sd": later_sd,
        "extrapolation_lost_percent": train.mean_and_sd([lost for _, lost in later])[0] if later else None,
        "seconds": max(summary["seconds"] for summary in summaries),
    }


def extrapolate(run: "Run", problem: str, *, points: int = 200) -> tuple[float | None, float]:
    """Relative error after the time of the data, where a characteristic is found; share of points without one. In %."""
    import numpy as np

    task, model = run.trained
    _, end = data.BOXES[problem]
    later = data.sample_problem(problem, points, seed=[run.config.loop.seed, 1], between=(end, 2 * end))
    u, found = task.evaluate(model, np.concatenate([later.x, later.t[:, None]], axis=1))  # pyright: ignore[reportAttributeAccessIssue]
    error = np.linalg.norm(u - later.u, axis=1) / np.linalg.norm(later.u, axis=1)
    return 100 * float(error[found].mean()) if found.any() else None, 100 * float(1 - found.mean())


def _describe(equation: Mapping[str, Any] | None) -> str:
    if equation is None:
        return ""
    return (
        f"Structured form on Burgers' equation, {equation['seeds']} seeds: the learned velocity is within "
        f"{equation['velocity_error_percent_max']:.2f}% of u."
    )


def plot_errors(rows: Sequence[dict[str, Any]], path: Path) -> Path:
    """Relative errors by problem and method on a logarithmic axis, with standard deviations and the paper's values."""
    colours = {"c-node": plotting.C_NODE, "node": plotting.NODE, "node-fair": plotting.FAIR_NODE}
    problems = list(dict.fromkeys(row["problem"] for row in rows))
    methods = [method for method in colours if any(row["method"] == method for row in rows)]
    width = 0.8 / len(methods)
    with plotting.save_figure(path, width=2.2 + 1.6 * len(problems), height=3.4) as figure:
        axis = figure.add_subplot()
        for row in rows:
            position = problems.index(row["problem"]) + (methods.index(row["method"]) - (len(methods) - 1) / 2) * width
            if row["deviation_percent_mean"] is not None:
                axis.bar(position, row["deviation_percent_mean"], 0.9 * width, color=colours[row["method"]])
                axis.errorbar(
                    position, row["deviation_percent_mean"], row["deviation_percent_sd"], color="black", capsize=3
                )
            if row["deviation_percent_paper"] is not None:
                ends = [position - width / 2, position + width / 2]
                axis.plot(ends, [row["deviation_percent_paper"]] * 2, color=plotting.EXACT, linestyle="--")
        for method in methods:
            axis.bar(0, float("nan"), color=colours[method], label=method)
        axis.plot([], [], color=plotting.EXACT, linestyle="--", label="in the paper")
        axis.set_yscale("log")
        axis.set_xticks(range(len(problems)), problems)
        axis.set_ylabel("mean relative error, %")
        axis.set_title("Error of the learned solution on test samples, by problem")
        axis.grid(visible=False, axis="x")
        axis.legend(loc="upper left", bbox_to_anchor=(1, 1))
    return path
