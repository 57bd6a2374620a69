"""Characteristics over the solution of a PDE."""

import jax
import jax.numpy as jnp
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from charax.pde import AbstractProblem, characteristics, shock_time, solve


def plot_problem(
    problem: AbstractProblem,
    axes: Axes | None = None,
    *,
    x: tuple[float, float],
    until: float,
    curves: int = 25,
) -> Axes:
    """How does the solution of a PDE evolve? Plot a scalar one over the x-t plane, with its characteristics.

    Where characteristics have crossed there is no single value: that region is hatched, and the time of the first
    crossing is marked. Points that no characteristic from the problem's domain reaches stay white.

    Args:
        problem: The problem.
        axes: Where to plot; a new figure if left out.
        x: The interval of x.
        until: The last time.
        curves: Number of characteristics that start inside the interval.

    Returns:
        The axes.

    Raises:
        ValueError: If the problem is not scalar and one-dimensional, or the rectangle is empty.

    ```python
    from charax.pde import PROBLEMS
    from charax.plotting import plot_problem

    axes = plot_problem(PROBLEMS["burgers-sine"](), x=(0.0, 6.28), until=1.5)
    assert axes.texts[0].get_text() == "first crossing, t = 1"
    ```
    """
    if problem.dim != 1 or problem.initial(jnp.zeros((1, 1))).ndim != 1:
        raise ValueError("the x-t plane shows a scalar problem on a line: this one has more dimensions or values")
    if not (x[0] < x[1] and until > 0):
        raise ValueError(f"there is nothing to plot between x={x[0]} and {x[1]} until t={until}")
    places, times = jnp.linspace(*x, 160), jnp.linspace(0, until, 120)
    grid_t, grid_x = (axis.reshape(-1) for axis in jnp.meshgrid(times, places, indexing="ij"))
    # Under jit, points without a single value are NaN instead of an error: they stay white.
    u = jax.jit(lambda x, t: solve(problem, x, t))(grid_x[:, None], grid_t).reshape(len(times), len(places))
    # Also from beyond the edges: characteristics that enter later belong to the figure.
    reach = 0.5 * (x[1] - x[0])
    lower, upper = problem.domain[0]
    starts = jnp.linspace(max(lower, x[0] - reach), min(upper, x[1] + reach), 2 * curves)
    lines = characteristics(problem, starts[:, None], times)
    shock = float(shock_time(problem, horizon=until))

    axes = Figure(layout="constrained").subplots() if axes is None else axes
    if np.isfinite(shock):
        late = np.isnan(np.asarray(u)) & (np.asarray(times)[:, None] >= shock)
        axes.contourf(places, times, late.astype(float), levels=[0.5, 1.5], colors=["0.6"], hatches=["///"])
        axes.axhline(shock, color="black", linestyle="--", linewidth=1)
        label = f"first crossing, t = {shock:.3g}"
        axes.annotate(label, (x[0], shock), (4, 4), textcoords="offset points", fontsize=9)
    shown = axes.pcolormesh(places, times, np.ma.masked_invalid(np.asarray(u)), cmap="viridis", shading="nearest")
    axes.plot(np.asarray(lines.x[..., 0]), np.asarray(times), color="white", linewidth=0.7, alpha=0.8)
    axes.figure.colorbar(shown, ax=axes, label="u")
    axes.set(xlim=x, ylim=(0, until), xlabel="x", ylabel="t")
    axes.grid(visible=False)
    return axes
