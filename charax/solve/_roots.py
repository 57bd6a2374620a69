"""Find a root first, then make it differentiable: the search itself stays out of the gradient's way."""

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
    """The same, out of reach of gradients."""
    arrays, rest = eqx.partition(tree, eqx.is_inexact_array)
    return eqx.combine(lax.stop_gradient(arrays), rest)


class Settled(optx.AbstractRootFinder):
    """Takes the start for the root, which it is: for the implicit gradient at a root that was found before."""

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
    miss: Callable[[Float[Array, "d"], Row, Shared], Float[Array, "d"]],
    start: Float[Array, "batch d"],
    rows: Row,
    shared: Shared,
    *,
    tolerance: float = 1e-5,
    max_steps: int = 24,
) -> tuple[Float[Array, "batch d"], Bool[Array, "batch"]]:
    """For every sample a root of `miss(·, its row, shared)` from its start, and whether one was found.

    Newton's method, sample by sample. Gradients with respect to `rows` and `shared` are implicit; where no root was
    found the start is returned, out of reach of gradients.

    ```python
    import jax
    import jax.numpy as jnp
    from charax.solve import find_roots

    miss = lambda root, row, power: root**power - row
    root_of = lambda number: find_roots(miss, number, number, 2.0)[0][0, 0]
    four = jnp.array([[4.0]])
    assert abs(root_of(four) - 2) < 1e-4 and abs(jax.grad(root_of)(four)[0, 0] - 0.25) < 1e-4
    ```
    """
    finder = optx.Newton(rtol=tolerance, atol=tolerance)
    defect = lambda root, args: miss(root, *args)
    tags = frozenset({lx.diagonal_tag}) if start.shape[1] == 1 else frozenset()

    def find(start: Array, row: Row) -> tuple[Array, Array]:
        found = optx.root_find(
            defect, finder, start, freeze((row, shared)), tags=tags, max_steps=max_steps, throw=False
        )
        left = jnp.max(jnp.abs(defect(found.value, freeze((row, shared)))))
        # Newton's own verdict is about its steps; what matters is what is left to go.
        return found.value, left <= 10 * tolerance * (1 + jnp.max(jnp.abs(start)))

    def settle(root: Array, row: Row) -> Array:
        return optx.root_find(defect, Settled(), root, (row, shared), tags=tags, throw=False).value

    root, found = jax.vmap(find)(lax.stop_gradient(start), rows)
    root = jnp.where(found[:, None], root, lax.stop_gradient(start))
    return jnp.where(found[:, None], jax.vmap(settle)(root, rows), root), found
