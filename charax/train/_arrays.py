"""The arrays of a tree by name, as they are written to files."""

import jax
import numpy as np
from jaxtyping import PyTree


def name_arrays(tree: PyTree) -> dict[str, np.ndarray]:
    """Name every array of a tree by its path, as in `ode.field.jacobian.networks.0.layers.1.weight`.

    Args:
        tree: A model, or any other tree of arrays.

    Returns:
        The arrays by name.

    ```python
    import jax
    from charax.nn import Linear
    from charax.train import name_arrays

    assert set(name_arrays(Linear(2, 3, key=jax.random.key(0)))) == {"weight", "bias"}
    ```
    """
    leaves, _ = jax.tree_util.tree_flatten_with_path(tree)
    return {jax.tree_util.keystr(path, simple=True, separator="."): np.asarray(leaf) for path, leaf in leaves}


def fill_arrays(tree: PyTree, arrays: dict[str, np.ndarray], source: object) -> PyTree:
    """The tree with its arrays replaced by those of the same name; `source` is what an error names."""
    leaves, structure = jax.tree_util.tree_flatten_with_path(tree)
    names = [jax.tree_util.keystr(path, simple=True, separator=".") for path, _ in leaves]
    missing, unknown = set(names) - arrays.keys(), arrays.keys() - set(names)
    if missing or unknown:
        raise ValueError(
            f"{source} does not fit the model: it has {len(unknown)} arrays that the model does not know and lacks "
            f"{len(missing)} ({', '.join(sorted(missing | unknown)[:3])} …)"
        )
    for name, (_, leaf) in zip(names, leaves, strict=True):
        if arrays[name].shape != leaf.shape or arrays[name].dtype != leaf.dtype:
            raise ValueError(
                f"{source} does not fit the model: {name} is {arrays[name].dtype}{list(arrays[name].shape)} "
                f"where {leaf.dtype}{list(leaf.shape)} is expected"
            )
    return jax.tree.unflatten(structure, [arrays[name] for name in names])
