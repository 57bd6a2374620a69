"""The report of a flow of images: samples next to test images, and both along s."""

import base64
import io
from dataclasses import replace

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import plotly.graph_objects as go
from jaxtyping import Float
from plotly.subplots import make_subplots

from charax.models.flows import FlowPath, MultiScaleFlow, SingleScaleFlow, follow_flow
from charax.plotting import Followed, Section, curve_sections
from charax.solve import SolveError
from charax.tasks.density._path_report import COLORS, density_section
from charax.tasks.density._plots import image_sheet
from charax.tasks.density._spec import DensityBatch
from charax.tasks.density._task import DensityTask

_SHOWN, _MOVING, _FRAMES = 64, 16, 17


def report_images(task: DensityTask, model: eqx.Module, test: DensityBatch) -> list[Section]:
    """Samples next to test images, and both along s."""
    assert isinstance(model, SingleScaleFlow | MultiScaleFlow)
    few = test.take(_SHOWN)
    try:
        samples = task.sample_given(model, few)
    except SolveError as error:
        return [Section("Samples", f"There are no samples: {error}")]
    max_value = task.spec.standardizer.max_value or 1.0
    figure = make_subplots(1, 2, subplot_titles=["samples of the flow", "test images"])
    for column, images in enumerate((samples, task.spec.standardizer.inverse(np.asarray(few.inputs))), start=1):
        figure.add_trace(_picture(images / max_value), row=1, col=column)
    _hide_axes(figure)
    alike = " Each sample has the class of the test image in its place." if task.spec.classes else ""
    text = f"Images drawn from the flow, and images that it has not seen.{alike}"
    return [Section("Samples", text, figure), *_along_sections(task, model, few, samples)]


def _along_sections(
    task: DensityTask, model: SingleScaleFlow | MultiScaleFlow, few: DensityBatch, samples: np.ndarray
) -> list[Section]:
    """Test images and samples on their way between images and noise."""
    scales = model.scales if isinstance(model, MultiScaleFlow) else ()
    solves = sum(len(scale.before) + len(scale.after) for scale in scales) or 1
    points = max(3, round((_FRAMES - 1) / solves) + 1)
    drawn = few._replace(inputs=task.spec.standardizer.apply(samples))
    of_data, of_samples = (
        follow_flow(
            model,
            jnp.asarray(images.inputs),
            solver=task.solver,
            trace=task.evaluation_trace,
            context=task.context_of(images),
            points=points,
            key=jax.random.key(0),
        )
        for images in (few, drawn)
    )
    both = Followed(
        of_data.s,
        np.concatenate([of_data.u, of_samples.u], axis=1),
        None if of_data.x is None else np.concatenate([of_data.x, of_samples.x], axis=1),  # pyright: ignore[reportCallIssue, reportArgumentType]
    )
    labels = np.repeat([0, 1], len(few.inputs))
    names = ("test images", "samples")
    own = "Each of the flows has characteristics of its own, which start where those of the one before it ended. "
    curves = curve_sections(
        both,
        labels,
        names,
        each="image",
        colors=COLORS,
        ending=f"At s = {of_data.s[-1]:.3g} they should be normally distributed.",
    )
    if len(of_data.starts) > 1:
        curves = [replace(each, text=own + each.text) if "x(s)" in each.title else each for each in curves]
    return [
        _frames_section(model, of_samples),
        density_section(dict(zip(names, (of_data, of_samples), strict=True)), unit="bits per dimension", each="images"),
        *curves,
    ]


def _frames_section(model: SingleScaleFlow | MultiScaleFlow, path: FlowPath) -> Section:
    """Some samples, from noise to images."""
    shown = [(at, np.asarray(model.to_pixels(jnp.asarray(u[:_MOVING])))) for at, u in zip(path.s, path.u, strict=True)]
    frames = [go.Frame(name=f"{at:.3g}", data=[_picture(images)]) for at, images in reversed(shown)]
    figure = go.Figure(frames[0].data, frames=frames)
    _hide_axes(figure)
    scales = (
        " Coarse scales come first: the finer ones start when those above them are done."
        if len(path.starts) > 1
        else ""
    )
    text = (
        f"Noise of the base distribution, at s = {path.s[-1]:.3g}, becomes the first samples above, at s = 0.{scales} "
        "The states are shown as images: back in the range of grey levels."
    )
    return Section("Samples along s", text, figure)


def _picture(images: Float[np.ndarray, "n height width channels"]) -> go.Image:
    """A sheet of images with values in [0, 1], as a PNG: numbers would take a hundred times its size."""
    from PIL import Image

    sheet = np.rint(255 * image_sheet(np.clip(images, 0, 1))).astype(np.uint8)
    file = io.BytesIO()
    Image.fromarray(sheet[..., 0] if sheet.shape[-1] == 1 else sheet).convert("RGB").save(file, "PNG")
    return go.Image(source=f"data:image/png;base64,{base64.b64encode(file.getvalue()).decode()}", hoverinfo="skip")


def _hide_axes(figure: go.Figure) -> None:
    figure.update_xaxes(visible=False)
    figure.update_yaxes(visible=False)
