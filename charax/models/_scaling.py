"""Between the units of the data and those in which networks learn well."""

import math
from dataclasses import dataclass

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float


def _power_of_two(width: float) -> float:
    return 2.0 ** round(math.log2(width)) if width > 0 else 1.0


def _round(values: Float[np.ndarray, "points n"]) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """The center and the scale of every column: the scale a power of two, the center a multiple of it."""
    scales = [_power_of_two(float(width)) for width in (values.max(axis=0) - values.min(axis=0)) / 3]
    middles = (values.max(axis=0) + values.min(axis=0)) / 2
    centers = [scale * round(float(middle) / scale) for middle, scale in zip(middles, scales, strict=True)]
    return tuple(centers), tuple(scales)


@dataclass(frozen=True)
class Scaling:
    """Centers and scales of positions and values, and the scale of time.

    Time keeps its zero, which is where the initial value is.

    ```python
    import numpy as np
    from charax.models import Scaling

    scaling = Scaling.fit(np.array([[1.0], [2.0]]), np.array([0.0, 4.0]), np.array([[5.0], [7.0]]))
    assert scaling.time == 4.0 and scaling.value_center == (6.0,)
    ```
    """

    position_center: tuple[float, ...]
    """The center of every coordinate of x."""
    position_scale: tuple[float, ...]
    """The scale of every coordinate of x."""
    time: float
    """The scale of time."""
    value_center: tuple[float, ...]
    """The center of every component of u."""
    value_scale: tuple[float, ...]
    """The scale of every component of u."""

    @classmethod
    def fit(
        cls, x: Float[np.ndarray, "points d"], t: Float[np.ndarray, "points"], u: Float[np.ndarray, "values n"]
    ) -> "Scaling":
        """Compute the scaling of data, in round numbers, so that another sample of them compiles to the same program.

        Args:
            x: Positions.
            t: Times.
            u: Values; there may be another number of them.

        Returns:
            The scaling.
        """
        (position_center, position_scale), (value_center, value_scale) = _round(x), _round(u)
        return cls(position_center, position_scale, _power_of_two(float(t.max())), value_center, value_scale)

    @classmethod
    def identity(cls, d: int, n: int) -> "Scaling":
        """Build the scaling that changes nothing.

        Args:
            d: The number of space dimensions.
            n: The number of values.

        Returns:
            The scaling.
        """
        return cls((0.0,) * d, (1.0,) * d, 1.0, (0.0,) * n, (1.0,) * n)

    @property
    def dim(self) -> int:
        """The number d of space dimensions."""
        return len(self.position_center)

    @property
    def values(self) -> int:
        """The number n of values."""
        return len(self.value_center)

    def scale_position(self, x: Float[Array, "*batch d"]) -> Float[Array, "*batch d"]:
        """Convert positions from the units of the data to those of the networks.

        Args:
            x: Positions.

        Returns:
            Scaled positions.
        """
        return (x - jnp.asarray(self.position_center, x.dtype)) / jnp.asarray(self.position_scale, x.dtype)

    def unscale_position(self, x: Float[Array, "*batch d"]) -> Float[Array, "*batch d"]:
        """Invert `scale_position`.

        Args:
            x: Scaled positions.

        Returns:
            Positions.
        """
        return jnp.asarray(self.position_center, x.dtype) + jnp.asarray(self.position_scale, x.dtype) * x

    def scale_value(self, u: Float[Array, "*batch n"]) -> Float[Array, "*batch n"]:
        """Convert values from the units of the data to those of the networks.

        Args:
            u: Values.

        Returns:
            Scaled values.
        """
        return (u - jnp.asarray(self.value_center, u.dtype)) / jnp.asarray(self.value_scale, u.dtype)

    def unscale_value(self, u: Float[Array, "*batch n"]) -> Float[Array, "*batch n"]:
        """Invert `scale_value`.

        Args:
            u: Scaled values.

        Returns:
            Values.
        """
        return jnp.asarray(self.value_center, u.dtype) + jnp.asarray(self.value_scale, u.dtype) * u
