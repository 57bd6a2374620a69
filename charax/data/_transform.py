"""Transforms of positive values, so that errors are of one size at all levels."""

from dataclasses import dataclass
from types import ModuleType
from typing import Any, get_args

import numpy as np

from charax.data._names import Transform

TRANSFORMS: tuple[Transform, ...] = get_args(Transform)


@dataclass(frozen=True)
class ValueTransform:
    """An increasing map of values, odd, so that it is defined for negative values too.

    ```python
    import numpy as np
    from charax.data import ValueTransform

    transform = ValueTransform("log", 0.5)
    assert np.allclose(transform.inverse(transform.apply(np.array([-1.0, 0.0, 3.0]))), [-1, 0, 3])
    ```
    """

    kind: Transform = "identity"
    """identity: u. sqrt: √u. log: log(1 + u / offset)."""
    offset: float = 1.0
    """The value up to which a logarithm is nearly linear."""

    @classmethod
    def fit(cls, kind: Transform, values: Any) -> "ValueTransform":
        """Choose the offset: the smallest value above zero.

        Args:
            kind: The kind.
            values: Values of the training split; NaN where one is missing.

        Returns:
            The transform.
        """
        above = values[values > 0]
        return cls(kind, float(f"{above.min():.3g}") if kind == "log" and len(above) else 1.0)

    def apply(self, values: Any, xp: ModuleType = np) -> Any:
        """Transform values.

        Args:
            values: Values, in the units of the data.
            xp: `numpy`, or `jax.numpy`.

        Returns:
            The transformed values.
        """
        if self.kind == "identity":
            return values
        size = xp.abs(values)
        return xp.sign(values) * (xp.sqrt(size) if self.kind == "sqrt" else xp.log1p(size / self.offset))

    def inverse(self, values: Any, xp: ModuleType = np) -> Any:
        """Undo `apply`.

        Args:
            values: Transformed values.
            xp: `numpy`, or `jax.numpy`.

        Returns:
            Values, in the units of the data.
        """
        if self.kind == "identity":
            return values
        size = xp.abs(values)
        return xp.sign(values) * (size**2 if self.kind == "sqrt" else self.offset * xp.expm1(size))
