"""Between the units of the data and those in which networks learn well."""

import math
from dataclasses import asdict, dataclass
from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float


def _power_of_two(width: float) -> float:
    return 2.0 ** round(math.log2(width)) if width > 0 else 1.0


def _round(values: Float[np.ndarray, "points n"]) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Middle and spread of every column: a power of two, and a multiple of that."""
    spreads = [_power_of_two(float(width)) for width in (values.max(axis=0) - values.min(axis=0)) / 3]
    middles = (values.max(axis=0) + values.min(axis=0)) / 2
    centres = [spread * round(float(middle) / spread) for middle, spread in zip(middles, spreads, strict=True)]
    return tuple(centres), tuple(spreads)


@dataclass(frozen=True)
class Scaling:
    """Places and values in units of their spread around their middle, times in units of the longest.

    Time keeps its zero, for that is where the initial value is.

    ```python
    import numpy as np
    from charax.models import Scaling

    scaling = Scaling.of(np.array([[1.0], [2.0]]), np.array([0.0, 4.0]), np.array([[5.0], [7.0]]))
    assert scaling.time == 4.0 and scaling.value_centre == (6.0,)
    assert Scaling.from_json(scaling.to_json()) == scaling
    ```
    """

    place_centre: tuple[float, ...]
    place_spread: tuple[float, ...]
    time: float
    value_centre: tuple[float, ...]
    value_spread: tuple[float, ...]

    @classmethod
    def of(
        cls, x: Float[np.ndarray, "points d"], t: Float[np.ndarray, "points"], u: Float[np.ndarray, "values n"]
    ) -> "Scaling":
        """The scaling that suits some data, in round numbers, so that another draw compiles to the same program."""
        (places, place_spread), (values, value_spread) = _round(x), _round(u)
        return cls(places, place_spread, _power_of_two(float(t.max())), values, value_spread)

    @classmethod
    def none(cls, d: int, n: int) -> "Scaling":
        """For data that are used as they are."""
        return cls((0.0,) * d, (1.0,) * d, 1.0, (0.0,) * n, (1.0,) * n)

    @property
    def dim(self) -> int:
        """The number d of space dimensions."""
        return len(self.place_centre)

    @property
    def values(self) -> int:
        """The number n of values."""
        return len(self.value_centre)

    def place(self, x: Float[Array, "*batch d"]) -> Float[Array, "*batch d"]:
        """A place as the networks see it."""
        return (x - jnp.asarray(self.place_centre, x.dtype)) / jnp.asarray(self.place_spread, x.dtype)

    def place_back(self, x: Float[Array, "*batch d"]) -> Float[Array, "*batch d"]:
        """The inverse of `place`."""
        return jnp.asarray(self.place_centre, x.dtype) + jnp.asarray(self.place_spread, x.dtype) * x

    def value(self, u: Float[Array, "*batch n"]) -> Float[Array, "*batch n"]:
        """A value as the networks see it."""
        return (u - jnp.asarray(self.value_centre, u.dtype)) / jnp.asarray(self.value_spread, u.dtype)

    def value_back(self, u: Float[Array, "*batch n"]) -> Float[Array, "*batch n"]:
        """The inverse of `value`."""
        return jnp.asarray(self.value_centre, u.dtype) + jnp.asarray(self.value_spread, u.dtype) * u

    def to_json(self) -> dict[str, Any]:
        """Plain lists and numbers."""
        return asdict(self)

    @classmethod
    def from_json(cls, stored: dict[str, Any]) -> "Scaling":
        """The inverse of `to_json`."""
        lists = {name: tuple(part) for name, part in stored.items() if name != "time"}
        return cls(**lists, time=stored["time"])
