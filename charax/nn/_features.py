"""Features that let a network change over short distances."""

from collections.abc import Sequence
from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.scipy.linalg import block_diag
from jaxtyping import Array, Float, PRNGKeyArray

from charax.nn._keys import split_key
from charax.nn._layers import normal
from charax.nn._trigonometry import sine_and_cosine


@partial(jax.jit, static_argnums=1)  # one small program instead of one for every operation
def _join_blocks(
    blocks: Sequence[Float[Array, "_ _"]], scales: tuple[float, ...]
) -> Float[Array, "inputs frequencies"]:
    """A block-diagonal matrix of scaled blocks."""
    return block_diag(*(scale * block for scale, block in zip(scales, blocks, strict=True)))


class FourierFeatures(eqx.Module):
    """The inputs together with the sines and cosines of random linear combinations of them.

    A perceptron learns smooth functions first; behind these features it learns those that change over a distance of
    1/scale as quickly. The frequencies are learned, too.

    ```python
    import jax
    import jax.numpy as jnp
    from charax.nn import FourierFeatures

    # A time with 4 frequencies of its own, and two coordinates with 16.
    features = FourierFeatures([(1, 6.0, 4), (2, 4.0, 16)], key=jax.random.key(0))
    assert features(jnp.ones((5, 3))).shape == (5, features.outputs) == (5, 3 + 2 * (4 + 16))
    ```
    """

    frequencies: Float[Array, "inputs frequencies"]

    def __init__(self, groups: Sequence[tuple[int, float, int]], *, key: PRNGKeyArray):
        """Draw the frequencies from normal distributions.

        Args:
            groups: For each group of inputs: how many inputs there are, the standard deviation of their frequencies,
                and how many frequencies they have. At first no frequency mixes inputs of two groups.
            key: The random key.
        """
        keys = split_key(key, len(groups))
        drawn = [normal(key, (inputs, count)) for (inputs, _, count), key in zip(groups, keys, strict=True)]
        self.frequencies = _join_blocks(drawn, tuple(scale for _, scale, _ in groups))

    @property
    def outputs(self) -> int:
        """The number of features."""
        inputs, frequencies = self.frequencies.shape
        return inputs + 2 * frequencies

    def __call__(self, h: Float[Array, "batch *space inputs"]) -> Float[Array, "batch *space outputs"]:
        """Compute the features.

        Args:
            h: The inputs.

        Returns:
            The inputs, sines and cosines.
        """
        return jnp.concatenate([h, *sine_and_cosine(h @ self.frequencies)], axis=-1)
