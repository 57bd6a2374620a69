"""Root finding with implicit gradients: the search itself is not differentiated."""

from collections.abc import Callable
from typing import Any, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
import lineax as lx
import optimistix as optx
from jax import lax
from jaxtyping import Array, Bool, Float, PyTree


def freeze(tree):
    """Stop gradients through every floating-point array of a tree."""
    arrays, rest = eqx.partition(tree, eqx.is_inexact_array)
    return eqx.combine(lax.stop_gradient(arrays), rest)


class Settled(optx.AbstractRootFinder):
    """Returns its start, which is a root already: for the implicit gradient of a root that was found before."""

    rtol: float = 0.0
    atol: float = 0.0
    norm: Callable[[PyTree], Any] = optx.max_norm

    def init(self, fn, y, args, options, f_struct, aux_struct, tags):
        return jnp.array(False)

    def step(self, fn, y, args, options, state, tags):
        return y, jnp.array(True), None

    def terminate(self, fn, y, args, options, state, tags):
        return state, optx.RESULTS.successful

    def postprocess(self, fn, y, aux, args, options, state, tags, result):
        return y, aux, {}


class _Bracket(eqx.Module):
    """What is known about a root on a line."""

    lower: Float[Array, ""]
    """The largest position at which the function was negative."""
    upper: Float[Array, ""]
    """The smallest position at which it was positive."""
    reach: Float[Array, ""]
    """How far the next step may go while one of the two is not known."""
    error: Float[Array, ""]
    """The size of the function at the position before."""


class BracketedNewton(optx.AbstractRootFinder):
    """Newton's method for one increasing function, with bisection where Newton's step leaves the bracket or is slow.

    A continuous function that is negative far to the left and positive far to the right always has its root found.
    """

    rtol: float
    atol: float
    norm: Callable[[PyTree], Any] = optx.max_norm

    def init(self, fn, y, args, options, f_struct, aux_struct, tags):
        infinity = jnp.full((), jnp.inf, f_struct.dtype)
        return _Bracket(-infinity, infinity, jnp.ones_like(infinity), infinity)

    def step(self, fn, y, args, options, state, tags):
        value, slope = jax.jvp(lambda y: fn(y, args)[0], (y,), (jnp.ones_like(y),))
        y, value, slope = y[0], value[0], slope[0]
        lower, upper = jnp.where(value < 0, y, state.lower), jnp.where(value > 0, y, state.upper)
        newton, bracketed = y - value / slope, jnp.isfinite(lower) & jnp.isfinite(upper)
        # Outside of a bracket a step may be wrong by any amount; inside, a slow one is no better than bisection.
        good = jnp.where(bracketed, jnp.abs(value) <= 0.5 * state.error, jnp.abs(newton - y) <= state.reach)
        good = good & (slope > 0) & (newton >= lower) & (newton <= upper)
        apart = jnp.where(bracketed, lower + (upper - lower) / 2, y - jnp.sign(value) * state.reach)
        reach = jnp.where(good | bracketed, state.reach, 2 * state.reach)
        state = _Bracket(lower, upper, reach, jnp.abs(value))
        return jnp.where(value == 0, y, jnp.where(good, newton, apart))[None], state, None

    def terminate(self, fn, y, args, options, state, tags):
        # The last step starts at a small error and leaves a much smaller one.
        return state.error <= self.atol + self.rtol * jnp.abs(y[0]), optx.RESULTS.successful

    def postprocess(self, fn, y, aux, args, options, state, tags, result):
        return y, aux, {}


Row = TypeVar("Row")
Shared = TypeVar("Shared")


def find_roots(
    residual: Callable[[Float[Array, "d"], Row, Shared], Float[Array, "d"]],
    start: Float[Array, "batch d"],
    rows: Row,
    shared: Shared,
    *,
    tolerance: float = 1e-5,
    max_steps: int = 48,
) -> tuple[Float[Array, "batch d"], Bool[Array, "batch"]]:
    """Find a root of `residual(·, row, shared)` for every sample, by Newton's method.

    On a line, where the residual must increase through its root, Newton's steps are kept in a bracket by bisection.

    Gradients with respect to `rows` and `shared` are implicit.

    ```python
    import jax
    import jax.numpy as jnp
    from charax.solve import find_roots

    residual = lambda root, row, power: root**power - row
    square_root = lambda number: find_roots(residual, number, number, 2.0)[0][0, 0]
    value, gradient = jax.jit(jax.value_and_grad(square_root))(jnp.array([[4.0]]))
    assert abs(value - 2) < 1e-4 and abs(gradient[0, 0] - 0.25) < 1e-4
    ```

    Args:
        residual: Of one sample: `residual(root, row, shared)` is zero at the root.
        start: Where the search starts.
        rows: What differs between samples: arrays with a leading batch axis.
        shared: What is the same for all samples.
        tolerance: Of Newton's method, relative and absolute.
        max_steps: The maximum number of Newton steps.

    Returns:
        The roots, and for every sample whether one was found. Where none was, the start is returned, without gradient.
    """
    tags = _tags(start)

    def remains(root: Array, row: Row) -> Array:
        return jnp.max(jnp.abs(residual(root, *freeze((row, shared)))))

    def settle(root: Array, row: Row) -> Array:
        function = lambda root, args: residual(root, *args)
        return optx.root_find(function, Settled(), root, (row, shared), tags=tags, throw=False).value

    root = search_roots(residual, start, rows, shared, tolerance=tolerance, max_steps=max_steps)
    # The root finder's own result is about its steps; what matters is the residual that remains.
    found = jax.vmap(remains)(root, rows) <= 10 * tolerance * (1 + jnp.max(jnp.abs(start), axis=1))
    root = jnp.where(found[:, None], root, lax.stop_gradient(start))
    return jnp.where(found[:, None], jax.vmap(settle)(root, rows), root), found


def search_roots(
    residual: Callable[[Float[Array, "d"], Row, Shared], Float[Array, "d"]],
    start: Float[Array, "batch d"],
    rows: Row,
    shared: Shared,
    *,
    tolerance: float = 1e-5,
    max_steps: int = 48,
) -> Float[Array, "batch d"]:
    """Search for the roots as `find_roots` does, without gradients, and without telling whether they were found."""
    finder = (BracketedNewton if start.shape[1] == 1 else optx.Newton)(rtol=tolerance, atol=tolerance)
    tags = _tags(start)

    def search(start: Array, row: Row) -> Array:
        function = lambda root, args: residual(root, *args)
        args = freeze((row, shared))
        return optx.root_find(function, finder, start, args, tags=tags, max_steps=max_steps, throw=False).value

    return lax.stop_gradient(jax.vmap(search)(lax.stop_gradient(start), rows))


def _tags(start: Array) -> frozenset[object]:
    return frozenset({lx.diagonal_tag}) if start.shape[1] == 1 else frozenset()
