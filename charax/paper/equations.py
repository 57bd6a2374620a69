"""Equations from scattered samples: the structured form next to models that know no equation."""

import itertools
import math
import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple

from charax import plotting, train
from charax.models import Dependence, PDEMethod
from charax.paper._comparison import average
from charax.paper._experiment import AbstractExperiment, choose
from charax.paper._records import RecordJob
from charax.paper._report import Column, Figure, Report
from charax.tasks import PDEConfig
from charax.train import AbstractProgress, LoopConfig, OptimizerConfig, Sweep

if TYPE_CHECKING:
    from charax.paper._closed_forms import Values

Budget = Literal["smoke", "cpu"]
Method = Literal["equation", "c-node", "node-fair", "mlp"]
_LATER = 1.6
"""How far beyond the data's last time the solution is asked for, relative to it."""


class Equation(NamedTuple):
    """An equation whose characteristics have a closed form, so that samples of its solution need no solver."""

    text: str
    feet: tuple[float, float]
    end_time: float
    """The last time of the data; characteristics cross after 1.6 times that, if at all."""
    coefficients: Mapping[str, float]
    """Of the terms, by their names in `run.summary()["terms"]`."""
    velocity_reads: tuple[Dependence, ...] = ("u",)


EQUATIONS: Mapping[str, Equation] = MappingProxyType(
    {
        "burgers": Equation("u_t + u u_x = 0", (0.0, 2 * math.pi), 0.6, {"u u_x": 1.0}),
        "traffic": Equation("u_t + u_x - 2 u u_x = 0", (-3.0, 3.0), 0.8, {"u_x": 1.0, "u u_x": -2.0}),
        "cubic": Equation("u_t + u^2 u_x = -0.2 u", (0.0, 2 * math.pi), 0.65, {"u^2 u_x": 1.0, "u": -0.2}),
        "reaction": Equation("u_t + u_x = 2 u - 2 u^2", (-2.0, 2.0), 1.0, {"u_x": 1.0, "u": 2.0, "u^2": -2.0}),
        "growth": Equation("u_t + u u_x = u", (0.0, 2 * math.pi), 0.6, {"u u_x": 1.0, "u": 1.0}),
        "medium": Equation("u_t + sin(x) u_x = -0.5 u", (0.3, 2.8), 1.0, {"sin(x) u_x": 1.0, "u": -0.5}, ("x",)),
    }
)
"""The six equations. The first is the set-up of the conservative flux form networks (arXiv 2411.01746), `growth` is the
paper's with a wave as its initial value."""

WIDTHS: Mapping[PDEMethod, int] = MappingProxyType({"equation": 16, "node-fair": 24, "mlp": 24, "c-node": 15})
"""About 430, 770, 697 and 755 parameters."""

LEARNING_RATES: Mapping[PDEMethod, float] = MappingProxyType(
    {"equation": 1e-2, "node-fair": 1e-1, "mlp": 1e-1, "c-node": 1e-1}
)
"""Chosen on the validation split of samples that the table does not use, by `python -m benchmarks.equation_rates`; the
structured form was not tuned."""


class Setting(NamedTuple):
    """What a budget trains."""

    problems: tuple[str, ...]
    noise: tuple[float, ...]
    seeds: int
    epochs: int
    points: int


SETTINGS: Mapping[Budget, Setting] = MappingProxyType(
    {
        "smoke": Setting(("growth",), (0.0,), 1, 2, 100),
        "cpu": Setting(tuple(EQUATIONS), (0.0, 0.05), 5, 40, 1000),
    }
)
EQUATION_EPOCHS = 4
"""Least squares does the rest."""

