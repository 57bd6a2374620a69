"""What is learned in a model."""

import jax
import jax.numpy as jnp
from jaxtyping import PyTree


def count_parameters(model: PyTree) -> int:
    """The number of trainable numbers in a model: the sizes of its floating-point arrays.

    ```python
    import jax
    from charax.nn import count_parameters, mlp

    assert count_parameters(mlp([2, 16, 1], key=jax.random.key(0))) == 2 * 16 + 16 + 16 + 1
    ```
    """
    return sum(leaf.size for leaf in jax.tree.leaves(model) if _is_trainable(leaf))


def _is_trainable(leaf: object) -> bool:
    # Also the shape of an array that does not exist yet, so that models can be counted without being made.
    return isinstance(leaf, jax.Array | jax.ShapeDtypeStruct) and jnp.issubdtype(leaf.dtype, jnp.inexact)
