"""The report of a learned PDE: its solution with characteristics and shock, its profile over time, its equation."""

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from charax.data import BOXES
from charax.models import AbstractRegressor, EquationRegressor
from charax.pde import PROBLEMS, AbstractProblem, shock_time, shocks
from charax.pde._entropy import solve_entropy
from charax.pde._foot import PointStatus
from charax.plotting import C_NODE, EXACT, Section
from charax.tasks.pde._plots import LATEST_SHOCK, choose_variable, exact_values, spread_starts
from charax.tasks.pde._posterior import find_shock_time
from charax.tasks.pde._task import PDETask
from charax.train import Splits

_SIDE, _FRAMES = 61, 41


class _Plane(NamedTuple):
    """How far the solution is shown: beyond the data where a shock forms, of which the equation knows what follows."""

    until: float
    """The last time."""
    shock: float | None = None
    """When learned characteristics first cross, if the entropy solution is known from there on."""
    paths: tuple[np.ndarray, np.ndarray] | None = None
    """The positions and the times of the shocks."""


def report_pde(task: PDETask, model: AbstractRegressor, splits: Splits, data: str) -> list[Section]:
    """Everything that moves about a learned PDE."""
    known = PROBLEMS[data]() if data in BOXES else None
    scaling = task.spec.scaling
    sections = [_fit_section(task, model, splits)]
    if scaling.dim == 1:
        plane = _find_plane(task, model)
        sections = [
            _solution_section(task, model, known, plane),
            _profile_section(task, model, known, plane),
            *sections,
        ]
    if isinstance(model, EquationRegressor) and scaling.dim == scaling.values == 1:
        sections.append(_equation_section(task, model, known))
    return sections


def _find_plane(task: PDETask, model: AbstractRegressor) -> _Plane:
    end, scaling = task.spec.upper[1], task.spec.scaling
    if not isinstance(model, EquationRegressor) or not scaling.dim == scaling.values == 1:
        return _Plane(end)
    shock = find_shock_time(model, task.find_domain(model)[0], LATEST_SHOCK * end)
    if not np.isfinite(shock):
        return _Plane(end)
    until = max(end, 1.5 * shock)
    times = np.linspace(shock, until, 2 * _SIDE, dtype=np.float32)
    try:
        found = shocks(task.problem(model), jnp.asarray(times))
    except ValueError:  # a learned flux that is neither convex nor concave has no entropy solution here
        return _Plane(end)
    valid = np.asarray(found.valid)
    if not valid.any():
        return _Plane(end)
    return _Plane(until, shock, (np.asarray(found.x)[valid], np.broadcast_to(times[:, None], valid.shape)[valid]))


