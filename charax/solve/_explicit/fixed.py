"""Fixed steps."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float

from charax.nn._convolution import is_product
from charax.solve._explicit.tableau import Tableau, Y


def integrate_fixed(
    tableau: Tableau, vector_field: Callable[[Float[Array, ""], Y], Y], y0: Y, steps: int, *, recompute: bool
) -> Y:
    """y(1) after `steps` steps of equal size.

    The gradient keeps the results of all products, or with `recompute` only the states between the steps. What lies
    between two products (sums, norms, activations) is always computed again: a loop copies whatever is kept into an
    array over all steps, which takes longer.
    """
    dtype = jax.tree.leaves(y0)[0].dtype
    h = jnp.asarray(1 / steps, dtype)
    if steps == 1:
        return tableau.step(vector_field, jnp.zeros((), dtype), h, y0)

    def step(y: Y, number: Array) -> tuple[Y, None]:
        return tableau.step(vector_field, number.astype(dtype) * h, h, y), None

    policy = None if recompute else is_product
    return lax.scan(jax.checkpoint(step, prevent_cse=False, policy=policy), y0, jnp.arange(steps))[0]
