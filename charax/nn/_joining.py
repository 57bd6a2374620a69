"""Put unlike inputs side by side for one network."""

import math

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from charax.nn._layers import Chain, Linear, Network


def join(*pieces: Float[Array, "#batch *_"]) -> Float[Array, "batch *space channels"]:
    """Concatenate along the last axis; `[batch, m]` features become m constant planes beside images.

    A piece with a batch of one belongs to all samples.

    ```python
    import jax.numpy as jnp
    from charax.nn import join

    assert join(jnp.ones((2, 8, 8, 3)), jnp.ones((2, 4))).shape == (2, 8, 8, 7)
    assert join(jnp.ones((2, 3)), jnp.ones((2, 4))).shape == (2, 7)
    ```
    """
    space, batch = _space(pieces), max(piece.shape[0] for piece in pieces)
    planes = [jnp.broadcast_to(_as_planes(piece, space), (batch, *space, piece.shape[-1])) for piece in pieces]
    return planes[0] if len(planes) == 1 else jnp.concatenate(planes, axis=-1)


def apply_joined(network: Network, *pieces: Float[Array, "#batch *_"]) -> Float[Array, "batch *_"]:
    """`network(join(*pieces))`, without making the planes where the first layer is linear.

    What is the same for all pixels or all samples is multiplied before it is spread over them, so that s costs as
    little as a bias.

    ```python
    import jax
    import jax.numpy as jnp
    from charax.nn import apply_joined, mlp

    network, s, u = mlp([3, 8, 2], key=jax.random.key(0)), jnp.ones((1, 1)), jnp.ones((4, 2))
    assert apply_joined(network, s, u).shape == (4, 2)
    ```
    """
    sizes = [math.prod(piece.shape[:-1]) for piece in pieces]
    first, *others = network.layers if isinstance(network, Chain) else [network]
    if not isinstance(first, Linear) or len(set(sizes)) == 1:
        return network(join(*pieces))
    planes = [_as_planes(piece, _space(pieces)) for piece in pieces]
    blocks = jnp.split(first.weight, np.cumsum([piece.shape[-1] for piece in pieces])[:-1])
    out = jnp.zeros((), first.weight.dtype) if first.bias is None else first.bias
    for size in sorted(set(sizes)):
        alike = [number for number, own in enumerate(sizes) if own == size]
        weight = jnp.concatenate([blocks[number] for number in alike])
        out = out + jnp.concatenate([planes[number] for number in alike], axis=-1) @ weight
    return Chain(*others)(out)


def _space(pieces: tuple[Array, ...]) -> tuple[int, ...]:
    """The size of the images among the pieces."""
    spaces = {piece.shape[1:-1] for piece in pieces if piece.ndim > 2}
    if len(spaces) > 1:
        raise ValueError(f"the inputs of a network must share their image size, got {sorted(spaces)}")
    return spaces.pop() if spaces else ()


def _as_planes(piece: Array, space: tuple[int, ...]) -> Array:
    """`[batch, m]` beside images is `[batch, 1, 1, m]`."""
    return piece if piece.ndim > 2 else piece.reshape(piece.shape[0], *(1,) * len(space), piece.shape[-1])
