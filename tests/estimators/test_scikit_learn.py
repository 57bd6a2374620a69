"""The estimators pass scikit-learn's own checks."""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from charax.estimators import CharacteristicRegressor, CNODEClassifier, CNODERegressor, FlowDensity


@pytest.mark.slow
@pytest.mark.filterwarnings("default")  # the checks cause warnings on purpose, and examine those that matter
@parametrize_with_checks([CNODEClassifier(), CNODERegressor(), FlowDensity(), CharacteristicRegressor()])
def test_estimator_passes_the_check(estimator, check):
    check(estimator)
