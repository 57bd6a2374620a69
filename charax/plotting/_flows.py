"""Pictures of densities: over the plane, on the way, and of images."""

import math
from collections.abc import Sequence
from pathlib import Path

import equinox as eqx
import jax.numpy as jnp
import matplotlib as mpl
import numpy as np
from jaxtyping import Array, Float
from matplotlib.collections import LineCollection

from charax.models.flows import ContinuousFlow
from charax.plotting._style import C_NODE, EXACT, picture
from charax.solve import Solver

_MAP = "Blues"


@eqx.filter_jit
def _log_prob(flow: ContinuousFlow, u: Array, solver: Solver) -> Array:
    return flow.log_prob(u, solver=solver)


def density_on_grid(
    flow: ContinuousFlow, solver: Solver, *, reach: float, points: int = 201
) -> tuple[Float[np.ndarray, "points"], Float[np.ndarray, "points points"]]:
    """One axis of a square grid around 0, and the density at its points: rows go up, columns to the right."""
    axis = np.linspace(-reach, reach, points, dtype=np.float32)
    across, up = np.meshgrid(axis, axis)
    u = np.stack([across.ravel(), up.ravel()], axis=1)
    # Row by row, for a solve chooses one step for all of a batch.
    density = np.concatenate([np.exp(_log_prob(flow, jnp.asarray(row), solver)) for row in np.split(u, points)])
    return axis, density.reshape(points, points)


def draw_density(
    axis: Float[np.ndarray, "points"],
    density: Float[np.ndarray, "points points"],
    samples: Float[np.ndarray, "n 2"],
    data: Float[np.ndarray, "m 2"],
    path: Path,
) -> Path:
    """The density over the plane, beside samples from it and the data."""
    with picture(path, width=9.9, height=3.3) as figure:
        axes = figure.subplots(1, 3, sharex=True, sharey=True)
        mesh = axes[0].pcolormesh(axis, axis, density, cmap=_MAP, vmin=0, shading="gouraud", rasterized=True)
        figure.colorbar(mesh, ax=axes[0], shrink=0.85)
        axes[0].set_title("learned density")
        for plot, points, colour, title in (
            (axes[1], samples, C_NODE, f"{len(samples):,} samples from it"),
            (axes[2], data, EXACT, f"{len(data):,} points of the test data"),
        ):
            plot.plot(points[:, 0], points[:, 1], ".", color=colour, markersize=2, alpha=0.6, markeredgewidth=0)
            plot.set_title(title)
        for plot in axes:
            plot.set_aspect("equal")
            plot.set_xlim(axis[0], axis[-1])
            plot.set_ylim(axis[0], axis[-1])
            plot.grid(False)
    return path


@eqx.filter_jit
def _courses(flow: ContinuousFlow, u: Array, solver: Solver, fractions: Array) -> tuple[Array, Array | None]:
    at = fractions * flow.end_time
    solution = solver.solve(
        flow.field, u, s1=flow.end_time, at=at, with_characteristic=flow.field.characteristic_dim > 0
    )
    assert solution.trajectory is not None
    return solution.trajectory, solution.characteristic


def draw_grid_flow(flow: ContinuousFlow, solver: Solver, path: Path, *, reach: float, lines: int = 17) -> Path:
    """How the plane is deformed on the way from the data to the base distribution: a grid of points through s."""
    fine, coarse = np.linspace(-reach, reach, 97), np.linspace(-reach, reach, lines)
    down = np.stack(np.broadcast_arrays(coarse[:, None], fine[None]), axis=-1)
    grid = np.concatenate([down, down[..., ::-1]]).astype(np.float32)
    fractions = np.linspace(0, 1, 4)
    course, _ = _courses(flow, jnp.asarray(grid.reshape(-1, 2)), solver, jnp.asarray(fractions, jnp.float32))
    with picture(path, width=11.0, height=3.0) as figure:
        for axis, fraction, points in zip(figure.subplots(1, 4), fractions, np.asarray(course), strict=True):
            segments = points.reshape(*grid.shape)
            axis.add_collection(LineCollection(list(segments), colors=C_NODE, linewidths=0.6))
            axis.autoscale()
            axis.set_aspect("equal")
            axis.grid(False)
            where = "data" if fraction == 0 else "base" if fraction == 1 else ""
            axis.set_title(f"s = {fraction * float(flow.end_time):.3g}" + (f" ({where})" if where else ""))
        figure.suptitle("a grid of points on the way from the data to the base distribution", fontsize=10)
    return path