_COVERAGE = ("coverage", "coverage_solution", "coverage_velocity", "coverage_source", "coverage_shock_time")
_COLUMNS = (
    Column("equation", "problem"),
    Column("method", "method"),
    Column("noise", "noise", ".2f"),
    Column("samples", "points"),
    Column("inside, %", "error_inside_percent", ".2g", "error_inside_percent_sd"),
    Column("beyond, %", "error_beyond_percent", ".2g", "error_beyond_percent_sd"),
    Column("coefficients, %", "coefficient_error_percent", ".2g"),
    Column("right terms", "right_terms", ".2f"),
    Column("samples in their 95% intervals", "coverage", ".2f"),
    Column("CPU s", "cpu_seconds", ".0f"),
)


@dataclass(frozen=True)
class Equations(AbstractExperiment):
    """Six equations from 1,000 samples each, clean and with noise: errors inside and beyond the data's times."""

    name: ClassVar[str] = "equations"

    budget: Budget = "cpu"
    """smoke: one equation, one seed. cpu: six equations, clean and with 5% noise, five seeds."""
    problem: tuple[str, ...] = ()
    """Only these equations."""
    method: tuple[Method, ...] = ()
    """Only these methods."""
    noise: tuple[float, ...] = ()
    """Standard deviations of the noise relative to the range of u, instead of the budget's."""
    points: tuple[int, ...] = ()
    """Numbers of samples, instead of the budget's."""
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
        train.check_range(self, least={"seeds": 1, "epochs": 1})
        if any(points < 20 for points in self.points):
            raise ValueError(f"points must be at least 20, got {min(self.points)}")
        problems = choose(self.problem, setting.problems, "equation", self.budget)
        methods: list[PDEMethod] = [one for one in WIDTHS if not self.method or one in self.method]
        cases = list(
            itertools.product(methods, problems, self.noise or setting.noise, self.points or (setting.points,))
        )
        groups: list[list[RecordJob]] = []
        for method, problem, noise, points in cases:
            epochs = EQUATION_EPOCHS if method == "equation" else setting.epochs
            sizes = {"points": points, "epochs": epochs if self.epochs is None else self.epochs}
            groups.append([learning(folder, problem, noise, method, **sizes, seed=seed) for seed in range(seeds)])
        results = zip(cases, sweep.run_groups(groups), strict=True)
        rows = [_row(problem, noise, method, points, found) for (method, problem, noise, points), found in results]
        return Report(
            name=self.name,
            title=f"Equations from data, budget {self.budget}: mean error in % of the mean |u|",
            columns=_COLUMNS,
            answer={"rows": rows},
            record={"budget": self.budget, "seeds": seeds},
            figures=self.figures({"rows": rows}),
        )

    def figures(self, stored: Mapping[str, Any]) -> Mapping[str, Figure]:
        return {"equations.png": lambda path, rows=stored["rows"]: plot_errors(rows, path)}


def sample_equation(
    name: str, points: int, *, seed: Sequence[int], between: tuple[float, float]
) -> "dict[str, Values]":
    """Sample a solution at points (x, t) whose characteristics start at uniformly random feet.

    Args:
        name: One of `EQUATIONS`.
        points: The number of samples.
        seed: Seed of the random numbers.
        between: The first and the last time, relative to the last time of the data.

    Returns:
        The arrays x, t and u.
    """
    import numpy as np

    from charax.paper._closed_forms import FLOWS

    equation, random = EQUATIONS[name], np.random.default_rng(seed)
    foot = random.uniform(*equation.feet, points)
    t = equation.end_time * random.uniform(*between, points)
    x, u = FLOWS[name](foot, t)
    return {"x": x, "t": t, "u": u}


