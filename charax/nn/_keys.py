"""Random keys for initial weights, split without compiling anything."""

import jax
import numpy as np
from jax.core import Tracer
from jaxtyping import PRNGKeyArray, UInt32

_ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
_PARITY = np.uint32(0x1BD11BDA)


def split_key(key: PRNGKeyArray, num: int = 2) -> list[PRNGKeyArray]:
    """Split a random key, as `jax.random.split` does, with the same result.

    On the host, where it takes microseconds: JAX compiles a program for every number of keys, and another to take them
    apart, and a model splits its key many times.

    Args:
        key: The random key.
        num: Number of new keys.

    Returns:
        The new keys.

    ```python
    import jax
    from charax.nn import split_key

    key = jax.random.key(0)
    assert all(ours == theirs for ours, theirs in zip(split_key(key), jax.random.split(key), strict=True))
    ```
    """
    words = jax.random.key_data(key)
    if isinstance(words, Tracer) or words.shape != (2,) or not jax.config.jax_threefry_partitionable:  # pyright: ignore[reportAttributeAccessIssue]
        return list(jax.random.split(key, num))
    implementation = jax.random.key_impl(key)
    if str(implementation) != "threefry2x32":
        return list(jax.random.split(key, num))
    return [jax.random.wrap_key_data(each) for each in _threefry_split(np.asarray(words), num)]


def _threefry_split(key: UInt32[np.ndarray, "2"], num: int) -> UInt32[np.ndarray, "num 2"]:
    """Threefry-2x32 with 20 rounds of the counters (0, 0), (0, 1), …."""
    schedule = (key[0], key[1], key[0] ^ key[1] ^ _PARITY)
    x, y = np.full(num, key[0]), np.arange(num, dtype=np.uint32) + key[1]
    for group in range(5):
        for rotation in _ROTATIONS[group % 2]:
            x = x + y
            y = x ^ ((y << np.uint32(rotation)) | (y >> np.uint32(32 - rotation)))
        x = x + schedule[(group + 1) % 3]
        y = y + schedule[(group + 2) % 3] + np.uint32(group + 1)
    return np.stack([x, y], axis=1)
