"""The distribution of the times at which a field is matched."""

import math
from abc import abstractmethod
from collections.abc import Mapping
from types import MappingProxyType

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray


class AbstractTimes(eqx.Module):
    """A distribution on (0, 1), given by its quantile function.

    ```python
    import jax
    from charax.models.matching import AbstractTimes, UniformTimes

    times: AbstractTimes = UniformTimes()
    t = times.draw(jax.random.key(0), 100)
    assert abs(t.mean() - 0.5) < 0.01  # stratified: one time in every hundredth
    ```
    """

    @abstractmethod
    def quantile(self, q: Float[Array, "batch"]) -> Float[Array, "batch"]:
        """Compute quantiles.

        Args:
            q: Probabilities in (0, 1).

        Returns:
            The times below which the distribution has these probabilities.
        """

    def draw(self, key: PRNGKeyArray, n: int) -> Float[Array, "batch"]:
        """Draw times, one in each of n intervals of equal probability: their mean varies less than that of
        independent ones.

        Args:
            key: Random key.
            n: The number of times.

        Returns:
            The times in increasing order.
        """
        uniform = jax.random.uniform(key, (n,), minval=1e-4, maxval=1 - 1e-4)
        return self.quantile((jnp.arange(n) + uniform) / n)


class UniformTimes(AbstractTimes):
    """All times are equally likely.

    ```python
    import jax.numpy as jnp
    from charax.models.matching import UniformTimes

    assert UniformTimes().quantile(jnp.array([0.25])) == 0.25
    ```
    """

    def quantile(self, q: Float[Array, "batch"]) -> Float[Array, "batch"]:
        return q


class LogitNormalTimes(AbstractTimes):
    """log(t/(1 − t)) is normal; with a negative mean most of the times are near the data, which matters most for
    the likelihood.

    ```python
    import jax.numpy as jnp
    from charax.models.matching import LogitNormalTimes

    assert jnp.allclose(LogitNormalTimes().quantile(jnp.array([0.5])), 0.5)
    ```
    """

    mean: float = eqx.field(static=True, default=0.0)
    """The mean of the logit of t."""
    scale: float = eqx.field(static=True, default=1.0)
    """The standard deviation of the logit of t."""

    def __check_init__(self):
        if not (math.isfinite(self.mean) and math.isfinite(self.scale) and self.scale > 0):
            raise ValueError(f"mean must be finite and scale above 0, got {self.mean} and {self.scale}")

    def quantile(self, q: Float[Array, "batch"]) -> Float[Array, "batch"]:
        normal = math.sqrt(2) * jax.lax.erf_inv(2 * q - 1)
        return jax.nn.sigmoid(self.mean + self.scale * normal)


TIMES: Mapping[str, AbstractTimes] = MappingProxyType(
    {"uniform": UniformTimes(), "logit-normal": LogitNormalTimes(), "data": LogitNormalTimes(-1.0, 1.5)}
)
"""The distributions of times by name; "data" is logit-normal with most of the times near the data."""
