"""What a learned PDE looks like: its solution, its error, its characteristics, its equation."""

from collections.abc import Callable
from pathlib import Path

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from charax.data import BOXES
from charax.models import AbstractRegressor, EquationRegressor
from charax.pde import PROBLEMS, AbstractProblem
from charax.plotting._style import C_NODE, EXACT, picture
from charax.tasks.pde import PDETask
from charax.train import Problem, Run

_SIDE = 64
_PATHS = 15


def draw_regression(run: Run, problem: Problem) -> list[Path]:
    """Everything there is to see of a learned PDE, into the `plots` folder of its run."""
    task, model = run.trained
    assert isinstance(task, PDETask)
    assert isinstance(model, AbstractRegressor)
    name = getattr(run.settings, "data", "")
    known = PROBLEMS[name]() if name in BOXES else None
    folder = run.folder / "plots"
    pictures = [draw_fit(task, model, problem, folder / "fit.png")]
    if task.scaling.dim == 1:
        pictures.append(draw_solution(task, model, known, folder / "solution.png"))
    if isinstance(model, EquationRegressor) and task.scaling.dim == task.scaling.values == 1:
        pictures.append(draw_equation(task, model, known, folder / "equation.png"))
    return pictures


def draw_fit(task: PDETask, model: AbstractRegressor, problem: Problem, path: Path) -> Path:
    """Learned against true values of the test part."""
    test = problem.test
    u, _ = task.evaluate(model, np.concatenate([test.x, test.t[:, None]], axis=1))
    with picture(path, width=3.4 * len(task.values), height=3.2) as figure:
        axes = np.atleast_1d(figure.subplots(1, len(task.values)))
        for i, axis in enumerate(axes):
            ends = test.u[:, i].min(), test.u[:, i].max()
            axis.plot(ends, ends, color=EXACT, linewidth=1, label="exact")
            axis.plot(test.u[:, i], u[:, i], "o", color=C_NODE, markersize=3, alpha=0.6, label="test points")
            axis.set(xlabel=f"{task.values[i]} of the data", ylabel=f"{task.values[i]} of the model")
        axes[0].legend()
    return path


def draw_solution(task: PDETask, model: AbstractRegressor, known: AbstractProblem | None, path: Path) -> Path:
    """The learned solution in the x-t plane with its characteristics over it, the true one and the error if known."""
    (left, start), (right, end) = task.lower, task.upper
    x, t = np.linspace(left, right, _SIDE), np.linspace(start, end, _SIDE)
    grid = np.stack([axis.reshape(-1) for axis in np.meshgrid(x, t)], axis=1).astype(np.float32)
    u, found = task.evaluate(model, grid)
    learned = np.where(found, u[:, 0], np.nan).reshape(_SIDE, _SIDE)
    truth = None if known is None else _exact(known, grid).reshape(_SIDE, _SIDE)
    panels = [("learned, with its characteristics", learned, "viridis")]
    if truth is not None:
        panels += [
            ("exact, with its characteristics", truth, "viridis"),
            ("absolute error", np.abs(learned - truth), "magma"),
        ]
    with picture(path, width=4.2 * len(panels), height=3.4) as figure:
        axes = np.atleast_1d(figure.subplots(1, len(panels), sharey=True))
        shared = learned if truth is None else truth
        for axis, (title, values, colours) in zip(axes, panels, strict=True):
            limits = {} if colours == "magma" else {"vmin": np.nanmin(shared), "vmax": np.nanmax(shared)}
            shown = axis.pcolormesh(x, t, np.ma.masked_invalid(values), cmap=colours, shading="nearest", **limits)
            figure.colorbar(shown, ax=axis)
            axis.grid(visible=False)
            axis.set(title=title, xlabel=task.places[0], xlim=(left, right), ylim=(start, end))
        axes[0].set_ylabel("t")
        _draw_paths(axes[0], lambda starts, times: model.paths(starts, times), (left, right), t)
        if known is not None:
            _draw_paths(axes[1], lambda starts, times: _true_paths(known, starts, times), (left, right), t)
    return path


def draw_equation(task: PDETask, model: EquationRegressor, known: AbstractProblem | None, path: Path) -> Path:
    """The learned velocity and source over u, at the middle of the data, beside the true ones if they are known."""
    u, learned, truth = task.tabulate_equation(model, known)
    with picture(path, width=7.2, height=3.0) as figure:
        for axis, name in zip(figure.subplots(1, 2), ("velocity", "source"), strict=True):
            if truth is not None:
                axis.plot(u, truth[name], color=EXACT, linewidth=4, alpha=0.5, label="exact")
            axis.plot(u, learned[name], color=C_NODE, label="learned")
            axis.set(xlabel="u", title=f"{name} {'a' if name == 'velocity' else 'c'}(u)")
            axis.margins(y=0.15)
            axis.legend()
            if np.ptp(learned[name]) < 0.05 * np.ptp(learned["velocity"]):
                half = 0.5 * np.ptp(learned["velocity"])  # what is nearly nothing should look so
                axis.set_ylim(-half, half)
    return path


def _exact(known: AbstractProblem, grid: np.ndarray) -> np.ndarray:
    u = known.exact(jnp.asarray(grid[:, :-1]), jnp.asarray(grid[:, -1]))
    return np.asarray(u).reshape(len(grid), -1)[:, 0]


def _true_paths(known: AbstractProblem, starts: Array, times: Array) -> Array:
    from charax.pde import characteristics

    return characteristics(known, starts, times).x


def _draw_paths(axis, follow: Callable[[Array, Array], Array], x: tuple[float, float], t: np.ndarray) -> None:
    # From beyond the edges, too: paths that enter later belong to the picture.
    reach = x[1] - x[0]
    starts = jnp.linspace(x[0] - reach, x[1] + reach, 3 * _PATHS)[:, None]
    lines = np.asarray(follow(starts, jnp.asarray(t, jnp.float32)))
    axis.plot(lines[..., 0], t, color="white", linewidth=0.8, alpha=0.8)