def _grid(task: PDETask, until: float, sides: tuple[int, int]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    (left, start), right = task.spec.lower, task.spec.upper[0]
    x, t = (
        np.linspace(*ends, n, dtype=np.float32) for ends, n in zip(((left, right), (start, until)), sides, strict=True)
    )
    return x, t, np.stack([axis.reshape(-1) for axis in np.meshgrid(x, t)], axis=1)


def _learned(
    task: PDETask, model: AbstractRegressor, plane: _Plane, grid: np.ndarray, shape: tuple[int, int]
) -> np.ndarray:
    u, found = task.evaluate(model, grid) if plane.shock is None else task.evaluate_past_shocks(model, grid)
    return np.where(found, u[:, 0], np.nan).reshape(shape)


def _solution_section(task: PDETask, model: AbstractRegressor, known: AbstractProblem | None, plane: _Plane) -> Section:
    spec = task.spec
    x, t, grid = _grid(task, plane.until, (2 * _SIDE, _SIDE))
    learned = _learned(task, model, plane, grid, (_SIDE, 2 * _SIDE))
    name = spec.value_columns[0]
    figure = go.Figure(
        go.Heatmap(z=learned, x=x, y=t, colorscale="Viridis", colorbar={"title": {"text": name}}, name="learned")
    )
    curves = np.asarray(model.characteristics(spread_starts(float(x[0]), float(x[-1])), jnp.asarray(t)))[..., 0]
    gaps = np.full((1, curves.shape[1]), np.nan)
    figure.add_scatter(
        x=np.concatenate([curves, gaps]).T.ravel(),
        y=np.tile(np.append(t, np.nan), curves.shape[1]),
        mode="lines",
        line={"color": "white", "width": 1},
        name="learned characteristics",
        showlegend=False,  # white on the page would not be seen
        hoverinfo="skip",
    )
    crossing = _first_crossing(curves, t) if plane.shock is None else plane.shock
    text = f"The learned {name} over position and time, and its characteristics (white). "
    text += "They do not cross." if crossing is None else f"Learned characteristics first cross at t = {crossing:.3g}."
    if plane.paths is not None:
        text += " From then on this is the entropy solution of the learned equation, with its shocks in black."
        black = {"mode": "markers", "marker": {"color": "black", "size": 5}, "showlegend": False}
        figure.add_scatter(x=plane.paths[0], y=plane.paths[1], name="learned shocks", **black)
    if plane.until > spec.upper[1]:
        dashed = {"dash": "dash", "color": "white"}
        figure.add_hline(
            y=spec.upper[1], line=dashed, annotation={"text": "last time of the data", "font_color": "white"}
        )
    if known is not None:
        shock = float(shock_time(known, horizon=LATEST_SHOCK * plane.until))
        text += (
            f" The exact ones first cross at t = {shock:.3g}." if np.isfinite(shock) else " The exact ones never do."
        )
    figure.update_xaxes(title_text=spec.position_columns[0], range=[float(x[0]), float(x[-1])])
    figure.update_yaxes(title_text="t", range=[float(t[0]), float(t[-1])])
    return Section("Solution and characteristics", text, figure)


def _first_crossing(curves: np.ndarray, t: np.ndarray) -> float | None:
    """The first of the times at which neighbouring curves are not in their order any more."""
    crossed = (np.diff(curves, axis=1) <= 0).any(axis=1)
    return float(t[np.argmax(crossed)]) if crossed.any() else None


def _exact(known: AbstractProblem, plane: _Plane, grid: np.ndarray, shape: tuple[int, int]) -> np.ndarray:
    """The exact values; the entropy solution where the learned one is."""
    if plane.shock is None:
        return exact_values(known, grid).reshape(shape)
    solved = solve_entropy(known, jnp.asarray(grid[:, :1]), jnp.asarray(grid[:, 1]), None)
    return np.where(np.asarray(solved.status) == PointStatus.FOUND, np.asarray(solved.u), np.nan).reshape(shape)


def _profile_section(task: PDETask, model: AbstractRegressor, known: AbstractProblem | None, plane: _Plane) -> Section:
    x, t, grid = _grid(task, plane.until, (4 * _SIDE, _FRAMES))
    shape = (_FRAMES, 4 * _SIDE)
    curves = {"learned": _learned(task, model, plane, grid, shape)}
    if known is not None:
        curves = {"exact": _exact(known, plane, grid, shape), **curves}
    styles = {"exact": {"color": EXACT, "width": 5}, "learned": {"color": C_NODE, "width": 2}}
    figure = go.Figure(
        [go.Scatter(x=x, y=u[0], mode="lines", line=styles[name], name=name) for name, u in curves.items()],
        frames=[
            go.Frame(name=f"{time:.3g}", data=[go.Scatter(x=x, y=u[i]) for u in curves.values()])
            for i, time in enumerate(t)
        ],
    )
    low, high = (pick([pick(u) for u in curves.values()]) for pick in (np.nanmin, np.nanmax))
    margin = 0.05 * (high - low) or 1.0
    figure.update_xaxes(title_text=task.spec.position_columns[0])
    figure.update_yaxes(title_text=task.spec.value_columns[0], range=[float(low - margin), float(high + margin)])
    text = "The values along x at one time."
    if plane.until > task.spec.upper[1]:
        text += f" The data end at t = {task.spec.upper[1]:.3g}"
        text += "." if plane.shock is None else f", and a shock forms at t = {plane.shock:.3g}."
    return Section("Solution over time", text, figure, frame_label="t")


def _fit_section(task: PDETask, model: AbstractRegressor, splits: Splits) -> Section:
    test, columns = splits.test, task.spec.value_columns
    u, found = task.evaluate(model, np.concatenate([test.x, test.t[:, None]], axis=1))
    figure = make_subplots(1, len(columns))
    for i, name in enumerate(columns):
        ends = [float(test.u[:, i].min()), float(test.u[:, i].max())]
        shown = {"row": 1, "col": i + 1, "showlegend": i == 0}
        figure.add_scatter(x=ends, y=ends, mode="lines", line={"color": EXACT}, name="exact", **shown)
        marker = {"color": C_NODE, "size": 5, "opacity": 0.7}
        figure.add_scatter(x=test.u[:, i], y=u[:, i], mode="markers", marker=marker, name="test points", **shown)
        figure.update_xaxes(title_text=f"{name} of the data", row=1, col=i + 1)
        figure.update_yaxes(title_text=f"{name} of the model", row=1, col=i + 1)
    lost = int((~found).sum())
    text = "Learned against observed values of the test split."
    return Section("Fit", text + (f" {lost} points have no characteristic." if lost else ""), figure)


def _equation_section(task: PDETask, model: EquationRegressor, known: AbstractProblem | None) -> Section:
    figure = make_subplots(1, 2)
    for column, (name, symbol) in enumerate((("velocity", "a"), ("source", "c")), start=1):
        over = choose_variable(model, name)
        u, learned, truth = task.tabulate_equation(model, known, over=over)
        for label, values, line in (
            ("exact", truth, {"color": EXACT, "width": 5}),
            ("learned", learned, {"color": C_NODE}),
        ):
            if values is not None:
                shown = {"row": 1, "col": column, "showlegend": column == 1}
                figure.add_scatter(x=u, y=values[name], mode="lines", line=line, name=label, **shown)
        figure.update_xaxes(title_text=over, row=1, col=column)
        figure.update_yaxes(title_text=f"{name} {symbol}({over})", row=1, col=column)
    return Section("Learned equation", "The coefficients of uₜ + a·uₓ = c over what they read.", figure)
