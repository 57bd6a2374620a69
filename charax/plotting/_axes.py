"""One function per question, for notebooks and scripts: each takes axes, plots into them and returns them."""

from collections.abc import Mapping, Sequence
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure

from charax.models.flows import ContinuousFlow
from charax.plotting._palette import C_NODE, EXACT, NODE
from charax.solve import Solution, Solver


def plot_trajectories(solution: Solution, axes: Axes | None = None, **style: Any) -> Axes:
    """How do the states move? Plot u(s) of a solution: over s if u is one number, else in its first two numbers.

    Args:
        solution: A solution that was asked for points (`at`).
        axes: Where to plot; a new figure if left out.
        style: Arguments of matplotlib's `plot`, such as `color`.

    Returns:
        The axes.

    Raises:
        ValueError: If the solution has no trajectory.

    ```python
    import jax.numpy as jnp
    from charax import PlainField, Solver
    from charax.plotting import plot_trajectories

    decay = PlainField(lambda u: -u, reads=("u",))
    solution = Solver().solve(decay, jnp.ones((3, 1)), at=jnp.linspace(0, 1, 5))
    assert len(plot_trajectories(solution).lines) == 3
    ```
    """
    if solution.trajectory is None:
        raise ValueError("the solution has no trajectory: solve with at=jnp.linspace(0, 1, 33)")
    return _plot_curves(solution.s, solution.trajectory, "u", axes, style)


def plot_characteristics(solution: Solution, axes: Axes | None = None, **style: Any) -> Axes:
    """Along which curves is the state integrated? Plot x(s) of a solution, as `plot_trajectories` plots u(s).

    Args:
        solution: A solution that was asked for points (`at`) and `with_characteristic`.
        axes: Where to plot; a new figure if left out.
        style: Arguments of matplotlib's `plot`, such as `color`.

    Returns:
        The axes.

    Raises:
        ValueError: If the solution has no characteristic.

    ```python
    import jax
    import jax.numpy as jnp
    from charax import Solver, neural_ode
    from charax.plotting import plot_characteristics

    model = neural_ode("c-node", 2, width=4, key=jax.random.key(0))
    at = jnp.linspace(0, 1, 5)
    solution = model(jnp.eye(2), solver=Solver("euler", steps=4), at=at, with_characteristic=True)
    assert plot_characteristics(solution).get_xlabel() == "$x_1$"
    ```
    """
    if solution.characteristic is None:
        raise ValueError(
            "the solution has no characteristic: solve with at=jnp.linspace(0, 1, 33) and with_characteristic=True"
        )
    return _plot_curves(solution.s, solution.characteristic, "x", axes, style)


def plot_density(
    flow: ContinuousFlow,
    axes: Axes | None = None,
    *,
    reach: float = 3.0,
    points: int = 101,
    solver: Solver | None = None,
    data: Float[np.ndarray, "n 2"] | None = None,
) -> Axes:
    """Where does a flow put its probability? Plot its density over the plane, and perhaps data over it.

    Args:
        flow: A flow of points in the plane.
        axes: Where to plot; a new figure if left out.
        reach: Largest coordinate.
        points: Points of the grid per side.
        solver: How to integrate; `Solver()` by default.
        data: Points to show.

    Returns:
        The axes.

    Raises:
        ValueError: If the flow is not one of the plane.

    ```python
    import jax
    from charax import Solver, VectorFlowDesign
    from charax.plotting import plot_density

    flow = VectorFlowDesign("c-node", width=4).build((2,), key=jax.random.key(0))
    axes = plot_density(flow, points=9, solver=Solver("euler", steps=2))
    assert axes.get_xlim() == (-3.0, 3.0)
    ```
    """
    if flow.shape != (2,):
        raise ValueError(f"a density can be plotted over the plane, and this flow has samples of shape {flow.shape}")
    axes = _new(axes)
    axis = np.linspace(-reach, reach, points, dtype=np.float32)
    across, up = np.meshgrid(axis, axis)
    u = jnp.asarray(np.stack([across.ravel(), up.ravel()], axis=1))
    density = np.exp(np.asarray(_log_prob(flow, u, solver or Solver()))).reshape(points, points)
    axes.pcolormesh(axis, axis, density, cmap="Blues", vmin=0, shading="gouraud", rasterized=True)
    if data is not None:
        axes.plot(data[:, 0], data[:, 1], ".", color=EXACT, markersize=2, alpha=0.6, markeredgewidth=0)
    axes.set(xlim=(-reach, reach), ylim=(-reach, reach), aspect="equal", xlabel="$u_1$", ylabel="$u_2$")
    axes.set_title("learned density")
    axes.grid(visible=False)
    return axes


