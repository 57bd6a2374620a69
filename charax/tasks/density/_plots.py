"""Figures of a flow: the density over the plane, trajectories, and samples."""

import math
from collections.abc import Sequence
from pathlib import Path

import equinox as eqx
import jax.numpy as jnp
import matplotlib as mpl
import numpy as np
from jaxtyping import Float
from matplotlib.collections import LineCollection

from charax.models.flows import ContinuousFlow
from charax.plotting import C_NODE, EXACT, save_figure
from charax.solve import SolveError, Solver
from charax.tasks.density._following import follow_points, trajectories_of
from charax.tasks.density._task import DensityTask
from charax.train import Splits

_MAP = "Blues"


def plot_flow(task: DensityTask, model: eqx.Module, splits: Splits, folder: Path) -> list[Path]:
    """Everything there is to see of a trained flow."""
    spec = task.spec
    n = 64 if spec.levels is not None else 2_000
    if spec.context:
        return []  # one figure cannot show a density for every context
    if spec.shape != (2,) or spec.classes:
        try:
            samples = task.sample(model, n).values
        except SolveError:
            return []  # `charax sample` says what is wrong; the run itself is as good as ever
        return [plot_samples(samples, spec.standardizer.max_value, folder / "samples.png")]
    assert isinstance(model, ContinuousFlow)
    data = splits.test.inputs[:n]
    reach = 1.15 * float(np.abs(data).max())
    noise = model.scale * np.random.default_rng(0).standard_normal((n, 2), np.float32)
    samples = follow_points(model, noise, task.solver, np.array([1.0, 0.0]), with_density=True).u[-1]
    if not np.isfinite(samples).all():
        return []
    grid = density_on_grid(model, task.solver, reach=reach)
    paths = [
        plot_density(*grid, samples, data, folder / "density.png"),
        plot_grid(model, task.solver, folder / "flow.png", reach=reach),
    ]
    if model.field.characteristic_dim:
        paths.append(plot_characteristics(model, task.solver, data[:100], folder / "characteristics.png"))
    return paths


def density_on_grid(
    flow: ContinuousFlow, solver: Solver, *, reach: float, points: int = 101
) -> tuple[Float[np.ndarray, "points"], Float[np.ndarray, "points points"]]:
    """One axis of a square grid around 0, and the density on the grid."""
    axis = np.linspace(-reach, reach, points, dtype=np.float32)
    across, up = np.meshgrid(axis, axis)
    u = np.stack([across.ravel(), up.ravel()], axis=1)
    found = follow_points(flow, u, solver, np.array([0.0, 1.0]), with_density=True)
    assert found.log_det is not None
    density = np.exp(np.asarray(flow.base_log_prob(jnp.asarray(found.u[-1]))) + found.log_det[-1])
    return axis, density.reshape(points, points)


def plot_density(
    axis: Float[np.ndarray, "points"],
    density: Float[np.ndarray, "points points"],
    samples: Float[np.ndarray, "n 2"],
    data: Float[np.ndarray, "m 2"],
    path: Path,
) -> Path:
    """Plot a density over the plane, samples from it, and the data.

    Args:
        axis: Both axes of the grid.
        density: The density on the grid.
        samples: Samples from the flow.
        data: Test data.
        path: The file.

    Returns:
        The file.
    """
    with save_figure(path, width=9.9, height=3.3) as figure:
        figure.set_layout_engine("compressed")  # squares of equal scale leave space for titles
        axes = figure.subplots(1, 3, sharex=True, sharey=True)
        mesh = axes[0].pcolormesh(axis, axis, density, cmap=_MAP, vmin=0, shading="gouraud", rasterized=True)
        figure.colorbar(mesh, ax=axes[0], shrink=0.85, label="density")
        axes[0].set_title("learned density")
        for plot, points, colour, title in (
            (axes[1], samples, C_NODE, f"{len(samples):,} samples from the flow"),
            (axes[2], data, EXACT, f"{len(data):,} test points"),
        ):
            plot.plot(points[:, 0], points[:, 1], ".", color=colour, markersize=2, alpha=0.6, markeredgewidth=0)
            plot.set_title(title)
        for plot in axes:
            plot.set_aspect("equal")
            plot.set_xlim(axis[0], axis[-1])
            plot.set_ylim(axis[0], axis[-1])
            plot.set_xlabel("$u_1$, standardized")
            plot.grid(False)
        axes[0].set_ylabel("$u_2$, standardized")
    return path


