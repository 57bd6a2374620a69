"""The estimators pass scikit-learn's own checks."""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from charax.estimators import (
    CharacteristicRegressor,
    CNODEClassifier,
    CNODERegressor,
    FlowDensity,
    FlowRegressor,
    MatchingRegressor,
)

# The checks are about the interface, and most of their time is compilation; the examples use the default parameters.
SMALL = {"solver": "euler", "steps": 1, "max_iter": 100}


@pytest.mark.slow
@pytest.mark.filterwarnings("default")  # the checks cause warnings on purpose, and examine those that matter
@parametrize_with_checks(
    [
        CNODEClassifier(members=2, **SMALL),
        CNODERegressor(members=2, **SMALL),
        FlowDensity(**SMALL),
        FlowRegressor(members=2, rtol=None, **SMALL),
        CharacteristicRegressor(**SMALL),
        MatchingRegressor(**SMALL),
    ]
)
def test_estimator_passes_the_check(estimator, check):
    check(estimator)
