"""95% confidence intervals of metrics over a finite number of samples."""

import math
from collections.abc import Sequence
from statistics import NormalDist

import numpy as np

_Z = NormalDist().inv_cdf(0.975)


def proportion_interval(successes: int, count: int) -> tuple[float, float] | None:
    """Compute Wilson's 95% confidence interval of a proportion.

    Args:
        successes: How many.
        count: Of how many.

    Returns:
        The lower and the upper end, or None if there are none to count.

    ```python
    from charax.train import proportion_interval

    low, high = proportion_interval(9, 10)
    assert 0.59 < low < 0.60 and 0.98 < high < 0.99
    ```
    """
    if not count:
        return None
    p, z2 = successes / count, _Z**2 / count
    centre = (p + z2 / 2) / (1 + z2)
    half = _Z * math.sqrt(p * (1 - p) / count + z2 / (4 * count)) / (1 + z2)
    return max(0.0, centre - half), min(1.0, centre + half)


def rmse_interval(squared_errors: Sequence[float] | np.ndarray) -> tuple[float, float] | None:
    """Compute a 95% confidence interval of a root mean squared error, from the normal interval of its square.

    Args:
        squared_errors: The squared error of every sample.

    Returns:
        The lower and the upper end, or None for fewer than two samples.

    ```python
    from charax.train import rmse_interval

    low, high = rmse_interval([1.0, 4.0, 1.0, 4.0])
    assert low < 2.5**0.5 < high
    ```
    """
    values = np.asarray(squared_errors, np.float64)
    if len(values) < 2:
        return None
    mean, half = values.mean(), _Z * values.std(ddof=1) / math.sqrt(len(values))
    return math.sqrt(max(mean - half, 0.0)), math.sqrt(mean + half)
