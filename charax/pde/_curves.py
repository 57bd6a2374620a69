"""The characteristics themselves."""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from charax.pde._flow import Flow, prepare, value_shape
from charax.pde._problem import AbstractProblem, cast
from charax.solve import Solver
from charax.solve._checks import is_concrete


class Curves(eqx.Module):
    """Characteristics in space and time, and the values along them.

    ```python
    import jax.numpy as jnp
    from charax.pde import Advection, Curves, characteristics

    curves: Curves = characteristics(Advection(), jnp.zeros((1, 1)), jnp.array([0.0, 2.0]))
    assert curves.x.shape == (2, 1, 1) and curves.u.shape == (2, 1)
    ```
    """

    t: Float[Array, "times"]
    """The times."""
    x: Float[Array, "times starts d"]
    """The positions."""
    u: Float[Array, "times starts *n"]
    """The values."""


def characteristics(
    problem: AbstractProblem,
    starts: Float[Array, "*starts d"],
    times: Float[Array, "times"],
    *,
    solver: Solver | None = None,
) -> Curves:
    """Integrate characteristics from given foot points.

    They may cross; each has its own value.

    ```python
    import jax.numpy as jnp
    from charax.pde import Advection, characteristics

    curves = characteristics(Advection(), jnp.zeros((1, 1)), jnp.array([0.0, 2.0]))
    assert jnp.allclose(curves.x[:, 0, 0], jnp.array([0.0, 2.0]))
    ```

    Args:
        problem: The problem.
        starts: The foot points, at t = 0.
        times: Increasing times at which positions and values are returned.
        solver: How to integrate; `per_sample` is set here. By default dopri8 to 1e-10 in float64 and 1e-6 in float32.

    Returns:
        The characteristics.

    Raises:
        ValueError: If the foot points have a wrong shape, or the times are not increasing, finite and at least 0.
        SolveError: If a characteristic cannot be integrated to the last time.
    """
    if starts.ndim != 2 or starts.shape[1] != problem.dim:
        raise ValueError(f"starts must be [starts, {problem.dim}], one row per foot point, got shape {starts.shape}")
    times = times.astype(starts.dtype)
    if is_concrete(times):
        known = np.asarray(times)
        if known.size == 0 or not np.isfinite(known).all() or (known < 0).any() or (np.diff(known) < 0).any():
            raise ValueError("times must be finite, at least 0 and in increasing order; give one or more")
    problem = cast(problem, starts.dtype)
    value_shape(problem, starts.dtype)
    end = times[-1]
    fractions = jnp.where(end > 0, times / jnp.where(end > 0, end, 1), 0)
    solution = prepare(solver, starts.dtype).solve(
        Flow(problem),
        problem.initial(starts),
        x0=starts,
        context=jnp.full(starts.shape[:1], end),
        at=fractions,
    )
    assert solution.characteristic is not None
    assert solution.trajectory is not None
    return Curves(times, solution.characteristic, solution.trajectory)