def plot_grid(flow: ContinuousFlow, solver: Solver, path: Path, *, reach: float, lines: int = 17) -> Path:
    """The deformation of a grid of points between the data and the base distribution."""
    fine, coarse = np.linspace(-reach, reach, 65), np.linspace(-reach, reach, lines)
    down = np.stack(np.broadcast_arrays(coarse[:, None], fine[None]), axis=-1)
    grid = np.concatenate([down, down[..., ::-1]]).astype(np.float32)
    fractions = np.linspace(0, 1, 4)
    trajectory, _ = trajectories_of(flow, grid.reshape(-1, 2), solver, fractions, with_density=True)
    with save_figure(path, width=11.0, height=3.0) as figure:
        for axis, fraction, points in zip(figure.subplots(1, 4), fractions, trajectory, strict=True):
            segments = points.reshape(*grid.shape)
            for half, colour in ((segments[:lines], C_NODE), (segments[lines:], EXACT)):
                axis.add_collection(LineCollection(list(half), colors=colour, linewidths=0.6))
            axis.autoscale()
            axis.set_aspect("equal")
            axis.grid(False)
            axis.set_xlabel("$u_1$")
            axis.set_ylabel("$u_2$")
            where = "data" if fraction == 0 else "base" if fraction == 1 else ""
            axis.set_title(f"s = {fraction * float(flow.end_time):.3g}" + (f" ({where})" if where else ""))
        figure.suptitle(
            "what the flow does to the plane: vertical (blue) and horizontal (grey) lines of a grid at the data, s = 0",
            fontsize=10,
        )
    return path


def plot_characteristics(flow: ContinuousFlow, solver: Solver, data: Float[np.ndarray, "n d"], path: Path) -> Path:
    """The learned curves x(s) of some data in the first two characteristic dimensions, and their trajectories u(s)."""
    fractions = np.linspace(0, 1, 25)
    u, x = trajectories_of(flow, data, solver, fractions, with_density=True)
    assert x is not None
    colours = _by_radius(data)
    with save_figure(path, width=7.6, height=3.6) as figure:
        axes = figure.subplots(1, 2)
        for i, colour in enumerate(colours):
            # One dimension is shown over s: over itself, all curves would be one diagonal.
            across, up = (x[:, i, 0], x[:, i, 1]) if x.shape[2] > 1 else (fractions, x[:, i, 0])
            axes[0].plot(across, up, color=colour, linewidth=0.7, alpha=0.7)
            axes[1].plot(u[:, i, 0], u[:, i, 1], color=colour, linewidth=0.7, alpha=0.7)
        axes[1].plot(u[-1, :, 0], u[-1, :, 1], "o", color=EXACT, markersize=2.5, label="base distribution")
        axes[1].legend(loc="upper right", fontsize="small")
        for axis, name, title in (
            (axes[0], "x", "learned characteristics x(s)"),
            (axes[1], "u", "trajectories u(s) of the data"),
        ):
            axis.set_xlabel(f"${name}_1$")
            axis.set_ylabel(f"${name}_2$")
            axis.set_title(title)
        if x.shape[2] == 1:
            axes[0].set_xlabel("s, as a fraction of the end time")
            axes[0].set_ylabel("$x_1$")
        figure.suptitle("coloured by the distance of the data from the origin", fontsize=10)
    return path


def _by_radius(data: Float[np.ndarray, "n d"]) -> Sequence[tuple[float, ...]]:
    radius = np.linalg.norm(data, axis=1)
    return [mpl.colormaps["viridis"](value) for value in (radius - radius.min()) / (np.ptp(radius) + 1e-12)]


def image_sheet(images: Float[np.ndarray, "n height width channels"]) -> Float[np.ndarray, "rows columns channels"]:
    """Images with values in [0, 1] side by side, with white lines between them."""
    columns = math.ceil(math.sqrt(len(images)))
    rows = math.ceil(len(images) / columns)
    _, height, width, channels = images.shape
    sheet = np.ones((rows * (height + 1) + 1, columns * (width + 1) + 1, channels))
    for i, image in enumerate(images):
        top, left = (i // columns) * (height + 1) + 1, (i % columns) * (width + 1) + 1
        sheet[top : top + height, left : left + width] = image
    return sheet


def plot_images(images: Float[np.ndarray, "n height width channels"], max_value: float, path: Path) -> Path:
    """A sheet of images."""
    sheet = image_sheet(np.clip(images / max_value, 0, 1))
    channels = sheet.shape[-1]
    with save_figure(path, width=5.0, height=5.0 * sheet.shape[0] / sheet.shape[1]) as figure:
        axis = figure.add_axes((0, 0, 1, 1))
        figure.set_layout_engine("none")
        axis.imshow(sheet.squeeze(-1) if channels == 1 else sheet, cmap="gray", vmin=0, vmax=1, interpolation="nearest")
        axis.axis("off")
    return path


def plot_samples(samples: Float[np.ndarray, "n *shape"], max_value: float | None, path: Path) -> Path:
    """Plot samples: a sheet of images, points in the plane, or the first two columns of a table.

    Args:
        samples: The samples.
        max_value: The value of a fully bright pixel.
        path: The file.

    Returns:
        The file.
    """
    if samples.ndim == 4:
        return plot_images(samples, max_value or 1.0, path)
    with save_figure(path, width=4.0, height=4.0) as figure:
        axis = figure.subplots()
        up = samples[:, 1] if samples.shape[1] > 1 else np.zeros(len(samples))
        axis.plot(samples[:, 0], up, ".", color=C_NODE, markersize=4, alpha=0.7)
        axis.set_title(f"{len(samples):,} samples" + (", first two columns" if samples.shape[1] > 2 else ""))
        axis.set_xlabel("$u_1$")
        axis.set_ylabel("$u_2$" if samples.shape[1] > 1 else "")
        axis.set_aspect("equal" if samples.shape[1] == 2 else "auto")
    return path
