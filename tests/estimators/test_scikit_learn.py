"""The estimators follow scikit-learn's rules, by scikit-learn's own account."""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from charax.estimators import CharacteristicRegressor, CNODEClassifier, CNODERegressor, FlowDensity


@pytest.mark.slow
@pytest.mark.filterwarnings("default")  # the checks provoke warnings, and look at those that matter
@parametrize_with_checks([CNODEClassifier(), CNODERegressor(), FlowDensity(), CharacteristicRegressor()])
def test_estimator_keeps_to_the_rules(estimator, check):
    check(estimator)
