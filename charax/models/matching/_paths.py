"""Paths from one sample to another, with their velocities."""

import math
from abc import abstractmethod
from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float


class Coefficients(NamedTuple):
    """α, β and their derivatives at one time per sample: the path is α·start + β·end."""

    start: Float[Array, "batch"]
    end: Float[Array, "batch"]
    start_rate: Float[Array, "batch"]
    end_rate: Float[Array, "batch"]


class AbstractPath(eqx.Module):
    """A path u(t) = α(t)·start + β(t)·end for t in [0, 1], from data at t = 0 to a sample of the source at t = 1.

    ```python
    import jax.numpy as jnp
    from charax.models.matching import AbstractPath, CosinePath

    path: AbstractPath = CosinePath()
    position, velocity = path(jnp.ones((2, 3)), jnp.zeros((2, 3)), jnp.array([0.0, 1.0]))
    assert jnp.allclose(position[:, 0], jnp.array([1.0, 0.0]), atol=1e-6)
    ```
    """

    @abstractmethod
    def coefficients(self, t: Float[Array, "batch"]) -> Coefficients:
        """Compute α, β and their derivatives.

        Args:
            t: One time per sample, in [0, 1].

        Returns:
            The coefficients.
        """

    def __call__(
        self, start: Float[Array, "batch *state"], end: Float[Array, "batch *state"], t: Float[Array, "batch"]
    ) -> tuple[Float[Array, "batch *state"], Float[Array, "batch *state"]]:
        """Compute where the paths are, and how fast they move.

        Args:
            start: Where each path begins.
            end: Where each path ends.
            t: One time per path.

        Returns:
            The positions u(t), and the velocities du/dt.
        """
        each = self.coefficients(t)
        a, b, a_rate, b_rate = (value.reshape(-1, *(1,) * (start.ndim - 1)) for value in each)
        return a * start + b * end, a_rate * start + b_rate * end


class LinearPath(AbstractPath):
    """The straight path (1 − t)·start + t·end, of constant velocity.

    ```python
    import jax.numpy as jnp
    from charax.models.matching import LinearPath

    _, velocity = LinearPath()(jnp.ones((2, 3)), jnp.full((2, 3), 5.0), jnp.array([0.1, 0.9]))
    assert (velocity == 4).all()
    ```
    """

    def coefficients(self, t: Float[Array, "batch"]) -> Coefficients:
        one = jnp.ones_like(t)
        return Coefficients(1 - t, t, -one, one)


class CosinePath(AbstractPath):
    """The path cos(πt/2)·start + sin(πt/2)·end, which keeps the variance of independent samples of variance 1.

    ```python
    import jax.numpy as jnp
    from charax.models.matching import CosinePath

    each = CosinePath().coefficients(jnp.array([0.3]))
    assert jnp.allclose(each.start**2 + each.end**2, 1)
    ```
    """

    def coefficients(self, t: Float[Array, "batch"]) -> Coefficients:
        rate = math.pi / 2
        cos, sin = jnp.cos(rate * t), jnp.sin(rate * t)
        return Coefficients(cos, sin, -rate * sin, rate * cos)


class VariancePreservingPath(AbstractPath):
    """The path of the variance-preserving diffusion: α(t) = exp(−½∫β), and end coefficient √(1 − α²).

    The rate of the diffusion grows linearly from `min_rate` to `max_rate`. The path begins shortly after the data,
    where its velocity would be infinite, and ends with the small rest α(1) of the data.

    ```python
    import jax.numpy as jnp
    from charax.models.matching import VariancePreservingPath

    each = VariancePreservingPath().coefficients(jnp.array([1.0]))
    assert each.start < 0.01 and jnp.allclose(each.start**2 + each.end**2, 1)
    ```
    """

    min_rate: float = eqx.field(static=True, default=0.1)
    """The rate of the diffusion at the data."""
    max_rate: float = eqx.field(static=True, default=20.0)
    """The rate of the diffusion at the source."""
    first_time: float = eqx.field(static=True, default=1e-3)
    """The time of the diffusion at which the path begins."""

    def coefficients(self, t: Float[Array, "batch"]) -> Coefficients:
        speed = 1 - self.first_time
        time, slope = self.first_time + speed * t, self.max_rate - self.min_rate
        exponent = -0.5 * (self.min_rate * time + 0.5 * slope * time**2)
        start, end = jnp.exp(exponent), jnp.sqrt(-jnp.expm1(2 * exponent))
        start_rate = -0.5 * speed * (self.min_rate + slope * time) * start
        return Coefficients(start, end, start_rate, -start * start_rate / end)


PATHS: Mapping[str, AbstractPath] = MappingProxyType(
    {"linear": LinearPath(), "variance-preserving": VariancePreservingPath(), "cosine": CosinePath()}
)
"""The paths by name."""
