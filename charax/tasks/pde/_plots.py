"""Figures of a learned PDE: its fit, its solution with characteristics, its equation."""

import contextlib
from collections.abc import Callable, Sequence
from pathlib import Path

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable

from charax.data import BOXES
from charax.models import AbstractRegressor, Dependence, EquationRegressor
from charax.pde import PROBLEMS, AbstractProblem, characteristics, shocks
from charax.pde._entropy import solve_entropy
from charax.plotting import C_NODE, EXACT, save_figure
from charax.plotting import plot_equation as plot_coefficient
from charax.tasks.pde._least_squares import distinct_rows, single_threaded_blas
from charax.tasks.pde._posterior import draw_members, find_shock_time
from charax.tasks.pde._refinement import current_fit
from charax.tasks.pde._task import PDETask
from charax.train import Splits

_SIDE = 64
_INTERVAL = "half the 95% interval, and the samples"
_HELD_OUT = "absolute error at test samples"
_MARGIN = 0.15
"""How far coefficients are plotted beyond the values of the data, relative to their range."""
_CURVES = 15
LATEST_SHOCK = 2.0
"""Shocks are plotted if they form before this many times the last time of the data."""


def plot_pde(task: PDETask, model: AbstractRegressor, splits: Splits, folder: Path, data: str) -> list[Path]:
    """Everything there is to see of a learned PDE."""
    known = PROBLEMS[data]() if data in BOXES else None
    scaling = task.spec.scaling
    paths = [plot_fit(task, model, splits, folder / "fit.png")]
    if scaling.dim == 1:
        paths.append(plot_solution(task, model, known, folder / "solution.png", splits=splits))
    if isinstance(model, EquationRegressor) and scaling.dim == scaling.values == 1:
        members = draw_ensemble(task, model, splits) if task.is_refined else []
        paths.append(plot_equation(task, model, known, folder / "equation.png", members=members, splits=splits))
        domain, end = task.find_domain(model)[0], task.spec.upper[1]
        shock = find_shock_time(model, domain, LATEST_SHOCK * end)
        if np.isfinite(shock):
            # A learned flux that is neither convex nor concave has no entropy solution here.
            with contextlib.suppress(ValueError):
                paths.append(plot_shocks(task, model, folder / "shocks.png", until=max(end, 1.5 * shock)))
    return paths


def draw_ensemble(
    task: PDETask, model: EquationRegressor, splits: Splits, *, count: int = 8
) -> list[EquationRegressor]:
    """Equations that the data cannot tell from the learned one."""
    train, validation = distinct_rows(splits.train), distinct_rows(splits.validation)
    with single_threaded_blas():
        return draw_members(current_fit(model), train, validation, task.solver, count=count).members


def plot_fit(task: PDETask, model: AbstractRegressor, splits: Splits, path: Path) -> Path:
    """Learned against true values of the test split."""
    test, columns = splits.test, task.spec.value_columns
    u, _ = task.evaluate(model, np.concatenate([test.x, test.t[:, None]], axis=1))
    with save_figure(path, width=3.4 * len(columns), height=3.2) as figure:
        axes = np.atleast_1d(figure.subplots(1, len(columns)))
        for i, axis in enumerate(axes):
            ends = test.u[:, i].min(), test.u[:, i].max()
            axis.plot(ends, ends, color=EXACT, linewidth=1, label="exact")
            axis.plot(test.u[:, i], u[:, i], "o", color=C_NODE, markersize=3, alpha=0.6, label="test points")
            axis.set(xlabel=f"{columns[i]} of the data", ylabel=f"{columns[i]} of the model")
        axes[0].legend()
    return path


