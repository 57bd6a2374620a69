"""The paper's time series: a PDE's solution, observed at positions that are not known."""

from collections.abc import Sequence

import numpy as np

from charax.data._samples import Observations

PAPER_SERIES = "paper"
"""The name of the paper's time series, for `load_series`."""


def sample_paper_series(
    points: int, between: tuple[float, float], *, seed: Sequence[int], noise: float = 0.0
) -> Observations:
    """Sample the paper's time series: u(x, t) at random times and hidden positions x in [1, 2], starting from u(1, 0).

    Args:
        points: The number of observations.
        between: The first and the last time.
        seed: Seed of the random numbers.
        noise: Standard deviation of the Gaussian noise that is added to the values.

    Returns:
        The observations.

    ```python
    from charax.data import sample_paper_series

    later = sample_paper_series(100, (2.0, 3.0), seed=[0])
    assert later.t.min() >= 2 and abs(later.start - 2 / 3).max() < 1e-6
    ```
    """
    random = np.random.default_rng(seed)
    t, x = random.uniform(*between, points), random.uniform(1, 2, points)
    u = 2 * x * np.exp(t) / (2 * np.exp(t) + 1) + noise * random.normal(size=points)
    column = lambda values: values.astype(np.float32)[:, None]
    return Observations(
        start=column(np.full(points, 2 / 3)),
        t=t.astype(np.float32),
        context=np.zeros((points, 0), np.float32),
        value=column(u),
        series=np.zeros(points, np.int32),
    )
