"""How much of what a model has learned is added to the linear forecasts that it begins with."""

import math
from collections.abc import Mapping

import numpy as np
from jaxtyping import Float, Int

_FEW_SERIES = 5
"""Of fewer series than this, errors of whole series do not tell whether a difference is chance."""
_SIGNIFICANT = 2.0
"""Standard errors by which a correction must lower the error to be more than chance."""


def choose_correction(
    errors: Mapping[float, Float[np.ndarray, "windows horizon values"]], series: Int[np.ndarray, "windows"]
) -> float:
    """Choose how much of what was learned to add to the linear forecasts.

    Args:
        errors: The squared errors for several fractions of the correction, 0 among them; NaN where a value is missing.
        series: The series of each window.

    Returns:
        The fraction with the least mean error; 0 unless that is less than without a correction by two standard errors
        over the series, if there are enough of them to tell.

    ```python
    import numpy as np
    from charax.tasks.forecast import choose_correction

    errors = {0.0: np.ones((8, 1, 1)), 1.0: np.full((8, 1, 1), 0.5)}
    assert choose_correction(errors, np.arange(8)) == 1
    ```
    """
    best = min(errors, key=lambda kept: float(np.nanmean(errors[kept])))
    gain = errors[0.0] - errors[best]
    each = np.array(
        [np.nanmean(gain[series == one]) for one in np.unique(series) if np.isfinite(gain[series == one]).any()]
    )
    if len(each) < _FEW_SERIES or each.mean() > _SIGNIFICANT * each.std(ddof=1) / math.sqrt(len(each)):
        return best
    return 0.0