def plot_solution(
    task: PDETask,
    model: AbstractRegressor,
    known: AbstractProblem | None,
    path: Path,
    *,
    splits: Splits | None = None,
) -> Path:
    """Plot the learned solution over the x-t plane with its characteristics, and the exact one and the error if known.

    If its data are given, the errors at the test samples are plotted, and if an equation was learned, its 95% interval.

    Args:
        task: The task.
        model: The trained model.
        known: The true equation, if there is one.
        path: The file.
        splits: The data.

    Returns:
        The file.
    """
    (left, start), (right, end) = task.spec.lower, task.spec.upper
    x, t = np.linspace(left, right, _SIDE), np.linspace(start, end, _SIDE)
    grid = np.stack([axis.reshape(-1) for axis in np.meshgrid(x, t)], axis=1).astype(np.float32)
    u, found = task.evaluate(model, grid)
    learned = np.where(found, u[:, 0], np.nan).reshape(_SIDE, _SIDE)
    truth = None if known is None else exact_values(known, grid).reshape(_SIDE, _SIDE)
    panels = [("learned, with its characteristics", learned, "viridis")]
    if truth is not None:
        panels += [
            ("exact, with its characteristics", truth, "viridis"),
            ("absolute error", np.abs(learned - truth), "magma"),
        ]
    elif splits is not None:
        panels.append((_HELD_OUT, np.full_like(learned, np.nan), "magma"))
    if (
        splits is not None
        and isinstance(model, EquationRegressor)
        and task.is_refined
        and task.spec.scaling.values == 1
    ):
        interval = task.interval(model, splits, grid)
        panels.append((_INTERVAL, interval.confidence[:, 0].reshape(_SIDE, _SIDE), "magma"))
    with save_figure(path, width=4.2 * len(panels), height=3.4) as figure:
        axes = np.atleast_1d(figure.subplots(1, len(panels), sharey=True))
        shared = learned if truth is None else truth
        for axis, (title, values, colours) in zip(axes, panels, strict=True):
            limits = {} if colours == "magma" else {"vmin": np.nanmin(shared), "vmax": np.nanmax(shared)}
            if title == _HELD_OUT and splits is not None:
                shown = _plot_errors(axis, task, model, splits)
            else:
                shown = axis.pcolormesh(x, t, np.ma.masked_invalid(values), cmap=colours, shading="nearest", **limits)
            figure.colorbar(shown, ax=axis)
            axis.grid(visible=False)
            axis.set(title=title, xlabel=task.spec.position_columns[0], xlim=(left, right), ylim=(start, end))
            if title == _INTERVAL and splits is not None:
                axis.plot(splits.train.x[:, 0], splits.train.t, ".", color="white", markersize=1, alpha=0.6)
        axes[0].set_ylabel("t")
        _plot_characteristics(axes[0], model.characteristics, (left, right), t)
        if known is not None:
            _plot_characteristics(axes[1], lambda x, t: characteristics(known, x, t).x, (left, right), t)
    return path


def _plot_errors(axis: Axes, task: PDETask, model: AbstractRegressor, splits: Splits) -> ScalarMappable:
    test = splits.test
    u, found = task.evaluate(model, np.concatenate([test.x, test.t[:, None]], axis=1))
    error = np.where(found, np.abs(u[:, 0] - test.u[:, 0]), np.nan)
    return axis.scatter(test.x[:, 0], test.t, c=error, cmap="magma", s=12)


def plot_equation(
    task: PDETask,
    model: EquationRegressor,
    known: AbstractProblem | None,
    path: Path,
    *,
    members: Sequence[EquationRegressor] = (),
    splits: Splits | None = None,
) -> Path:
    """Plot the learned velocity and source over what they read, and the exact ones if known.

    A coefficient that reads several of u, x and t is plotted over the first of them, the others in their middle.

    Args:
        task: The task.
        model: A trained `EquationRegressor`.
        known: The true equation, if there is one.
        path: The file.
        members: An ensemble, whose spread is plotted as a band of two standard deviations.
        splits: The data; how many samples have each value is plotted below.

    Returns:
        The file.
    """
    size = np.ptp(task.tabulate_equation(model, over=choose_variable(model, "velocity"), margin=_MARGIN)[1]["velocity"])
    (left, start), (right, end) = task.spec.lower, task.spec.upper
    ranges = {"x": (left, right), "t": (start, end), "u": task.spec.value_range}
    with save_figure(path, width=7.2, height=3.0) as figure:
        for axis, name in zip(figure.subplots(1, 2), ("velocity", "source"), strict=True):
            over = choose_variable(model, name)
            u, learned, truth = task.tabulate_equation(model, known, over=over, margin=_MARGIN)
            others = [task.tabulate_equation(member, over=over, margin=_MARGIN)[1] for member in members]
            samples = None if splits is None else {"u": splits.train.u, "x": splits.train.x, "t": splits.train.t}[over]
            if others:
                spread = 2 * np.std([one[name] for one in others], axis=0, ddof=1)
                band = learned[name] - spread, learned[name] + spread
                axis.fill_between(u, *band, color=C_NODE, alpha=0.25, linewidth=0, label="two standard deviations")
            for side, label in ((u[0], "beyond the data"), (u[-1], None)):
                end = np.clip(side, *ranges[over])
                axis.axvspan(side, end, color="0.5", alpha=0.2, linewidth=0, label=label)
            plot_coefficient(u, learned, truth, axis, name=name, over=over)
            if samples is not None:
                below = axis.twinx()
                below.hist(samples.reshape(-1), bins=40, color="0.8", zorder=0)
                below.set(ylim=(0, 6 * below.get_ylim()[1]), yticks=[])
                below.grid(visible=False)
                axis.set_zorder(below.get_zorder() + 1)
                axis.patch.set_visible(False)
            if np.ptp(learned[name]) < 0.05 * size:
                half = 0.5 * size  # what is nearly zero should look like it
                axis.set_ylim(-half, half)
    return path


