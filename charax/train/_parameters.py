"""A model as one vector of parameters and a function that makes the model from it.

What is done to every parameter alike (the optimizer, the average, the choice of the best) is then a few
operations instead of a few for every layer: less to compile, which is most of the time of a short run.
"""

from collections.abc import Callable
from math import prod

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

Unflatten = Callable[[Float[Array, "parameters"]], eqx.Module]


def flatten_model(model: eqx.Module) -> tuple[Float[Array, "parameters"], Unflatten]:
    """Flatten the parameters of a model into one vector.

    Args:
        model: The model.

    Returns:
        The vector, and a function that builds the model from such a vector.

    ```python
    import jax
    from charax.nn import Linear
    from charax.train import flatten_model

    layer = Linear(2, 3, key=jax.random.key(0))
    vector, unflatten = flatten_model(layer)
    assert vector.shape == (9,)
    assert (unflatten(2 * vector).weight == 2 * layer.weight).all()
    ```
    """
    params, static = eqx.partition(model, eqx.is_inexact_array)
    leaves, structure = jax.tree.flatten(params)
    kinds = [(leaf.shape, leaf.dtype) for leaf in leaves]
    dtype = jnp.result_type(*[dtype for _, dtype in kinds]) if kinds else jnp.result_type(float)
    # On the host, where nothing is compiled for it.
    flat = [np.asarray(leaf).astype(dtype).ravel() for leaf in leaves]
    vector = jax.device_put(np.concatenate(flat) if flat else np.zeros(0, dtype))

    def unflatten(vector: Float[Array, "parameters"]) -> eqx.Module:
        parts = jax.lax.split(vector, [prod(shape) for shape, _ in kinds])
        leaves = [part.reshape(shape).astype(dtype) for part, (shape, dtype) in zip(parts, kinds, strict=True)]
        return eqx.combine(jax.tree.unflatten(structure, leaves), static)

    return vector, unflatten
