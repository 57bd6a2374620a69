"""Initial values in one dimension, with the bounds that closed-form solutions need."""

from abc import abstractmethod
from collections.abc import Sequence

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Float

Parameter = Float[Array, ""]


def as_parameter(value: ArrayLike | Sequence) -> Array:
    """A parameter as a floating-point array."""
    return jnp.asarray(value, float)


class AbstractProfile(eqx.Module):
    """A function of one variable, with bounds of its values and of its derivative.

    ```python
    import jax.numpy as jnp
    from charax.pde import AbstractProfile, Sine

    profile: AbstractProfile = Sine(amplitude=2.0)
    assert profile.bounds() == (-2, 2) and profile(jnp.zeros(3)).shape == (3,)
    ```
    """

    @abstractmethod
    def __call__(self, x: Float[Array, "*points"]) -> Float[Array, "*points"]:
        """Evaluate the profile.

        Args:
            x: Positions.

        Returns:
            The values.
        """

    @abstractmethod
    def bounds(self) -> tuple[Float[Array, ""], Float[Array, ""]]:
        """Bound the values.

        Returns:
            The smallest and the largest value.
        """

    @abstractmethod
    def slopes(self) -> tuple[Float[Array, ""], Float[Array, ""]]:
        """Bound the derivative.

        Returns:
            The smallest and the largest derivative.
        """


class Gaussian(AbstractProfile):
    """base + height · exp(−x²/2width²), for a width above 0.

    ```python
    import jax.numpy as jnp
    from charax.pde import Gaussian

    assert Gaussian(height=2.0)(jnp.zeros(1))[0] == 2.0
    ```
    """

    height: Parameter = eqx.field(default=1.0, converter=as_parameter)
    """The height above the base."""
    width: Parameter = eqx.field(default=1.0, converter=as_parameter)
    """The standard deviation."""
    base: Parameter = eqx.field(default=0.0, converter=as_parameter)
    """The value far from the origin."""

    def __call__(self, x: Float[Array, "*points"]) -> Float[Array, "*points"]:
        return self.base + self.height * jnp.exp(-0.5 * (x / self.width) ** 2)

    def bounds(self) -> tuple[Float[Array, ""], Float[Array, ""]]:
        top = self.base + self.height
        return jnp.minimum(self.base, top), jnp.maximum(self.base, top)

    def slopes(self) -> tuple[Float[Array, ""], Float[Array, ""]]:
        steepest = jnp.abs(self.height) / self.width * np.exp(-0.5)
        return -steepest, steepest


class Sine(AbstractProfile):
    """mean + amplitude · sin(wavenumber · x).

    ```python
    import jax.numpy as jnp
    from charax.pde import Sine

    assert abs(Sine()(jnp.array([jnp.pi]))[0]) < 1e-6
    ```
    """

    amplitude: Parameter = eqx.field(default=1.0, converter=as_parameter)
    """The amplitude."""
    wavenumber: Parameter = eqx.field(default=1.0, converter=as_parameter)
    """2π over the wavelength."""
    mean: Parameter = eqx.field(default=0.0, converter=as_parameter)
    """The mean value."""

    def __call__(self, x: Float[Array, "*points"]) -> Float[Array, "*points"]:
        return self.mean + self.amplitude * jnp.sin(self.wavenumber * x)

    def bounds(self) -> tuple[Float[Array, ""], Float[Array, ""]]:
        return self.mean - jnp.abs(self.amplitude), self.mean + jnp.abs(self.amplitude)

    def slopes(self) -> tuple[Float[Array, ""], Float[Array, ""]]:
        steepest = jnp.abs(self.amplitude * self.wavenumber)
        return -steepest, steepest


class Ramp(AbstractProfile):
    """`height` up to x = 0, then a straight line to 0 at x = `length` (above 0), then 0.

    ```python
    import jax.numpy as jnp
    from charax.pde import Ramp

    assert Ramp()(jnp.array([0.25]))[0] == 0.75
    ```
    """

    height: Parameter = eqx.field(default=1.0, converter=as_parameter)
    """The value for x < 0."""
    length: Parameter = eqx.field(default=1.0, converter=as_parameter)
    """The length of the ramp."""

    def __call__(self, x: Float[Array, "*points"]) -> Float[Array, "*points"]:
        return self.height * jnp.clip(1 - x / self.length, 0, 1)

    def bounds(self) -> tuple[Float[Array, ""], Float[Array, ""]]:
        return jnp.minimum(self.height, 0), jnp.maximum(self.height, 0)

    def slopes(self) -> tuple[Float[Array, ""], Float[Array, ""]]:
        slope = -self.height / self.length
        return jnp.minimum(slope, 0), jnp.maximum(slope, 0)
