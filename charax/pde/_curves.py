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
    """Characteristics in space and time, and the values that they carry."""

    t: Float[Array, "times"]
    x: Float[Array, "times starts d"]
    u: Float[Array, "times starts *n"]


def characteristics(
    problem: AbstractProblem,
    starts: Float[Array, "*starts d"],
    times: Float[Array, "times"],
    *,
    solver: Solver | None = None,
) -> Curves:
    """Follow the characteristics from the foot points `starts` (at t = 0), and say where they are at `times`.

    They may cross; each keeps its own value.

    ```python
    import jax.numpy as jnp
    from charax.pde import PROBLEMS, characteristics

    curves = characteristics(PROBLEMS["advection"](), jnp.zeros((1, 1)), jnp.array([0.0, 2.0]))
    assert jnp.allclose(curves.x[:, 0, 0], jnp.array([0.0, 2.0]))
    ```
    """
    if starts.ndim != 2 or starts.shape[1] != problem.dim:
        raise ValueError(f"starts must be [starts, {problem.dim}], one row per foot point, got shape {starts.shape}")
    times = times.astype(starts.dtype)
    if is_concrete(times):
        when = np.asarray(times)
        if when.size == 0 or not np.isfinite(when).all() or (when < 0).any() or (np.diff(when) < 0).any():
            raise ValueError("times must be finite, at least 0 and in increasing order, and there must be one at least")
    problem = cast(problem, starts.dtype)
    value_shape(problem, starts.dtype)
    end = times[-1]
    fractions = jnp.where(end > 0, times / jnp.where(end > 0, end, 1), 0)
    walk = prepare(solver, starts.dtype).solve(
        Flow(problem), problem.initial(starts), x0=starts, context=jnp.full(starts.shape[:1], end), at=fractions
    )
    assert walk.characteristic is not None
    assert walk.trajectory is not None
    return Curves(times, walk.characteristic, walk.trajectory)
