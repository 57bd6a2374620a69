"""The report of a flow: density and samples along s, characteristics, samples of tables and images."""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import plotly.graph_objects as go
from jaxtyping import Array, Float
from plotly.subplots import make_subplots

from charax.fields import Scalar
from charax.models.flows import ContinuousFlow, ExactTrace
from charax.models.flows._augmented_field import AugmentedField
from charax.plotting import C_NODE, EXACT, Section, moving_curves
from charax.solve import SolveError, Solver
from charax.tasks.density._plots import image_sheet, trajectories_of
from charax.tasks.density._task import DensityTask
from charax.train import Splits

_SIDE, _FRAMES, _POINTS, _CURVES = 81, 13, 1500, 90
_COLUMNS = 6
_RADII = ("innermost third of the data", "middle third", "outermost third")


def report_flow(task: DensityTask, model: eqx.Module, splits: Splits) -> list[Section]:
    """Everything that moves about a flow."""
    spec, data = task.spec, splits.test.inputs
    if spec.context:
        names = ", ".join(spec.context_names)
        return [Section("Samples", f"The density is conditioned on {names}: charax sample RUN --context FILE")]
    try:
        samples = task.sample(model, 64 if spec.levels is not None else _POINTS).values
    except SolveError as error:
        return [Section("Samples", f"There are no samples: {error}")]
    if spec.levels is not None:
        max_value = spec.standardizer.max_value or 1.0
        return [_images_section(samples / max_value, spec.standardizer.inverse(data[:64]) / max_value)]
    if spec.shape != (2,) or spec.classes:
        return [_pairs_section(task, samples, spec.standardizer.inverse(data[:_POINTS]))]
    assert isinstance(model, ContinuousFlow)
    sections = [_along_section(task, model, data[:_POINTS])]
    if model.field.characteristic_dim:
        sections.append(_characteristics_section(task, model, data[:_CURVES]))
    return sections


@eqx.filter_jit
def _log_prob_at(flow: ContinuousFlow, u: Array, s: Scalar, solver: Solver) -> Array:
    field = AugmentedField(flow.field, ExactTrace(), None)
    solution = solver.solve(field, u, s0=s, s1=flow.end_time, with_characteristic=True)
    assert solution.x is not None
    return flow.base_log_prob(solution.u) + solution.x[:, 0]


def density_at(
    flow: ContinuousFlow, s: float, solver: Solver, *, reach: float, points: int
) -> tuple[Float[np.ndarray, "points"], Float[np.ndarray, "points points"]]:
    """One axis of a square grid around 0, and the density of u(s) on the grid: the learned one at s = 0."""
    axis = np.linspace(-reach, reach, points, dtype=np.float32)
    across, up = np.meshgrid(axis, axis)
    u = jnp.asarray(np.stack([across.ravel(), up.ravel()], axis=1))
    if s >= float(flow.end_time):
        log_prob = flow.base_log_prob(u)
    else:
        log_prob = _log_prob_at(flow, u, jnp.asarray(s, jnp.float32), solver)
    return axis, np.exp(np.asarray(log_prob)).reshape(points, points)


def _along_section(task: DensityTask, flow: ContinuousFlow, data: Float[np.ndarray, "n 2"]) -> Section:
    reach = 1.15 * max(float(np.abs(data).max()), 2 * flow.scale)
    fractions = np.linspace(0, 1, _FRAMES)
    moved, _ = trajectories_of(flow, data, task.solver, fractions)
    frames = []
    for fraction, points in zip(fractions, moved, strict=True):
        s = float(fraction * flow.end_time)
        axis, density = density_at(flow, s, task.solver, reach=reach, points=_SIDE)
        top = float(np.nanquantile(density, 0.999)) or 1.0
        heat = go.Heatmap(z=density.astype(np.float32), x=axis, y=axis, zmin=0, zmax=top)
        frames.append(go.Frame(name=f"{s:.3g}", data=[heat, go.Scatter(x=points[:, 0], y=points[:, 1])]))
    heat, points = frames[0].data
    figure = go.Figure(
        [
            go.Heatmap(heat, colorscale="Blues", colorbar={"title": {"text": "density"}}, hoverinfo="skip"),
            go.Scatter(
                points, mode="markers", marker={"color": EXACT, "size": 2.5, "opacity": 0.6}, name="test points"
            ),
        ],
        frames=frames,
    )
    figure.update_xaxes(range=[-reach, reach], constrain="domain", title_text="u<sub>1</sub>")
    figure.update_yaxes(range=[-reach, reach], scaleanchor="x", title_text="u<sub>2</sub>")
    text = (
        "The learned density at s = 0 and what the flow makes of it, with the test points (standardized) that it "
        f"carries along; at s = {float(flow.end_time):.3g} both should be the normal distribution. Played backwards "
        "it is how samples are drawn."
    )
    return Section("Density and points along s", text, figure)


def _characteristics_section(task: DensityTask, flow: ContinuousFlow, data: Float[np.ndarray, "n 2"]) -> Section:
    fractions = np.linspace(0, 1, 33)
    _, x = trajectories_of(flow, data, task.solver, fractions)
    assert x is not None
    radius = np.linalg.norm(data, axis=1)
    thirds = np.searchsorted(np.quantile(radius, [1 / 3, 2 / 3]), radius).astype(int)
    names = [f"x<sub>{i + 1}</sub>" for i in range(x.shape[2])]
    figure = moving_curves(x, fractions * float(flow.end_time), thirds, _RADII, names)
    text = (
        "One curve per test point, coloured by its distance from the origin. Drag to turn, move the slider to follow."
    )
    return Section("Learned characteristics x(s)", text, figure)


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
        return Section("Samples", "Samples of the flow and rows of the test split.", figure)
    figure = go.Figure(
        [
            go.Splom(
                dimensions=[{"label": label, "values": part[:, j]} for j, label in enumerate(names)],
                name=name,
                marker={"color": color, "size": 3, "opacity": 0.5},
                diagonal_visible=False,
                showupperhalf=False,
            )
            for part, name, color in ((data, "test rows", EXACT), (samples, "samples", C_NODE))
        ]
    )
    figure.update_layout(height=160 + 150 * len(names))
    return Section("Samples", "Pairs of columns: samples of the flow over rows of the test split.", figure)


def _images_section(samples: np.ndarray, data: np.ndarray) -> Section:
    figure = make_subplots(1, 2, subplot_titles=["samples of the flow", "test images"])
    for column, images in enumerate((samples, data), start=1):
        sheet = (255 * image_sheet(np.clip(images, 0, 1))).astype(np.uint8)
        figure.add_image(z=np.broadcast_to(sheet, (*sheet.shape[:2], 3)), row=1, col=column, hoverinfo="skip")
    figure.update_xaxes(visible=False)
    figure.update_yaxes(visible=False)
    return Section("Samples", "Images drawn from the flow, and images that it has not seen.", figure)
