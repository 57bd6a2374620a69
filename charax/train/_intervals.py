"""95% confidence intervals of metrics over a finite number of samples, and quantiles that calibrate predictions."""

import math
from collections.abc import Sequence
from statistics import NormalDist

import numpy as np
from jaxtyping import Float

_Z = NormalDist().inv_cdf(0.975)
_MIN_DEGREES = 4
"""The fewest degrees of freedom of Student's t: of fewer groups than five, those of five."""


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


def root_mean_square(scores: Float[np.ndarray, "*_"]) -> float:
    """Compute the root of the mean square.

    Args:
        scores: Numbers, of which those that are not finite are left out.

    Returns:
        The root, above 0; 1 if there are no scores.

    ```python
    import numpy as np
    from charax.train import root_mean_square

    assert root_mean_square(np.array([3.0, np.nan, 3.0])) == 3
    ```
    """
    known = scores[np.isfinite(scores)]
    return max(float(np.sqrt(np.mean(np.square(known)))), 1e-6) if len(known) else 1.0


def conformal_quantile(scores: Float[np.ndarray, "*_"], level: float, *, groups: int | None = None) -> float:
    """Compute the quantile of scores that a new score lies below with at least the given probability.

    This holds if the new score and the given ones can be exchanged, and there are at least level / (1 − level) of them.
    Scores of one group, such as the values of one series, are alike, so that those of a new group are larger more often
    than their number suggests. With `groups`, the quantile is larger by the ratio of Student's t with groups − 1
    degrees of freedom to the normal distribution.

    Args:
        scores: Scores of samples that a model was not trained on, such as |error| / (standard deviation). Those that
            are not finite are left out.
        level: The probability.
        groups: The number of groups that the scores are from, if the new score is of another group.

    Returns:
        The quantile, above 0; that of the normal distribution if there are no scores.

    ```python
    import numpy as np
    from charax.train import conformal_quantile

    assert conformal_quantile(np.arange(1.0, 100.0), 0.95) == 95.0
    assert round(conformal_quantile(np.arange(1.0, 100.0), 0.95, groups=10) / 95, 3) == 1.154
    ```
    """
    normal = NormalDist().inv_cdf(0.5 + level / 2)
    known = np.sort(scores[np.isfinite(scores)])
    if not len(known):
        return normal
    rank = min(math.ceil((len(known) + 1) * level), len(known))
    widening = 1.0
    if groups is not None:
        from scipy.special import stdtrit

        widening = float(stdtrit(max(groups - 1, _MIN_DEGREES), 0.5 + level / 2)) / normal
    return widening * max(float(known[rank - 1]), 1e-6)
