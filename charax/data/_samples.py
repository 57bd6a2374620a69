"""Samples of a solution u(x, t), and observations of time series."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float32, Int32


class SolutionSamples(NamedTuple):
    """Values of u(x, t) at scattered positions and times.

    ```python
    import numpy as np
    from charax.data import sample_problem

    samples = sample_problem("paper", 10, seed=[0])
    assert samples.take(np.arange(3)).x.shape == (3, 1)
    ```
    """

    x: Float32[np.ndarray, "points d"]
    """The positions."""
    t: Float32[np.ndarray, "points"]
    """The times."""
    u: Float32[np.ndarray, "points n"]
    """The values."""

    def take(self, rows: np.ndarray) -> "SolutionSamples":
        """Select samples.

        Args:
            rows: Their indices, or a mask.

        Returns:
            The selected samples.
        """
        return SolutionSamples(self.x[rows], self.t[rows], self.u[rows])


class Observations(NamedTuple):
    """Observed values of some series, each at a time since the start of its series.

    ```python
    import numpy as np
    from charax.data import sample_paper_series

    observations = sample_paper_series(10, (0.0, 1.0), seed=[0])
    assert observations.take(np.arange(3)).value.shape == (3, 1)
    ```
    """

    start: Float32[np.ndarray, "n values"]
    """The values with which the series starts, at t = 0."""
    t: Float32[np.ndarray, "n"]
    """The time since the start of the series."""
    context: Float32[np.ndarray, "n known"]
    """What else is known at the start of the series."""
    value: Float32[np.ndarray, "n values"]
    """The observed values."""
    series: Int32[np.ndarray, "n"]
    """The number of the series, in the order of the file."""

    def take(self, rows: np.ndarray) -> "Observations":
        """Select observations.

        Args:
            rows: Their indices, or a mask.

        Returns:
            The selected observations.
        """
        return Observations(*(part[rows] for part in self))
