"""Join vectors and images into the input of one network."""

import math

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from charax.nn._layers import Chain, Linear, Network


def join(*pieces: Float[Array, "#batch *_"]) -> Float[Array, "batch *space channels"]:
    """Concatenate along the last axis; if there are images, `[batch, m]` features become m constant channels.

    A piece with a batch of one is broadcast to all samples.

    ```python
    import jax.numpy as jnp
    from charax.nn import join

    assert join(jnp.ones((2, 8, 8, 3)), jnp.ones((2, 4))).shape == (2, 8, 8, 7)
    assert join(jnp.ones((2, 3)), jnp.ones((2, 4))).shape == (2, 7)
    ```

    Args:
        *pieces: Vectors or images; all images must have the same size.

    Returns:
        One array with all channels.

    Raises:
        ValueError: If the images differ in size.
    """
    space, batch = _space(pieces), next((piece.shape[0] for piece in pieces if piece.shape[0] != 1), 1)
    planes = [jnp.broadcast_to(_as_images(piece, space), (batch, *space, piece.shape[-1])) for piece in pieces]
    return planes[0] if len(planes) == 1 else jnp.concatenate(planes, axis=-1)


def apply_joined(network: Network, *pieces: Float[Array, "#batch *_"]) -> Float[Array, "batch *_"]:
    """Compute `network(join(*pieces))`, without the joined array if the first layer is linear.

    A piece that is constant over all pixels or all samples is multiplied before it is broadcast, so that s costs no
    more than a bias.

    ```python
    import jax
    import jax.numpy as jnp
    from charax.nn import apply_joined, mlp

    network, s, u = mlp([3, 8, 2], key=jax.random.key(0)), jnp.ones((1, 1)), jnp.ones((4, 2))
    assert apply_joined(network, s, u).shape == (4, 2)
    ```

    Args:
        network: Maps the joined pieces.
        *pieces: Vectors or images; all images must have the same size.

    Returns:
        The output of the network.

    Raises:
        ValueError: If the images differ in size.
    """
    sizes = [math.prod(piece.shape[:-1]) for piece in pieces]
    first, *others = network.layers if isinstance(network, Chain) else [network]
    if not isinstance(first, Linear) or len(set(sizes)) == 1:
        return network(join(*pieces))
    planes = [_as_images(piece, _space(pieces)) for piece in pieces]
    blocks = jnp.split(first.weight, np.cumsum([piece.shape[-1] for piece in pieces])[:-1])
    out = jnp.zeros((), first.weight.dtype) if first.bias is None else first.bias
    for size in sorted(set(sizes), key=lambda size: size if isinstance(size, int) else math.inf):  # or symbolic
        same_size = [number for number, own in enumerate(sizes) if own == size]
        weight = jnp.concatenate([blocks[number] for number in same_size])
        out = out + jnp.concatenate([planes[number] for number in same_size], axis=-1) @ weight
    return Chain(*others)(out)


def _space(pieces: tuple[Array, ...]) -> tuple[int, ...]:
    """The size of the images among the pieces."""
    spaces = {piece.shape[1:-1] for piece in pieces if piece.ndim > 2}
    if len(spaces) > 1:
        raise ValueError(f"the inputs of a network must share their image size, got {sorted(spaces)}")
    return spaces.pop() if spaces else ()


def _as_images(piece: Array, space: tuple[int, ...]) -> Array:
    """Vectors `[batch, m]` as images of one pixel, `[batch, 1, 1, m]`."""
    return piece if piece.ndim > 2 else piece.reshape(piece.shape[0], *(1,) * len(space), piece.shape[-1])