def learn(
    folder: Path,
    problem: str,
    noise: float,
    method: PDEMethod,
    *,
    points: int,
    epochs: int,
    seed: int,
    progress: AbstractProgress,
) -> dict[str, Any]:
    """Train one model on samples of one equation, and measure it.

    Args:
        folder: Folder of data, runs and records.
        problem: One of `EQUATIONS`.
        noise: Standard deviation of the noise, relative to the range of u.
        method: The model.
        points: Samples.
        epochs: Epochs of gradient descent.
        seed: Seed of the samples and of the training.
        progress: Where to report.

    Returns:
        Errors, terms, seconds.

    Raises:
        ValueError: If a setting cannot be used, or the folder has a run with other settings.
    """
    label = _label(problem, noise, method, points, seed)
    path = folder / "data" / f"{label.replace(f'-{method}', '')}.npz"
    config = make_config(path, problem, method, epochs=epochs, seed=seed)
    started = time.process_time()
    save_samples(path, problem, noise, points=points, seed=seed)
    run = train.train_or_load(config, folder / "runs" / label, progress=progress)
    return _measure(run, problem, seed) | {"cpu_seconds": time.process_time() - started}


def learning(
    folder: Path, problem: str, noise: float, method: PDEMethod, *, points: int, epochs: int, seed: int
) -> RecordJob:
    """`learn` as a part of a sweep.

    Args:
        folder: Folder of data, runs and records.
        problem: One of `EQUATIONS`.
        noise: Standard deviation of the noise, relative to the range of u.
        method: The model.
        points: Samples.
        epochs: Epochs of gradient descent.
        seed: Seed of the samples and of the training.

    Returns:
        The job.
    """
    case = {"problem": problem, "noise": noise, "method": method, "points": points, "epochs": epochs, "seed": seed}
    settings = {**case, "learning_rate": LEARNING_RATES[method]}
    place = folder / "records" / f"{_label(problem, noise, method, points, seed)}.json"
    return RecordJob(place, settings, learn, {"folder": folder, **case})


def _label(problem: str, noise: float, method: str, points: int, seed: int) -> str:
    samples = "" if points == SETTINGS["cpu"].points else f"-{points}samples"
    return f"{problem}-{100 * noise:g}percent{samples}-{method}-seed{seed}"


def save_samples(path: Path, problem: str, noise: float, *, points: int, seed: int) -> None:
    """Write samples of an equation, with noise, as an `.npz`."""
    import numpy as np

    data = sample_equation(problem, points, seed=[seed], between=(0, 1))
    deviation = noise * np.ptp(data["u"]) * np.random.default_rng([seed, 1]).standard_normal(points)
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f"{path.stem}-{os.getpid()}.part")  # another process may be reading the same samples
    with part.open("wb") as file:
        np.savez(file, allow_pickle=False, **data | {"u": data["u"] + deviation})
    part.replace(path)


def make_config(path: Path, problem: str, method: PDEMethod, *, epochs: int, seed: int) -> PDEConfig:
    """The config of one run of the table."""
    return PDEConfig(
        data=str(path),
        method=method,
        width=WIDTHS[method],
        velocity_reads=EQUATIONS[problem].velocity_reads,
        extrapolate=True,
        optimizer=OptimizerConfig(learning_rate=LEARNING_RATES[method], weight_decay=0.0),
        loop=LoopConfig(epochs=epochs, batch_size=160, seed=seed),
    )


def _measure(run: "train.Run", problem: str, seed: int) -> dict[str, Any]:
    """Errors at 400 points inside and 400 beyond the data's times, where a characteristic is found."""
    import numpy as np

    summary = run.summary()
    result = {name: summary.get(name) for name in ("parameters", "seconds", "equation", "terms", "shock_time")}
    for number, (name, between) in enumerate({"inside": (0, 1), "beyond": (1, _LATER)}.items()):
        points = sample_equation(problem, 400, seed=[seed, 2, number], between=between)
        rows = np.stack([points["x"], points["t"]], axis=1).astype(np.float32)
        u, found = run.trained.task.evaluate(run.trained.model, rows)  # pyright: ignore[reportAttributeAccessIssue]
        error = np.abs(u[:, 0] - points["u"])[found]
        result[f"error_{name}_percent"] = (
            100 * float(error.mean() / np.abs(points["u"]).mean()) if found.any() else None
        )
        result[f"lost_{name}_percent"] = 100 * float(1 - found.mean())
        if name == "inside" and "covered" in summary:
            result |= _coverage(run, problem, rows, points["u"])
    truth = EQUATIONS[problem].coefficients
    learned = {term["name"]: term["coefficient"] for term in summary.get("terms") or ()}
    errors = [abs(learned[name] - value) / abs(value) for name, value in truth.items() if name in learned]
    result["right_terms"] = float(set(learned) == set(truth)) if "terms" in summary else None
    result["coefficient_error_percent"] = 100 * max(errors) if result["right_terms"] else None
    return result


