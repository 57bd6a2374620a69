"""The report of a flow: density and samples along s, characteristics, trajectories, samples of tables."""

from dataclasses import replace

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import plotly.graph_objects as go
from jaxtyping import Array, Float
from plotly.subplots import make_subplots

from charax.fields import Scalar
from charax.models.flows import ContinuousFlow, ExactTrace, follow_flow
from charax.models.flows._augmented_field import AugmentedField
from charax.plotting import C_NODE, EXACT, Followed, Section, curve_sections
from charax.solve import SolveError, Solver
from charax.tasks.density._following import trajectories_of
from charax.tasks.density._image_report import report_images
from charax.tasks.density._path_report import density_section
from charax.tasks.density._spec import DensityBatch
from charax.tasks.density._task import DensityTask
from charax.train import Splits

_SIDE, _FRAMES, _POINTS, _CURVES = 81, 13, 1500, 90
_COLUMNS = 6
_FEW = 300
"""Rows up to which points are large enough to be seen one by one, and whose density is followed."""
_RADII = ("innermost third of the data", "middle third", "outermost third")


def report_flow(task: DensityTask, model: eqx.Module, splits: Splits) -> list[Section]:
    """Everything that moves about a flow."""
    spec, test = task.spec, splits.test
    if spec.levels is not None:
        return report_images(task, model, test)
    assert isinstance(model, ContinuousFlow)
    few = test.take(_POINTS)
    is_conditional = bool(spec.classes or spec.context)
    sections = [] if is_conditional or len(spec.shape) != 1 or spec.shape[0] > 2 else [_along_section(task, model, few)]
    sections += _samples_sections(task, model, few, with_density=not sections)
    if len(spec.shape) == 1:
        sections += _curves(task, model, few.take(_CURVES))
    return sections


def _curves(task: DensityTask, flow: ContinuousFlow, few: DensityBatch) -> list[Section]:
    """Characteristics and states of some test points, from the data to the base distribution."""
    fractions = np.linspace(0, 1, 33)
    inputs = np.asarray(few.inputs)
    u, x = trajectories_of(flow, inputs, task.solver, fractions, task.context_of(few))
    if task.spec.classes:
        labels, names, how = np.asarray(few.targets), task.spec.classes, "class"
    else:
        radius = np.linalg.norm(inputs, axis=1)
        labels = np.searchsorted(np.quantile(radius, [1 / 3, 2 / 3]), radius).astype(int)
        names, how = _RADII, "distance from the origin"
    end = float(flow.end_time)
    return curve_sections(
        Followed(fractions * end, u, x),
        labels,
        names,
        each=f"test point (standardized), coloured by its {how}",
        ending=f"At s = {end:.3g} they should be normally distributed.",
    )


@eqx.filter_jit
def _log_prob_at(flow: ContinuousFlow, u: Array, s: Scalar, solver: Solver) -> Array:
    field = AugmentedField(flow.field, ExactTrace(), None)
    solution = solver.solve(field, u, s0=s, s1=flow.end_time, with_characteristic=True)
    assert solution.x is not None
    return flow.base_log_prob(solution.u) + solution.x[:, 0]


def density_at(
    flow: ContinuousFlow, s: float, solver: Solver, *, reach: float, points: int
) -> tuple[Float[np.ndarray, "points"], Float[np.ndarray, "points *up"]]:
    """One axis of a grid around 0, on the line or in the plane, and the density of u(s): the learned one at s = 0."""
    axis = np.linspace(-reach, reach, points, dtype=np.float32)
    coordinates = np.meshgrid(*[axis] * flow.shape[0])
    u = jnp.asarray(np.stack([each.ravel() for each in coordinates], axis=1))
    if s >= float(flow.end_time):
        log_prob = flow.base_log_prob(u)
    else:
        log_prob = _log_prob_at(flow, u, jnp.asarray(s, jnp.float32), solver)
    return axis, np.exp(np.asarray(log_prob)).reshape(coordinates[0].shape)


def _along_section(task: DensityTask, flow: ContinuousFlow, few: DensityBatch) -> Section:
    """The density on the line or in the plane, and test points, at some s."""
    data = np.asarray(few.inputs)
    reach = 1.15 * max(float(np.abs(data).max()), 2 * flow.scale)
    fractions = np.linspace(0, 1, _FRAMES)
    moved, _ = trajectories_of(flow, data, task.solver, fractions)
    shown = _plane_traces if flow.shape[0] == 2 else _line_traces
    frames = []
    for fraction, points in zip(fractions, moved, strict=True):
        s = float(fraction * flow.end_time)
        grid = density_at(flow, s, task.solver, reach=reach, points=_SIDE if flow.shape[0] == 2 else 4 * _SIDE)
        frames.append(go.Frame(name=f"{s:.3g}", data=shown(*grid, points)))
    figure = go.Figure(frames[0].data, frames=frames)
    if flow.shape[0] == 2:
        figure.update_xaxes(range=[-reach, reach], constrain="domain", title_text="u<sub>1</sub>, standardized")
        figure.update_yaxes(range=[-reach, reach], scaleanchor="x", title_text="u<sub>2</sub>, standardized")
    else:
        highest = max(float(np.nanmax(frame.data[0].y)) for frame in frames)
        figure.update_xaxes(range=[-reach, reach], title_text="u, standardized")
        figure.update_yaxes(range=[-0.05 * highest, 1.05 * highest], title_text="density")
    text = (
        "The learned density at s = 0 and what the flow makes of it, with the test points that it carries along; at "
        f"s = {float(flow.end_time):.3g} both should be the normal distribution. Played backwards it is how samples "
        "are drawn."
    )
    return Section("Density and points along s", text, figure)


