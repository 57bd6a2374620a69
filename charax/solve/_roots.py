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


Row = TypeVar("Row")
Shared = TypeVar("Shared")


def find_roots(
    residual: Callable[[Float[Array, "d"], Row, Shared], Float[Array, "d"]],
    start: Float[Array, "batch d"],
    rows: Row,
    shared: Shared,
    *,
    tolerance: float = 1e-5,
    max_steps: int = 24,
) -> tuple[Float[Array, "batch d"], Bool[Array, "batch"]]:
    """Find a root of `residual(·, row, shared)` for every sample, by Newton's method.

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
    finder = optx.Newton(rtol=tolerance, atol=tolerance)
    function = lambda root, args: residual(root, *args)
    tags = frozenset({lx.diagonal_tag}) if start.shape[1] == 1 else frozenset()

    def find(start: Array, row: Row) -> tuple[Array, Array]:
        args = freeze((row, shared))
        found = optx.root_find(function, finder, start, args, tags=tags, max_steps=max_steps, throw=False)
        # Newton's own result is about its steps; what matters is the residual that remains.
        remaining = jnp.max(jnp.abs(function(found.value, args)))
        return found.value, remaining <= 10 * tolerance * (1 + jnp.max(jnp.abs(start)))

    def settle(root: Array, row: Row) -> Array:
        return optx.root_find(function, Settled(), root, (row, shared), tags=tags, throw=False).value

    root, found = jax.vmap(find)(lax.stop_gradient(start), rows)
    root = jnp.where(found[:, None], root, lax.stop_gradient(start))
    return jnp.where(found[:, None], jax.vmap(settle)(root, rows), root), found
