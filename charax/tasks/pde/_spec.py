"""What a learned PDE must know about its data."""

from dataclasses import dataclass

import numpy as np

from charax.data import SolutionData
from charax.models import Scaling


@dataclass(frozen=True)
class PDESpec:
    """What a learned PDE must know about its data.

    ```python
    import charax

    spec = charax.PDEConfig(data="paper").load_data().spec
    assert spec.position_columns == ("x",) and spec.upper[1] <= 1  # the last time
    ```
    """

    scaling: Scaling
    """Units of x, t and u inside the networks."""
    typical_value: float
    """Mean norm of the values, in two digits, so that compiled programs are shared."""
    lower: tuple[float, ...]
    """Least value of each position and of the time."""
    upper: tuple[float, ...]
    """Largest value of each position and of the time."""
    value_range: tuple[float, float]
    """Least and largest first value."""
    position_columns: tuple[str, ...]
    """Names of the positions."""
    value_columns: tuple[str, ...]
    """Names of the values."""

    @classmethod
    def from_data(cls, loaded: SolutionData) -> "PDESpec":
        """Describe the train and the validation split.

        Args:
            loaded: The data.

        Returns:
            Their description.
        """
        seen = loaded.seen
        points = np.concatenate([seen.x, seen.t[:, None]], axis=1)
        return cls(
            scaling=Scaling.fit(*seen),
            typical_value=float(f"{np.linalg.norm(seen.u, axis=1).mean():.1e}") or 1.0,
            lower=tuple(map(float, points.min(axis=0))),
            upper=tuple(map(float, points.max(axis=0))),
            value_range=(float(seen.u[:, 0].min()), float(seen.u[:, 0].max())),
            position_columns=loaded.position_columns,
            value_columns=loaded.value_columns,
        )