def _plane_traces(axis: np.ndarray, density: np.ndarray, points: np.ndarray) -> list[go.Heatmap | go.Scatter]:
    top = float(np.nanquantile(density, 0.999)) or 1.0
    bar = {"colorscale": "Blues", "colorbar": {"title": {"text": "density"}}, "hoverinfo": "skip"}
    return [
        go.Heatmap(z=density.astype(np.float32), x=axis, y=axis, zmin=0, zmax=top, **bar),
        _points_trace(points[:, 0], points[:, 1], size=2.5),
    ]


def _line_traces(axis: np.ndarray, density: np.ndarray, points: np.ndarray) -> list[go.Scatter]:
    few = points[::5, 0]
    line = {"mode": "lines", "line": {"color": C_NODE}, "fill": "tozeroy", "fillcolor": "rgba(0, 114, 178, 0.18)"}
    return [go.Scatter(x=axis, y=density, name="density", **line), _points_trace(few, np.zeros(len(few)), size=4.0)]


def _points_trace(x: np.ndarray, y: np.ndarray, *, size: float) -> go.Scatter:
    marker = {"color": EXACT, "size": size, "opacity": 0.6}
    return go.Scatter(x=x, y=y, mode="markers", marker=marker, name="test points")


def _samples_sections(
    task: DensityTask, model: ContinuousFlow, few: DensityBatch, *, with_density: bool
) -> list[Section]:
    """Samples next to test rows, each with the class and the context of a test row if there are any; both along s."""
    spec = task.spec
    try:
        samples = task.sample_given(model, few)
    except SolveError as error:
        return [Section("Samples", f"There are no samples: {error}")]
    data = spec.standardizer.inverse(spec.join_columns(np.asarray(few.inputs), few.context))  # pyright: ignore[reportArgumentType]
    given = [*(["class"] if spec.classes else []), *spec.context_names]
    like = f" Each sample is drawn given the {' and the '.join(given)} of a test row." if given else ""
    section = _pairs_section(task, samples, data)
    section = replace(section, text=section.text + like)
    if not with_density:
        return [section]
    drawn = spec.batch(spec.standardizer.apply(samples), np.asarray(few.targets)).take(_FEW)
    paths = {
        name: follow_flow(
            model,
            jnp.asarray(rows.inputs),
            solver=task.solver,
            trace=task.evaluation_trace,
            context=task.context_of(rows),
            key=jax.random.key(0),
        )
        for name, rows in (("test rows", few.take(_FEW)), ("samples", drawn))
    }
    return [section, density_section(paths, unit="negative log-likelihood, nats", each="rows")]


def _pairs_section(task: DensityTask, samples: np.ndarray, data: np.ndarray) -> Section:
    encoder = task.spec.encoder
    names = list(encoder.feature_names if encoder else [f"column {i + 1}" for i in range(samples.shape[1])])[:_COLUMNS]
    if len(names) == 1:
        figure = go.Figure(
            [
                go.Histogram(x=part[:, 0], name=name, marker_color=color, histnorm="probability density", opacity=0.6)
                for part, name, color in ((data, "test rows", EXACT), (samples, "samples", C_NODE))
            ]
        )
        figure.update_layout(barmode="overlay")
        figure.update_xaxes(title_text=names[0])
        figure.update_yaxes(title_text="density")
        return Section("Samples", "Samples of the flow and rows of the test split.", figure)
    if len(names) == 2:
        figure = make_subplots(1, 2, horizontal_spacing=0.08)
        for column, (part, name, color) in enumerate(
            ((data, "test rows", EXACT), (samples, "samples", C_NODE)), start=1
        ):
            marker = {"color": color, "size": 3, "opacity": 0.6}
            figure.add_scatter(x=part[:, 0], y=part[:, 1], mode="markers", marker=marker, name=name, row=1, col=column)
            figure.update_xaxes(title_text=names[0], row=1, col=column)
        figure.update_yaxes(title_text=names[1], row=1, col=1)
        figure.update_xaxes(matches="x")
        figure.update_yaxes(matches="y")
        return Section("Samples", "Rows of the test split, and samples of the flow.", figure)
    figure = go.Figure(
        [
            go.Splom(
                dimensions=[{"label": label, "values": part[:, j]} for j, label in enumerate(names)],
                name=name,
                marker={"color": color, "size": 3 if len(part) > _FEW else 6, "opacity": 0.6},
                diagonal_visible=False,
                showupperhalf=False,
            )
            for part, name, color in ((data, "test rows", EXACT), (samples, "samples", C_NODE))
        ]
    )
    axes = [f"{letter}axis{number or ''}" for letter in "xy" for number in (0, *range(2, len(names) + 1))]
    figure.update_layout({name: {"automargin": True} for name in axes}, height=160 + 150 * len(names))
    return Section("Samples", "Pairs of columns: samples of the flow over rows of the test split.", figure)
