"""The report of a flow of images: samples beside test images, and how noise becomes them along s."""

import base64
import io

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import plotly.graph_objects as go
from jaxtyping import Array, Float
from plotly.subplots import make_subplots

from charax.models.flows import SingleScaleFlow
from charax.plotting import Section
from charax.solve import SolveError, Solver
from charax.tasks.density._plots import image_sheet
from charax.tasks.density._spec import DensityBatch
from charax.tasks.density._task import DensityTask

_SHOWN, _MOVING, _FRAMES = 64, 16, 17


def report_images(task: DensityTask, model: eqx.Module, test: DensityBatch) -> list[Section]:
    """Samples, and for a flow of one scale how they come about."""
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
    sections = [Section("Samples", text, figure)]
    if isinstance(model, SingleScaleFlow):
        sections.append(_along_section(task, model, few.take(_MOVING)))
    return sections


def _along_section(task: DensityTask, model: SingleScaleFlow, few: DensityBatch) -> Section:
    s, images = images_along(model, task.solver, task.context_of(few), count=len(few.inputs), points=_FRAMES)
    frames = [go.Frame(name=f"{at:.3g}", data=[_picture(each)]) for at, each in zip(s, images, strict=True)]
    figure = go.Figure(frames[0].data, frames=frames)
    _hide_axes(figure)
    text = (
        f"Noise of the base distribution, at s = {s[0]:.3g}, becomes samples, at s = 0. The states are shown as "
        "images: the logits of pixels, back in the range of grey levels."
    )
    return Section("Samples along s", text, figure)


def images_along(
    model: SingleScaleFlow, solver: Solver, context: Array | None, *, count: int, points: int, seed: int = 0
) -> tuple[Float[np.ndarray, "points"], Float[np.ndarray, "points count height width channels"]]:
    """Draw samples, and keep what is on the way to them: s from the base distribution to 0, and images in [0, 1]."""
    end = float(model.flow.end_time)
    s = np.linspace(end, 0, points, dtype=np.float32)
    noise = model.flow.scale * jax.random.normal(jax.random.key(seed), (count, *model.flow.shape))
    return s, np.asarray(_images_at(model, noise, solver, jnp.asarray(s), context))


@eqx.filter_jit
def _images_at(model: SingleScaleFlow, noise: Array, solver: Solver, at: Array, context: Array | None) -> Array:
    solution = solver.solve(model.flow.field, noise, s0=at[0], s1=0.0, at=at, context=context)
    assert solution.trajectory is not None
    return jax.vmap(model.to_pixels)(solution.trajectory)


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
