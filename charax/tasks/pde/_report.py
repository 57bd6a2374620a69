"""The report of a learned PDE: its solution with characteristics and shock, its profile over time, its equation."""

import jax.numpy as jnp
import numpy as np
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from charax.data import BOXES
from charax.models import AbstractRegressor, EquationRegressor
from charax.pde import PROBLEMS, AbstractProblem, shock_time
from charax.plotting import C_NODE, EXACT, Section
from charax.tasks.pde._plots import choose_variable, exact_values, spread_starts
from charax.tasks.pde._task import PDETask
from charax.train import Splits

_SIDE, _FRAMES = 61, 31


def report_pde(task: PDETask, model: AbstractRegressor, splits: Splits, data: str) -> list[Section]:
    """Everything that moves about a learned PDE."""
    known = PROBLEMS[data]() if data in BOXES else None
    scaling = task.spec.scaling
    sections = [_fit_section(task, model, splits)]
    if scaling.dim == 1:
        sections = [_solution_section(task, model, known), _profile_section(task, model, known), *sections]
    if isinstance(model, EquationRegressor) and scaling.dim == scaling.values == 1:
        sections.append(_equation_section(task, model, known))
    return sections


def _grid(task: PDETask, sides: tuple[int, int]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    (left, start), (right, end) = task.spec.lower, task.spec.upper
    x, t = (
        np.linspace(*ends, n, dtype=np.float32) for ends, n in zip(((left, right), (start, end)), sides, strict=True)
    )
    return x, t, np.stack([axis.reshape(-1) for axis in np.meshgrid(x, t)], axis=1)


def _learned(task: PDETask, model: AbstractRegressor, grid: np.ndarray, shape: tuple[int, int]) -> np.ndarray:
    u, found = task.evaluate(model, grid)
    return np.where(found, u[:, 0], np.nan).reshape(shape)


def _solution_section(task: PDETask, model: AbstractRegressor, known: AbstractProblem | None) -> Section:
    spec = task.spec
    x, t, grid = _grid(task, (_SIDE, _SIDE))
    learned = _learned(task, model, grid, (_SIDE, _SIDE))
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
        hoverinfo="skip",
    )
    crossing = _first_crossing(curves, t)
    text = f"The learned {name} over position and time, and its characteristics. "
    text += "They do not cross." if crossing is None else f"Learned characteristics first cross at t = {crossing:.3g}."
    if known is not None:
        shock = float(shock_time(known, horizon=2 * float(t[-1])))
        text += (
            f" The exact ones first cross at t = {shock:.3g}." if np.isfinite(shock) else " The exact ones never do."
        )
        if shock <= t[-1]:
            figure.add_hline(
                y=shock, line={"dash": "dash", "color": "white"}, annotation_text="shock of the exact solution"
            )
    figure.update_xaxes(title_text=spec.position_columns[0], range=[float(x[0]), float(x[-1])])
    figure.update_yaxes(title_text="t", range=[float(t[0]), float(t[-1])])
    return Section("Solution and characteristics", text, figure)


def _first_crossing(curves: np.ndarray, t: np.ndarray) -> float | None:
    """The first of the times at which neighbouring curves are not in their order any more."""
    crossed = (np.diff(curves, axis=1) <= 0).any(axis=1)
    return float(t[np.argmax(crossed)]) if crossed.any() else None


def _profile_section(task: PDETask, model: AbstractRegressor, known: AbstractProblem | None) -> Section:
    x, t, grid = _grid(task, (2 * _SIDE, _FRAMES))
    shape = (_FRAMES, 2 * _SIDE)
    curves = {"learned": _learned(task, model, grid, shape)}
    if known is not None:
        curves = {"exact": exact_values(known, grid).reshape(shape), **curves}
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
    return Section("Solution over time", "The values along x at one time.", figure, frame_label="t")


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