def choose_variable(model: EquationRegressor, name: str) -> Dependence:
    """Over what to plot a coefficient: the first of u, x and t that it reads; u if it is known."""
    reads = model.field.learned[name].reads if name in model.field.learned else ("u",)
    return next(variable for variable in ("u", "x", "t") if variable in reads)


def plot_shocks(task: PDETask, model: EquationRegressor, path: Path, *, until: float) -> Path:
    """Plot the entropy solution of a learned equation with its characteristics and the paths of its shocks.

    Args:
        task: The task.
        model: The trained model.
        path: The file.
        until: The last time.

    Returns:
        The file.
    """
    problem, (left, right) = task.problem(model), (task.spec.lower[0], task.spec.upper[0])
    x, t = np.linspace(left, right, _SIDE), np.linspace(0, until, _SIDE)
    grid = np.stack([axis.reshape(-1) for axis in np.meshgrid(x, t)], axis=1).astype(np.float32)
    solved = solve_entropy(problem, jnp.asarray(grid[:, :1]), jnp.asarray(grid[:, 1]), None)
    found = shocks(problem, jnp.asarray(t, jnp.float32))
    with save_figure(path, width=5.4, height=3.6) as figure:
        axis = figure.add_subplot()
        values = np.ma.masked_invalid(np.asarray(solved.u).reshape(_SIDE, _SIDE))
        figure.colorbar(axis.pcolormesh(x, t, values, cmap="viridis", shading="nearest"), ax=axis)
        _plot_characteristics(axis, model.characteristics, (left, right), t)
        valid, times = np.asarray(found.valid), np.broadcast_to(t[:, None], found.x.shape)
        axis.plot(np.asarray(found.x)[valid], times[valid], ".", color="black", markersize=5, label="shocks")
        axis.axhline(task.spec.upper[1], color="white", linestyle="--", linewidth=1, label="last time of the data")
        axis.grid(visible=False)
        axis.set(xlabel=task.spec.position_columns[0], ylabel="t", xlim=(left, right), ylim=(0, until))
        axis.legend(loc="lower right", frameon=True, framealpha=0.8)
    return path


def exact_values(known: AbstractProblem, grid: np.ndarray) -> np.ndarray:
    """The first exact value at points (x, t)."""
    u = known.exact(jnp.asarray(grid[:, :-1]), jnp.asarray(grid[:, -1]))
    return np.asarray(u).reshape(len(grid), -1)[:, 0]


def _plot_characteristics(axis, follow: Callable[[Array, Array], Array], x: tuple[float, float], t: np.ndarray) -> None:
    lines = np.asarray(follow(spread_starts(*x), jnp.asarray(t, jnp.float32)))
    axis.plot(lines[..., 0], t, color="white", linewidth=0.8, alpha=0.8)


def spread_starts(left: float, right: float) -> Array:
    """Where to start characteristics, also beyond the edges: those that enter later belong to the figure."""
    reach = right - left
    return jnp.linspace(left - reach, right + reach, 3 * _CURVES)[:, None]