def plot_flow_at(
    flow: ContinuousFlow,
    s: float,
    axes: Axes | None = None,
    *,
    reach: float = 3.0,
    lines: int = 17,
    solver: Solver | None = None,
) -> Axes:
    """What does a flow do to the plane until s? Plot where it moves a grid of lines from the data's end, s = 0.

    Args:
        flow: A flow of points in the plane.
        s: Where to stop, from 0 to the flow's `end_time`.
        axes: Where to plot; a new figure if left out.
        reach: Largest coordinate of the grid.
        lines: Lines of the grid in each direction.
        solver: How to integrate; `Solver()` by default.

    Returns:
        The axes.

    ```python
    import jax
    from charax import Solver, VectorFlowDesign
    from charax.plotting import plot_flow_at

    flow = VectorFlowDesign("c-node", width=4).build((2,), key=jax.random.key(0))
    assert plot_flow_at(flow, 0.5, solver=Solver("euler", steps=2)).get_title() == "s = 0.5"
    ```
    """
    axes = _new(axes)
    fine, coarse = np.linspace(-reach, reach, 97), np.linspace(-reach, reach, lines)
    down = np.stack(np.broadcast_arrays(coarse[:, None], fine[None]), axis=-1)
    grid = np.concatenate([down, down[..., ::-1]]).astype(np.float32)
    moved = np.asarray(
        _flow_until(flow, jnp.asarray(grid.reshape(-1, 2)), jnp.asarray(s, jnp.float32), solver or Solver())
    )
    moved = moved.reshape(grid.shape)
    for half, color in ((moved[:lines], C_NODE), (moved[lines:], EXACT)):
        axes.add_collection(LineCollection(list(half), colors=color, linewidths=0.6))
    axes.autoscale()
    axes.set(aspect="equal", xlabel="$u_1$", ylabel="$u_2$", title=f"s = {s:.3g}")
    axes.grid(visible=False)
    return axes


def plot_equation(
    u: Float[np.ndarray, "points"],
    learned: Mapping[str, Float[np.ndarray, "points"]],
    exact: Mapping[str, Float[np.ndarray, "points"]] | None = None,
    axes: Axes | None = None,
    *,
    name: str = "velocity",
    over: str = "u",
) -> Axes:
    """Which equation was learned? Plot one of its coefficients over u, or over x or t, and the exact one.

    Args:
        u: The values of u, or of `over`, as `PDETask.tabulate_equation` returns them.
        learned: The learned coefficients by name.
        exact: The exact ones, if they are known.
        axes: Where to plot; a new figure if left out.
        name: velocity or source.
        over: What the coefficient is a function of.

    Returns:
        The axes.

    ```python
    import numpy as np
    from charax.plotting import plot_equation

    u = np.linspace(0, 1, 5)
    axes = plot_equation(u, {"velocity": 1.1 * u}, {"velocity": u})
    assert [line.get_label() for line in axes.lines] == ["exact", "learned"]
    ```
    """
    axes = _new(axes)
    if exact is not None:
        axes.plot(u, exact[name], color=EXACT, linewidth=4, alpha=0.5, label="exact")
    axes.plot(u, learned[name], color=C_NODE, label="learned")
    axes.set(xlabel=over, title=f"{name} {'a' if name == 'velocity' else 'c'}({over})")
    axes.margins(y=0.15)
    axes.legend()
    return axes


def plot_forecast(
    t: Float[np.ndarray, "points"],
    mean: Float[np.ndarray, "points"],
    lower: Float[np.ndarray, "points"],
    upper: Float[np.ndarray, "points"],
    axes: Axes | None = None,
    *,
    observed: Sequence[tuple[str, Float[np.ndarray, "_"], Float[np.ndarray, "_"]]] = (),
) -> Axes:
    """What comes next, and how sure is it? Plot a forecast with its interval, and observations.

    Args:
        t: The times of the forecast.
        mean: The forecast.
        lower: Lower end of the prediction interval.
        upper: Upper end of the prediction interval.
        axes: Where to plot; a new figure if left out.
        observed: Names, times and values of observations, such as those of the three splits.

    Returns:
        The axes.

    ```python
    import numpy as np
    from charax.plotting import plot_forecast

    t = np.linspace(0, 1, 5)
    axes = plot_forecast(t, t, t - 1, t + 1, observed=[("training", t[:2], t[:2]), ("test", t[2:], t[2:])])
    assert [line.get_label() for line in axes.lines] == ["forecast", "training", "test"]
    ```
    """
    axes = _new(axes)
    axes.fill_between(t, lower, upper, color=C_NODE, alpha=0.15, linewidth=0, label="95% prediction interval")
    axes.plot(t, mean, color=C_NODE, label="forecast")
    colors = {"test": NODE, "validation": EXACT}
    for name, times, values in observed:
        axes.plot(times, values, ".", color=colors.get(name, "black"), markersize=3, alpha=0.6, label=name)
    return axes


def _plot_curves(s: Array | None, curves: Array, name: str, axes: Axes | None, style: dict[str, Any]) -> Axes:
    axes = _new(axes)
    flat = np.asarray(curves).reshape(*curves.shape[:2], -1)
    style = {"color": C_NODE, "linewidth": 1.2, "alpha": 0.8, **style}
    if flat.shape[2] == 1:
        axes.plot(np.asarray(s), flat[..., 0], **style)
        axes.set(xlabel="s", ylabel=f"{name}(s)")
        return axes
    for i in range(flat.shape[1]):
        axes.plot(flat[:, i, 0], flat[:, i, 1], **style)
    axes.plot(flat[-1, :, 0], flat[-1, :, 1], "o", color=style["color"], markersize=3)
    axes.set(xlabel=f"${name}_1$", ylabel=f"${name}_2$")
    return axes


def _new(axes: Axes | None) -> Axes:
    return Figure(layout="constrained").subplots() if axes is None else axes


@eqx.filter_jit
def _log_prob(flow: ContinuousFlow, u: Array, solver: Solver) -> Array:
    return flow.log_prob(u, solver=solver)


@eqx.filter_jit
def _flow_until(flow: ContinuousFlow, u: Array, s: Array, solver: Solver) -> Array:
    return solver.solve(flow.field, u, s1=s).u
