"""What a model's fit is worth beside its size."""

import math
from collections.abc import Mapping, Sequence
from typing import Any, Literal

Criterion = Literal["validation", "aic", "bic"]

_MEASURES: Mapping[Criterion, tuple[str, bool]] = {
    "validation": ("validation_mean", True),
    "aic": ("aic", False),
    "bic": ("bic", False),
}
"""The number that each criterion looks at, and whether more of it is better."""


def aic(loss: float, *, samples: int, parameters: int) -> float:
    """Akaike's criterion, 2p − 2 log L, where `loss` is the mean negative log-likelihood of the training samples.

    Every trained number counts as a parameter, and every training sample as one observation.

    ```python
    from charax.select import aic

    assert aic(0.5, samples=100, parameters=7) == 2 * 7 + 100
    ```
    """
    return 2 * parameters + 2 * samples * loss


def bic(loss: float, *, samples: int, parameters: int) -> float:
    """Schwarz's criterion, p log n − 2 log L; counted as in `aic`.

    ```python
    from charax.select import aic, bic

    assert bic(0.5, samples=100, parameters=7) > aic(0.5, samples=100, parameters=7)  # as soon as n is above 7
    ```
    """
    return math.log(samples) * parameters + 2 * samples * loss


def pick(rows: Sequence[Mapping[str, Any]]) -> dict[Criterion, int]:
    """The k that each criterion picks; of equal ones the smallest.

    ```python
    from charax.select import pick

    small, large = {"validation_mean": 0.9, "aic": 5.0, "bic": 6.0}, {"validation_mean": 0.95, "aic": 5.5, "bic": 9.0}
    assert pick([{"k": 1, **small}, {"k": 2, **large}]) == {"validation": 2, "aic": 1, "bic": 1}
    ```
    """
    ordered = sorted(rows, key=lambda row: row["k"])
    return {
        criterion: (max if more else min)(ordered, key=lambda row, name=name: row[name])["k"]
        for criterion, (name, more) in _MEASURES.items()
    }
