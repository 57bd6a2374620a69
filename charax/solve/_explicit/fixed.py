"""Fixed steps."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float, Int

from charax.fields._names import Count
from charax.nn._convolution import is_product
from charax.solve._explicit.tableau import Tableau, Y

_MAX_STATES = 32
"""The gradient of more steps than this keeps the states between so many segments, and recomputes the others."""

_SHORT = 8
"""A segment of up to so many steps of vectors keeps what its gradient needs, instead of recomputing every step once
more: that takes a third less time, and the memory of these few steps."""

_UNROLLED = 2
"""Up to so many steps of vectors are no loop: a gradient takes three quarters of the time, and compiles no longer. The
program of a convolution would be twice as long."""


def integrate_fixed(
    tableau: Tableau, vector_field: Callable[[Float[Array, ""], Y], Y], y0: Y, steps: Count, *, recompute: bool
) -> Y:
    """y(1) after `steps` steps of equal size.

    With `recompute` the gradient keeps only the states between the steps, and of many steps only those between
    segments, which are split in turn: their number grows with the logarithm of the steps. Otherwise it keeps what it
    needs of a loop over vectors, and of images, and of few steps, the results of all products: what lies between two
    products (sums, norms, activations) is computed again, because a loop copies whatever is kept into an array over all
    steps, which takes longer.
    """
    dtype = jax.tree.leaves(y0)[0].dtype
    h = jnp.asarray(1 / steps, dtype)
    if steps == 1:
        return tableau.step(vector_field, jnp.zeros((), dtype), h, y0)

    def step(y: Y, number: Array) -> tuple[Y, None]:
        return tableau.step(vector_field, number.astype(dtype) * h, h, y), None

    has_vectors = all(leaf.ndim <= 2 for leaf in jax.tree.leaves(y0))
    if recompute:
        return _integrate_segments(step, y0, jnp.arange(steps), short=_SHORT if has_vectors else 0)
    few = isinstance(steps, int) and steps <= _UNROLLED  # an exported program may have any number of steps
    if few or not has_vectors:
        step = jax.checkpoint(step, prevent_cse=False, policy=is_product)
    return lax.scan(step, y0, jnp.arange(steps), unroll=has_vectors and few)[0]


def _integrate_segments(
    step: Callable[[Y, Array], tuple[Y, None]], y: Y, numbers: Int[Array, "steps"], *, short: int, is_kept: bool = False
) -> Y:
    """The steps with these numbers, in up to `_MAX_STATES` segments whose gradients recompute them: those of up to
    `short` steps, which are kept, as a whole."""
    count = len(numbers)
    if count <= _MAX_STATES:
        return lax.scan(step if is_kept else jax.checkpoint(step, prevent_cse=False), y, numbers)[0]
    length = -(-count // _MAX_STATES)

    def segment(y: Y, numbers: Array) -> tuple[Y, None]:
        return _integrate_segments(step, y, numbers, short=short, is_kept=length <= short), None

    segment = jax.checkpoint(segment, prevent_cse=False)
    whole = count - count % length
    y, _ = lax.scan(segment, y, numbers[:whole].reshape(-1, length))
    return segment(y, numbers[whole:])[0] if whole < count else y
