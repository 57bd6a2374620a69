"""Criteria that weigh the fit of a model against its size."""

import math
from collections.abc import Mapping, Sequence
from typing import Any, Literal

Criterion = Literal["validation", "aic", "bic"]
"""What k is picked by: the accuracy on validation data, Akaike's or the Bayesian information criterion."""

_MEASURES: Mapping[Criterion, tuple[str, bool]] = {
    "validation": ("validation_mean", True),
    "aic": ("aic", False),
    "bic": ("bic", False),
}
"""The key that each criterion compares, and whether larger is better."""


def aic(loss: float, *, samples: int, parameters: int) -> float:
    """Compute Akaike's information criterion, 2p − 2 log L.

    Args:
        loss: Mean negative log-likelihood of the training samples.
        samples: Number of training samples, each of which is one observation.
        parameters: Number p of trained parameters.

    Returns:
        The criterion; smaller is better.

    ```python
    from charax.select import aic

    assert aic(0.5, samples=100, parameters=7) == 2 * 7 + 100
    ```
    """
    return 2 * parameters + 2 * samples * loss


def bic(loss: float, *, samples: int, parameters: int) -> float:
    """Compute Schwarz's Bayesian information criterion, p log n − 2 log L.

    Args:
        loss: Mean negative log-likelihood of the training samples.
        samples: Number n of training samples.
        parameters: Number p of trained parameters.

    Returns:
        The criterion; smaller is better.

    ```python
    from charax.select import aic, bic

    assert bic(0.5, samples=100, parameters=7) > aic(0.5, samples=100, parameters=7)  # as soon as n is above 7
    ```
    """
    return math.log(samples) * parameters + 2 * samples * loss


def pick(rows: Sequence[Mapping[str, Any]]) -> dict[Criterion, int]:
    """Pick a k by each criterion; of equal ones the smallest.

    Args:
        rows: Rows with `k`, `validation_mean`, `aic` and `bic`.

    Returns:
        The k that each criterion picks.

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