def draw_flow_characteristics(flow: ContinuousFlow, solver: Solver, data: Float[np.ndarray, "n d"], path: Path) -> Path:
    """The learned curves x(s) of some data in the first two characteristic dimensions, and their courses u(s)."""
    fractions = np.linspace(0, 1, 41)
    u, x = _courses(flow, jnp.asarray(data), solver, jnp.asarray(fractions, jnp.float32))
    assert x is not None
    u, x = np.asarray(u), np.asarray(x)
    second = 1 if x.shape[2] > 1 else 0
    colours = _by_radius(data)
    with picture(path, width=7.6, height=3.6) as figure:
        axes = figure.subplots(1, 2)
        for i, colour in enumerate(colours):
            axes[0].plot(x[:, i, 0], x[:, i, second], color=colour, linewidth=0.7, alpha=0.7)
            axes[1].plot(u[:, i, 0], u[:, i, 1], color=colour, linewidth=0.7, alpha=0.7)
        axes[1].plot(u[-1, :, 0], u[-1, :, 1], "o", color=EXACT, markersize=2.5, label="at the base")
        axes[1].legend(loc="upper right", fontsize="small")
        for axis, name, title in (
            (axes[0], "x", "learned characteristics x(s)"),
            (axes[1], "u", "data on its way, u(s)"),
        ):
            axis.set_xlabel(f"${name}_1$")
            axis.set_ylabel(f"${name}_2$")
            axis.set_title(title)
        figure.suptitle("coloured by the distance of the data from the centre", fontsize=10)
    return path


def _by_radius(data: Float[np.ndarray, "n d"]) -> Sequence[tuple[float, ...]]:
    radius = np.linalg.norm(data, axis=1)
    return [mpl.colormaps["viridis"](value) for value in (radius - radius.min()) / (np.ptp(radius) + 1e-12)]


def draw_images(images: Float[np.ndarray, "n height width channels"], white: float, path: Path) -> Path:
    """Images side by side, with nothing between them but a thin line."""
    columns = math.ceil(math.sqrt(len(images)))
    rows = math.ceil(len(images) / columns)
    _, height, width, channels = images.shape
    sheet = np.ones((rows * (height + 1) + 1, columns * (width + 1) + 1, channels))
    for i, image in enumerate(np.clip(images / white, 0, 1)):
        top, left = (i // columns) * (height + 1) + 1, (i % columns) * (width + 1) + 1
        sheet[top : top + height, left : left + width] = image
    with picture(path, width=5.0, height=5.0 * sheet.shape[0] / sheet.shape[1]) as figure:
        axis = figure.add_axes((0, 0, 1, 1))
        figure.set_layout_engine("none")
        axis.imshow(sheet.squeeze(-1) if channels == 1 else sheet, cmap="gray", vmin=0, vmax=1, interpolation="nearest")
        axis.axis("off")
    return path


def draw_samples(samples: Float[np.ndarray, "n *shape"], white: float | None, path: Path) -> Path:
    """Samples as they are: images in a sheet, points in the plane, or the first two columns of rows."""
    if samples.ndim == 4:
        return draw_images(samples, white or 1.0, path)
    with picture(path, width=4.0, height=4.0) as figure:
        axis = figure.subplots()
        up = samples[:, 1] if samples.shape[1] > 1 else np.zeros(len(samples))
        axis.plot(samples[:, 0], up, ".", color=C_NODE, markersize=4, alpha=0.7)
        axis.set_title(f"{len(samples):,} samples" + (", first two columns" if samples.shape[1] > 2 else ""))
        axis.set_aspect("equal" if samples.shape[1] == 2 else "auto")
    return path