def _coverage(run: "train.Run", problem: str, rows: "Values", u: "Values") -> dict[str, Any]:
    from charax.paper._closed_forms import FLOWS
    from charax.paper._coverage import first_crossing, measure_coverage

    equation = EQUATIONS[problem]
    shock = first_crossing(FLOWS[problem], equation.feet, 4 * equation.end_time)
    return measure_coverage(run, equation.coefficients, shock, rows, u)


def _row(problem: str, noise: float, method: str, points: int, results: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    row: dict[str, Any] = {"problem": problem, "noise": noise, "method": method, "points": points}
    for name in ("error_inside_percent", "error_beyond_percent"):
        row[name], row[f"{name}_sd"] = average([result[name] for result in results])
    right = [result for result in results if result["right_terms"]]
    row["coefficient_error_percent"] = max((one["coefficient_error_percent"] for one in right), default=None)
    row["right_terms"] = average([result["right_terms"] for result in results])[0]
    row["lost_percent"] = max(result[f"lost_{name}_percent"] for result in results for name in ("inside", "beyond"))
    for name in _COVERAGE:
        shares = [result[name] for result in results if result.get(name) is not None]
        row[name] = average(shares)[0] if shares else None
    row["equation"] = results[0]["equation"]
    row["parameters"] = results[0]["parameters"]
    row["seconds"] = max(result["seconds"] for result in results)
    row["cpu_seconds"] = max(result["cpu_seconds"] for result in results)
    return row


def plot_errors(rows: Sequence[Mapping[str, Any]], path: Path) -> Path:
    """Errors beyond the data's times by equation and method, on a logarithmic axis: a panel per noise."""
    colors = {"equation": "#009e73", "c-node": plotting.C_NODE, "node-fair": plotting.FAIR_NODE, "mlp": plotting.EXACT}
    levels = sorted({row["noise"] for row in rows})
    problems = [name for name in EQUATIONS if any(row["problem"] == name for row in rows)]
    with plotting.save_figure(path, width=1.5 + 4.2 * len(levels), height=3.2) as figure:
        (axes,) = figure.subplots(1, len(levels), sharey=True, squeeze=False)
        for axis, level in zip(axes, levels, strict=True):
            for row in (row for row in rows if row["noise"] == level and row["error_beyond_percent"] is not None):
                offset = 0.18 * (list(colors).index(row["method"]) - 1.5)
                ends = row["error_inside_percent"], row["error_beyond_percent"]
                place = [problems.index(row["problem"]) + offset] * 2
                axis.plot(place, ends, color=colors[row["method"]], linewidth=1)
                axis.plot(place[:1], ends[:1], "o", color=colors[row["method"]], fillstyle="none", markersize=5)
                axis.plot(place[1:], ends[1:], "o", color=colors[row["method"]], markersize=5)
            axis.set_yscale("log")
            axis.set_xticks(range(len(problems)), problems, rotation=20)
            axis.set_title(f"Errors of u, data with {100 * level:g}% noise")
        for method in dict.fromkeys(row["method"] for row in rows):
            axes[-1].plot([], [], "o", color=colors[method], label=method)
        axes[-1].plot([], [], "o", color="black", fillstyle="none", label="inside the data's times")
        axes[-1].plot([], [], "o", color="black", label=f"until {_LATER} times the last")
        axes[0].set_ylabel("error, % of the mean |u|")
        axes[-1].legend(loc="upper left", bbox_to_anchor=(1, 1))
    return path
