"""The log-ODE method: long paths in few steps."""

from typing import Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from charax.fields._observed_path import ObservedPath, count_knots, differentiate, end_knot, polynomial


def log_signature(path: ObservedPath, windows: int, *, depth: Literal[1, 2] = 2) -> ObservedPath:
    """Summarize a path by its log-signature over equal windows of s: the log-ODE method.

    Over a window the velocity is constant, so that a path of thousands of observations takes as many fixed steps as
    there are windows. At depth 1 it is the path's increment; depth 2 adds the areas ½∫(Xⁱ dXʲ − Xʲ dXⁱ) for i < j,
    which belong to the Lie brackets of a `LieBracketJacobian`. As the windows shrink, the solution becomes that of the
    path itself, and sooner with the areas.

    The velocity jumps between windows. Make as many fixed steps as there are windows, or a multiple, with a method that
    has no stage at the end of its step: "midpoint" or "bosh3", and not "heun", "tsit5" or "dopri5".

    ```python
    import jax
    import jax.numpy as jnp
    from charax.fields import CharacteristicField, JointJacobian, LieBracketJacobian
    from charax.fields import ObservedPath, ObservedVelocity, log_signature
    from charax.nn import mlp
    from charax.solve import Solver

    times = jnp.linspace(0.0, 1.0, 1000)[None]
    path = ObservedPath.interpolate(times, jnp.sin(40 * times)[..., None], interpolation="linear")
    summary = log_signature(path, windows=20)
    assert path.channels == 2 and summary.channels == 2 + 1

    body_key, key = jax.random.split(jax.random.key(0))
    body = mlp([4, 8], final="tanh", key=body_key)
    jacobian = LieBracketJacobian(JointJacobian(body, hidden=8, channels=4, characteristic_dim=2, key=key))
    field = CharacteristicField(ObservedVelocity(summary.channels), jacobian)
    solution = Solver("midpoint", steps=20).solve(field, jnp.ones((1, 4)), context=summary.context())
    ```

    Args:
        path: The path, over s from 0 to 1.
        windows: The number of windows.
        depth: 1 for the increments, 2 for the areas as well.

    Returns:
        A path of lines whose channels are those of the path, then the areas, summed up over the windows.

    Raises:
        ValueError: If there is no window or the depth is another one.
    """
    if windows < 1:
        raise ValueError(f"windows must be at least 1, got {windows}")
    if depth not in (1, 2):
        raise ValueError(f"depth must be 1 (increments) or 2 (and areas), got {depth}")
    return _log_signature(path, windows, depth)


@eqx.filter_jit
def _log_signature(path: ObservedPath, windows: int, depth: int) -> ObservedPath:
    edges = jnp.arange(windows + 1, dtype=path.knots.dtype) / windows
    corners = jax.vmap(_values, in_axes=(0, 0, None))(path.knots, path.pieces, edges)
    steps = jnp.diff(corners, axis=1)
    if depth == 2:
        areas = jax.vmap(_areas, in_axes=(0, 0, 0, None))(path.knots, path.pieces, corners, edges)
        steps = jnp.concatenate([steps, areas], axis=2)
    start = jnp.zeros_like(steps[:, :1]).at[:, 0, : path.channels].set(corners[:, 0])
    values = jnp.cumsum(jnp.concatenate([start, steps], axis=1), axis=1)
    slopes = jnp.concatenate([windows * steps, jnp.zeros_like(start)], axis=1)
    knots = jnp.broadcast_to(end_knot(edges), values.shape[:2])
    return ObservedPath(knots, jnp.stack([values, slopes], axis=2))


def _values(
    knots: Float[Array, "rows"], pieces: Float[Array, "rows powers channels"], s: Float[Array, "points"]
) -> Float[Array, "points channels"]:
    """X of one sample at many points."""
    row = jnp.maximum(count_knots(knots, s) - 1, 0)
    return polynomial(jnp.maximum(s - knots[row], 0), pieces[row])


def _areas(
    knots: Float[Array, "rows"],
    pieces: Float[Array, "rows powers channels"],
    corners: Float[Array, "ends channels"],
    edges: Float[Array, "ends"],
) -> Float[Array, "windows areas"]:
    """½∫(Yⁱ dYʲ − Yʲ dYⁱ) over the windows of one sample, where Y is X minus its value at the start of the window.

    Between two knots or edges the integrand is a polynomial, of which Gauss–Legendre quadrature is exact.
    """
    windows, degree = edges.shape[0] - 1, pieces.shape[1] - 1
    nodes, weights = (jnp.asarray(array, knots.dtype) for array in np.polynomial.legendre.leggauss(degree))
    ends = jnp.sort(jnp.concatenate([jnp.clip(knots, 0, 1), edges]))
    middle, width = (ends[1:] + ends[:-1]) / 2, jnp.diff(ends)
    window = jnp.clip(middle * windows, 0, windows - 1).astype(int)
    row = count_knots(knots, middle) - 1
    piece = pieces[jnp.maximum(row, 0)][:, None]
    local = (middle - knots[jnp.maximum(row, 0)])[:, None] + width[:, None] * nodes / 2
    moves = (row >= 0)[:, None, None]  # before its first knot the path is constant
    y = polynomial(jnp.where(moves[:, 0], local, 0), piece) - corners[window][:, None]
    dy = jnp.where(moves, polynomial(local, differentiate(piece)), 0)
    i, j = np.triu_indices(pieces.shape[2], 1)
    swept = (y[..., i] * dy[..., j] - y[..., j] * dy[..., i]) / 2
    area = jnp.einsum("pqa,q,p->pa", swept, weights / 2, width)
    return jax.ops.segment_sum(area, window, num_segments=windows)
