"""Where theory says who must win: small problems whose solutions cross, enclose or fold.

The flow of a plain Neural ODE preserves order on a line and topology in space; extra dimensions (ANODE) or
characteristics lift that. Maps are read off the state itself, without a learned readout that could mirror it for free;
classes by a linear readout.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, ClassVar, Literal, NamedTuple

from charax import plotting
from charax.models import Method
from charax.paper._experiment import AbstractExperiment, choose
from charax.paper._records import RecordJob
from charax.paper._report import Column, Figure, Report
from charax.train import AbstractProgress, Sweep, check_range

Kind = Literal["map", "classify"]


class SeparationProblem(NamedTuple):
    """A map to learn from pairs, or two classes to separate."""

    kind: Kind
    dim: int
    description: str


PROBLEMS: Mapping[str, SeparationProblem] = MappingProxyType(
    {
        "swap": SeparationProblem("map", 1, "two points on a line change places"),
        "reverse": SeparationProblem("map", 1, "u to -u on an interval"),
        "rotation": SeparationProblem("map", 2, "rotation of a disc by 180 degrees"),
        "fold": SeparationProblem("map", 2, "(u1, u2) to (|u1|, u2)"),
        "spheres-1": SeparationProblem("classify", 1, "an interval and what surrounds it"),
        "spheres-2": SeparationProblem("classify", 2, "a disc and a ring around it"),
        "spheres-3": SeparationProblem("classify", 3, "a ball and a shell around it"),
        "spheres-5": SeparationProblem("classify", 5, "a ball and a shell around it, in five dimensions"),
        "xor": SeparationProblem("classify", 2, "opposite quadrants belong together"),
        "spirals": SeparationProblem("classify", 2, "two spirals"),
    }
)


class Variant(NamedTuple):
    """A method with its sizes."""

    method: Method | Literal["mlp"]
    k: int = 0
    reads_u0: bool = False
    augment_dim: int = 1
    matched: bool = False
    """Trained by flow matching on straight paths instead of through the solver."""

    @property
    def label(self) -> str:
        """A name for files and legends."""
        matched = "-matched" if self.matched else ""
        if self.method == "c-node":
            return f"c-node-k{self.k}" + ("-u0" if self.reads_u0 else "") + matched
        return f"{self.method}-{self.augment_dim}" if self.method == "anode" else self.method + matched

    def suits(self, problem: SeparationProblem) -> bool:
        """Whether the variant can learn the problem at all: paths, and the perceptron beside them, are for maps."""
        return problem.kind == "map" or not (self.matched or self.method == "mlp")


VARIANTS: tuple[Variant, ...] = (
    Variant("node"),
    Variant("anode", augment_dim=1),
    Variant("anode", augment_dim=5),
    Variant("il-node", augment_dim=1),
    Variant("2nd-order", augment_dim=1),
    *(Variant("c-node", k, reads_u0) for reads_u0 in (False, True) for k in (1, 2, 4)),
    Variant("node", matched=True),
    Variant("c-node", 2, True, matched=True),
    Variant("mlp"),
)

_SHOWN = {
    "node": "NODE",
    "anode-1": "ANODE + 1",
    "c-node-k2": "C-NODE, reads (s, u)",
    "c-node-k2-u0": "C-NODE, reads (s, $u_0$)",
}
"""The variants of the figure, with what they are called there."""

_COLUMNS = (
    Column("problem", "problem"),
    Column("method", "method"),
    Column("k", "k"),
    Column("reads u0", "reads_u0"),
    Column("error", "error_mean", ".4f", "error_sd"),
    Column("NFE", "nfe", ".0f"),
    Column("parameters", "parameters", ",d"),
    Column("s", "seconds", ".0f"),
)


@dataclass(frozen=True)
class Separations(AbstractExperiment):
    """Small problems where theory says who must win: swaps, nested spheres, XOR, spirals, folds. It resumes."""

    name: ClassVar[str] = "separations"

    problem: tuple[str, ...] = ()
    """Only these problems."""
    variant: tuple[str, ...] = ()
    """Only these variants, such as node, anode-1, c-node-k2 or c-node-k2-u0. For maps also node-matched and
    c-node-k2-u0-matched, which are trained by flow matching on straight paths, and mlp."""
    seeds: int = 5
    """Seeds per variant; they are trained side by side."""
    steps: int = 600
    """Steps of training."""
    points: int = 256
    """Training points, and as many test points."""

    def run(self, folder: Path, sweep: Sweep) -> Report:
        check_range(self, least={"seeds": 1, "steps": 1, "points": 10})
        labels = choose(self.variant, [variant.label for variant in VARIANTS], "variant", "separations")
        settings = {"seeds": self.seeds, "steps": self.steps, "points": self.points}
        pairs = [
            (problem, variant)
            for problem in choose(self.problem, tuple(PROBLEMS), "problem", "separations")
            for variant in VARIANTS
            if variant.suits(PROBLEMS[problem]) and variant.label in labels
        ]
        if not pairs:
            maps = ", ".join(name for name, problem in PROBLEMS.items() if problem.kind == "map")
            raise ValueError(f"variant {', '.join(labels)} can only learn maps: choose from the problems {maps}")
        jobs = [
            RecordJob(
                folder / "records" / f"{problem}-{variant.label}.json",
                settings,
                _learn,
                {"problem": problem, "variant": variant, **settings},
            )
            for problem, variant in pairs
        ]
        rows = [_row(*pair, result) for pair, result in zip(pairs, sweep.run(jobs), strict=True)]
        flat = [{name: value for name, value in row.items() if name != "shown"} for row in rows]
        panels = [row for row in rows if row["variant"] in _SHOWN and PROBLEMS[row["problem"]].dim <= 2]
        record = {**settings, "panels": [_record_panel(row) for row in panels]}
        return Report(
            name=self.name,
            title=f"Separations: error of the map, or fraction of wrong classes; {self.seeds} seeds",
            columns=_COLUMNS,
            answer={"rows": flat},
            record=record,
            figures=self.figures(record),
        )

    def figures(self, stored: Mapping[str, Any]) -> Mapping[str, Figure]:
        return {"separations.png": lambda path, panels=stored["panels"]: plot(panels, path)}


def _learn(
    problem: str, variant: Variant, *, seeds: int, steps: int, points: int, progress: AbstractProgress
) -> dict[str, Any]:
    from charax.paper import _separation_training as training  # which imports JAX

    return asdict(training.learn(problem, variant, seeds=seeds, steps=steps, points=points))


def _row(problem: str, variant: Variant, result: Mapping[str, Any]) -> dict[str, Any]:
    from charax.train import mean_and_sd

    mean, sd = mean_and_sd(result["errors"])
    augmented = f" + {variant.augment_dim}" if variant.method == "anode" else ""
    return {
        "problem": problem,
        "method": variant.method + augmented + (", matched" if variant.matched else ""),
        "k": variant.k or None,
        "reads_u0": variant.reads_u0 if variant.k else None,
        "error_mean": mean,
        "error_sd": sd,
        "nfe": result["nfe"],
        "parameters": result["parameters"],
        "seconds": result["seconds"],
        "variant": variant.label,
        "shown": result["shown"],
    }


def _record_panel(row: Mapping[str, Any]) -> dict[str, Any]:
    """What the figure shows of a row: the error is the mean over the seeds, the trajectories are of the first one."""
    return {name: row[name] for name in ("problem", "variant", "error_mean")} | row["shown"]


def plot(panels: Sequence[Mapping[str, Any]], path: Path) -> Path:
    """A row per problem and a column per variant: trajectories over s on a line, in the plane with the decision."""
    found = {(each["problem"], each["variant"]): each for each in panels}
    problems = list(dict.fromkeys(problem for problem, _ in found)) or [""]
    variants = [name for name in _SHOWN if any(name == variant for _, variant in found)] or [""]
    with plotting.save_figure(path, width=2.5 * len(variants), height=2.4 * len(problems)) as figure:
        axes = figure.subplots(len(problems), len(variants), squeeze=False)
        for line, problem in zip(axes, problems, strict=True):
            for axis, variant in zip(line, variants, strict=True):
                axis.set(xticks=[], yticks=[])
                if (problem, variant) in found:
                    _plot_panel(axis, found[problem, variant])
    return path


def _plot_panel(axis, panel: Mapping[str, Any]) -> None:
    import numpy as np

    u = np.asarray(panel["trajectories"])  # points, dimensions, times
    colors = [plotting.CLASSES[2 if one else 0] for one in panel["labels"]]
    if u.shape[1] == 1:
        axis.set(xlabel="s", ylabel="u")
        for path, color in zip(u, colors, strict=True):
            axis.plot(np.linspace(0, 1, u.shape[2]), path[0], color=color, linewidth=0.7)
    else:
        limit = 1.5 * panel["reach"]  # some trajectories lead far away
        axis.set(xlabel="$u_1$", ylabel="$u_2$", xlim=(-limit, limit), ylim=(-limit, limit), aspect="equal")
        if panel["decision"] is not None:
            edges = (-panel["reach"], panel["reach"]) * 2
            style = {"cmap": "coolwarm", "alpha": 0.35, "vmin": 0, "vmax": 1}
            axis.imshow(np.asarray(panel["decision"]), extent=edges, origin="lower", **style)
        for path, color in zip(u, colors, strict=True):
            axis.plot(*path, color=color, linewidth=0.5, alpha=0.7)
        axis.plot(u[:, 0, 0], u[:, 1, 0], ".", color="black", markersize=1.5)
    title = f"{panel['problem']}: {_SHOWN[panel['variant']]}\nerror {panel['error_mean']:.3f}"
    axis.set_title(title, fontsize=9)
