"""One picture per proposition."""

from pathlib import Path

import numpy as np

from charax.paper.propositions import Propositions
from charax.paper.propositions._characteristics import Characteristics
from charax.paper.propositions._homeomorphism import Homeomorphisms
from charax.paper.propositions._intersecting import Intersecting
from charax.paper.propositions._log_density import LogDensity
from charax.plotting._style import C_NODE, EXACT, NODE, picture


def draw_propositions(result: Propositions, folder: Path) -> list[Path]:
    """Draw all four into a folder; returns the files."""
    return [
        draw_intersecting(result.intersecting, folder / "intersecting.png"),
        draw_homeomorphisms(result.homeomorphism, folder / "homeomorphism.png"),
        draw_characteristics(result.characteristics, folder / "characteristics.png"),
        draw_log_density(result.log_density, folder / "log_density.png"),
    ]


def draw_intersecting(result: Intersecting, path: Path) -> Path:
    """Trained trajectories that should cross: the plain model's cannot."""
    panels = [
        (f"Neural ODE, {result.node_parameters} parameters", result.node, NODE, result.node_error),
        (f"C-NODE, {result.c_node_parameters} parameters", result.c_node, C_NODE, result.c_node_error),
    ]
    with picture(path, width=7.2, height=3.0) as figure:
        axes = figure.subplots(1, 2, sharey=True)
        for axis, (title, course, colour, error) in zip(axes, panels, strict=True):
            axis.plot(result.s, result.construction, color=EXACT, linestyle="--", linewidth=1.2)
            axis.plot(result.s, course, color=colour)
            axis.plot([0, 0], [0, 1], "o", color=EXACT, markersize=5)
            axis.plot([1, 1], [0, 1], "o", color=EXACT, markersize=5, markerfacecolor="white")
            axis.set_title(f"{title}\nlargest error {error:.2g}")
            axis.set_xlabel("s")
        axes[0].set_ylabel("u(s)")
        axes[0].plot([], [], color=EXACT, linestyle="--", linewidth=1.2, label="wanted")
        axes[0].legend(loc="upper center")
    return path


def draw_homeomorphisms(result: Homeomorphisms, path: Path) -> Path:
    """Straight lines in one dimension, and a plane that is twisted."""
    with picture(path, width=9.6, height=3.1) as figure:
        for axis, (name, (s, u)) in zip(figure.subplots(1, len(result.courses)), result.courses.items(), strict=True):
            if u.shape[-1] == 1:
                axis.plot(s, u[..., 0], color=C_NODE, linewidth=0.9)
                axis.set_xlabel("s")
                axis.set_ylabel("u(s)")
            else:
                for course, colour, when in (
                    (u[0], EXACT, "s = 0"),
                    (u[20], "#8fb3dc", "s = ½"),
                    (u[-1], C_NODE, "s = 1"),
                ):
                    spokes = np.moveaxis(np.reshape(course, (8, -1, 2)), 0, 1)
                    lines = axis.plot(spokes[..., 0], spokes[..., 1], ".-", color=colour, linewidth=1, markersize=3)
                    lines[0].set_label(when)
                axis.set_aspect("equal")
                axis.legend(loc="upper left", bbox_to_anchor=(1, 1), fontsize="small")
            axis.set_title(name)
        figure.suptitle(f"largest error {result.forward_error:.1e} there, {result.inverse_error:.1e} back", fontsize=10)
    return path


def draw_characteristics(result: Characteristics, path: Path) -> Path:
    """The curves in the (x, t) plane, coloured by both components of the value."""
    with picture(path, width=7.2, height=3.4) as figure:
        axes = figure.subplots(1, 2, sharey=True)
        for component, axis in enumerate(axes):
            axis.plot(result.x, result.t, color=EXACT, linewidth=0.5)
            dots = axis.scatter(
                np.ravel(result.x), np.ravel(result.t), c=np.ravel(result.u[..., component]), s=6, cmap="coolwarm"
            )
            figure.colorbar(dots, ax=axis, label=f"$u_{component + 1}$")
            axis.set_xlabel("x")
        axes[0].set_ylabel("t")
        figure.suptitle(
            f"$u_t + x\\,u_x = Bu$ along its characteristics, largest error {result.error:.1e}", fontsize=10
        )
    return path


def draw_log_density(result: LogDensity, path: Path) -> Path:
    """The integrated trace against the log-determinant: equal for a flow, not when u0 is read."""
    panels = [
        ("field of (s, u)", result.exact, result.integrated, C_NODE, result.error),
        (
            "velocity reads u0: refused",
            result.exact_when_conditioned,
            result.integrated_when_conditioned,
            NODE,
            result.error_when_conditioned,
        ),
    ]
    with picture(path, width=7.2, height=3.4) as figure:
        for axis, (title, exact, integrated, colour, error) in zip(figure.subplots(1, 2), panels, strict=True):
            both = np.concatenate([exact, integrated])
            ends = [float(both.min()) - 0.05, float(both.max()) + 0.05]
            axis.plot(ends, ends, color=EXACT, linewidth=1)
            axis.plot(exact, integrated, "o", color=colour, markersize=4)
            axis.set_aspect("equal")
            axis.set_title(f"{title}\nlargest error {error:.1e}")
            axis.set_xlabel("log|det ∂u(1)/∂u(0)|")
            axis.set_ylabel("integrated trace")
    return path
