"""Pictures of a run: how it went, and the characteristics it learned."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import matplotlib as mpl
import numpy as np
from jaxtyping import Float, Int

from charax.models import Classifier
from charax.models.flows import ContinuousFlow
from charax.plotting._flows import (
    density_on_grid,
    draw_density,
    draw_flow_characteristics,
    draw_grid_flow,
    draw_samples,
)
from charax.plotting._forecast import draw_forecasts
from charax.plotting._learned_pde import draw_regression
from charax.plotting._style import C_NODE, NODE, picture
from charax.solve import SolveError, Solver
from charax.tasks.classification import ClassificationTask
from charax.tasks.density import DensityTask
from charax.train import Problem, Run

_POINTS = 33
_PER_CLASS = 12
_LOSSES = {"nll": "negative log-likelihood", "bits_per_dim": "bits/dim"}
"""Losses that have a name of their own, and how people write it."""


def draw_run(run: Run, problem: Problem) -> list[Path]:
    """Draw everything there is to see of a run into its `plots` folder; returns the files."""
    folder = run.folder / "plots"
    folder.mkdir(exist_ok=True)
    return [draw_training(run.history, folder / "training.png"), *_DRAWN_BY_TASK[run.trained.task.name](run, problem)]


def _draw_classifier(run: Run, problem: Problem) -> list[Path]:
    task, model = run.trained
    assert isinstance(task, ClassificationTask)
    assert isinstance(model, Classifier)
    if not model.ode.field.characteristic_dim:
        return []
    chosen = np.concatenate(
        [np.flatnonzero(problem.test.targets == label)[:_PER_CLASS] for label in range(len(task.classes))]
    )
    inputs, labels = problem.test.inputs[chosen], problem.test.targets[chosen]
    x = follow_characteristics(model, inputs, task.solver)
    return [draw_learned_characteristics(x, labels, task.classes, run.folder / "plots" / "characteristics.png")]


def _draw_density(run: Run, problem: Problem) -> list[Path]:
    task, model = run.trained
    assert isinstance(task, DensityTask)
    folder = run.folder / "plots"
    n = 64 if task.levels is not None else 2_000
    try:
        samples = task.sample(model, n).values
    except SolveError:
        return []  # `charax sample` says what is wrong; the run itself is none the worse
    white = task.standardizer.white
    if task.shape != (2,) or task.classes:
        return [draw_samples(samples, white, folder / "samples.png")]
    assert isinstance(model, ContinuousFlow)
    mean, std = (np.asarray(value, np.float32) for value in (task.standardizer.mean, task.standardizer.std))
    data = problem.test.inputs[:n]
    reach = 1.15 * float(np.abs(data).max())
    pictures = [
        draw_density(
            *density_on_grid(model, task.solver, reach=reach), (samples - mean) / std, data, folder / "density.png"
        ),
        draw_grid_flow(model, task.solver, folder / "flow.png", reach=reach),
    ]
    if model.field.characteristic_dim:
        pictures.append(draw_flow_characteristics(model, task.solver, data[:100], folder / "characteristics.png"))
    return pictures


_DRAWN_BY_TASK: dict[str, Callable[[Run, Problem], list[Path]]] = {
    "classification": _draw_classifier,
    "density": _draw_density,
    "regression": draw_regression,
    "forecast": draw_forecasts,
}
"""What there is to see of a run beside its curves, by the name of its task."""


def draw_training(history: Sequence[dict[str, Any]], path: Path) -> Path:
    """Loss and accuracy of the training and the validation part over the epochs.

    `history` is a run's: rows with an `epoch`, and others, which are left out.
    """
    rows = [row for row in history if "epoch" in row]
    names = [name for name in ("loss", "accuracy", "deviation_percent") if name in rows[0]]
    named = {"loss": next((told for name, told in _LOSSES.items() if f"validation_{name}" in rows[0]), "loss")}
    with picture(path, width=3.8 * len(names), height=3.0) as figure:
        axes = np.atleast_1d(figure.subplots(1, len(names)))
        for axis, name in zip(axes, names, strict=True):
            for key, colour, label in ((name, NODE, "training"), (f"validation_{name}", C_NODE, "validation")):
                values = [np.nan if row[key] is None else row[key] for row in rows]
                marker = "o" if len(rows) == 1 else None
                axis.plot([row["epoch"] for row in rows], values, color=colour, label=label, marker=marker)
            axis.set_xlabel("epoch")
            axis.set_ylabel(named.get(name, name).replace("_percent", ", %"))
            axis.xaxis.get_major_locator().set_params(integer=True)
            # A likelihood may be negative.
            if name == "loss" and min(row[key] or 1 for row in rows for key in ("loss", "validation_loss")) > 0:
                axis.set_yscale("log")
        axes[-1].legend()
    return path


@eqx.filter_jit
def _follow(model: Classifier, inputs, solver: Solver):
    data = jnp.asarray(inputs) if model.stem is None else model.stem(jnp.asarray(inputs))
    context = data if "context" in model.ode.field.reads else None
    at = jnp.linspace(0, 1, _POINTS)
    return model.ode(data, solver=solver, context=context, at=at, with_characteristic=True).characteristic


def follow_characteristics(
    model: Classifier, inputs: Float[np.ndarray, "n *shape"], solver: Solver
) -> Float[np.ndarray, "points n k"]:
    """x(s) of some inputs, at equal distances of s."""
    return np.asarray(_follow(model, inputs, solver))


def draw_learned_characteristics(
    x: Float[np.ndarray, "points n k"], labels: Int[np.ndarray, "n"], classes: Sequence[str], path: Path
) -> Path:
    """The learned curves x(s), coloured by class: in the plane if there are two directions or more, else over s."""
    colours = mpl.colormaps["tab10" if len(classes) <= 10 else "turbo"]
    pick = lambda label: colours(label % 10) if len(classes) <= 10 else colours(label / (len(classes) - 1))
    s = np.linspace(0, 1, len(x))
    with picture(path, width=8.4, height=3.6) as figure:
        axes = figure.subplots(1, 2)
        for i, label in enumerate(labels):
            across, up = (x[:, i, 0], x[:, i, 1]) if x.shape[2] > 1 else (s, x[:, i, 0])
            axes[0].plot(across, up, color=pick(int(label)), linewidth=0.9, alpha=0.7)
            # The ends by themselves, for they may be close together at the scale of the whole way.
            end = (across[-1], up[-1]) if x.shape[2] > 1 else (int(label), up[-1])
            axes[1].plot(*end, "o", color=pick(int(label)), markersize=4)
        for axis, title in zip(
            axes, ("learned characteristics x(s) of test samples", "where they end, x(1)"), strict=True
        ):
            axis.set_xlabel("$x_1$" if x.shape[2] > 1 else "s" if axis is axes[0] else "class")
            axis.set_ylabel("$x_2$" if x.shape[2] > 1 else "x")
            axis.set_title(title)
        for label, name in list(enumerate(classes))[:20]:
            axes[1].plot([], [], "o", color=pick(label), label=name)
        axes[1].legend(loc="upper left", bbox_to_anchor=(1, 1), title="class")
    return path
