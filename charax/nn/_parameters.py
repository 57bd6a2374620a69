"""The number of parameters of a model."""

import jax
import jax.numpy as jnp
from jaxtyping import PyTree


def count_parameters(model: PyTree) -> int:
    """Count the parameters of a model: the entries of its floating-point arrays.

    ```python
    import jax
    from charax.nn import count_parameters, mlp

    assert count_parameters(mlp([2, 16, 1], key=jax.random.key(0))) == 2 * 16 + 16 + 16 + 1
    ```

    Args:
        model: A model, or its shapes as `jax.eval_shape` returns them.

    Returns:
        The number of parameters.
    """
    return sum(leaf.size for leaf in jax.tree.leaves(model) if _is_trainable(leaf))


def summarize(module: PyTree, *parts: object) -> str:
    """Describe a module in one line, with the number of its parameters.

    ```python
    import jax
    from charax.nn import mlp, summarize

    assert summarize(mlp([2, 16, 1], key=jax.random.key(0)), "tanh") == "Chain(tanh, 65 parameters)"
    ```

    Args:
        module: The module.
        parts: What to say about it.

    Returns:
        The line.
    """
    return f"{type(module).__name__}({', '.join([*map(str, parts), f'{count_parameters(module):,} parameters'])})"


def count(number: int, noun: str) -> str:
    """A number of things: `count(2, "value")` is "2 values"."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _is_trainable(leaf: object) -> bool:
    # Shapes count too, so that the parameters of a model can be counted without building it.
    return isinstance(leaf, jax.Array | jax.ShapeDtypeStruct) and jnp.issubdtype(leaf.dtype, jnp.inexact)
