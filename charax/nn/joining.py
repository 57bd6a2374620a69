"""Put unlike inputs side by side for one network."""

import jax.numpy as jnp
from jaxtyping import Array, Float


def join(*pieces: Float[Array, "batch *_"]) -> Float[Array, "batch *space channels"]:
    """Concatenate along the last axis; `[batch, m]` features become m constant planes beside images.

    ```python
    import jax.numpy as jnp
    from charax.nn import join

    assert join(jnp.ones((2, 8, 8, 3)), jnp.ones((2, 4))).shape == (2, 8, 8, 7)
    assert join(jnp.ones((2, 3)), jnp.ones((2, 4))).shape == (2, 7)
    ```
    """
    spaces = {piece.shape[1:-1] for piece in pieces if piece.ndim > 2}
    if len(spaces) > 1:
        raise ValueError(f"the inputs of a network must share their image size, got {sorted(spaces)}")
    space = spaces.pop() if spaces else ()
    ones = (1,) * len(space)
    planes = [
        piece
        if piece.ndim > 2
        else jnp.broadcast_to(
            piece.reshape(piece.shape[0], *ones, piece.shape[-1]), (piece.shape[0], *space, piece.shape[-1])
        )
        for piece in pieces
    ]
    return planes[0] if len(planes) == 1 else jnp.concatenate(planes, axis=-1)
