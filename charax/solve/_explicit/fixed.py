"""Fixed steps."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float

from charax.fields._names import Count
from charax.nn._convolution import is_product
from charax.solve._explicit.tableau import Tableau, Y

MAX_STATES = 32
"""The gradient of more steps than this keeps the states between so many segments, and recomputes the others."""

_UNROLLED = 2
"""Up to so many steps of vectors are no loop: a gradient takes three quarters of the time, and compiles no longer. The
program of a convolution would be twice as long."""


def integrate_fixed(
    tableau: Tableau, vector_field: Callable[[Float[Array, ""], Y], Y], y0: Y, steps: Count, *, recompute: bool
) -> Y:
    """y(1) after `steps` steps of equal size.

    With `recompute` the gradient keeps only the states between the steps, and of many steps only those between
    segments. Otherwise it keeps what it needs of a loop over vectors, and of images, and of few steps, the results of
    all products: what lies between two products (sums, norms, activations) is computed again, because a loop copies
    whatever is kept into an array over all steps, which takes longer.
    """
    dtype = jax.tree.leaves(y0)[0].dtype
    h = jnp.asarray(1 / steps, dtype)
    if steps == 1:
        return tableau.step(vector_field, jnp.zeros((), dtype), h, y0)

    def step(y: Y, number: Array) -> tuple[Y, None]:
        return tableau.step(vector_field, number.astype(dtype) * h, h, y), None

    has_vectors = all(leaf.ndim <= 2 for leaf in jax.tree.leaves(y0))
    few = isinstance(steps, int) and steps <= _UNROLLED  # an exported program may have any number of steps
    if recompute or few or not has_vectors:
        step = jax.checkpoint(step, prevent_cse=False, policy=None if recompute else is_product)
    if not recompute or steps <= MAX_STATES:
        return lax.scan(step, y0, jnp.arange(steps), unroll=has_vectors and few)[0]
    length = -(-steps // MAX_STATES)
    segments, rest = divmod(steps, length)
    segment = jax.checkpoint(lambda y, numbers: lax.scan(step, y, numbers), prevent_cse=False)
    y0, _ = lax.scan(segment, y0, jnp.arange(steps - rest).reshape(segments, length))
    return segment(y0, jnp.arange(steps - rest, steps))[0] if rest else y0
