"""Every parameter of every estimator has an effect."""

from contextlib import redirect_stdout
from io import StringIO
from typing import Any, NamedTuple

import numpy as np
import pytest
from sklearn.base import BaseEstimator, clone
from sklearn.datasets import load_iris

from charax.estimators import (
    CharacteristicRegressor,
    CNODEClassifier,
    CNODERegressor,
    FlowDensity,
    FlowRegressor,
    MatchingRegressor,
)

ROWS = load_iris().data[::3]
ROWS, LENGTHS = ROWS[:, :3], ROWS[:, 3]
SMALL = {"width": 4, "solver": "euler", "steps": 1, "max_iter": 12, "random_state": 0}
ESTIMATORS = {
    "regressor": CNODERegressor(**SMALL, members=2),
    "density": FlowDensity(**SMALL, objective="likelihood"),
    "conditional density": FlowRegressor(**SMALL, members=2, rtol=None, objective="likelihood"),
    "pairs": MatchingRegressor(**SMALL),
    "characteristic": CharacteristicRegressor("node-fair", **SMALL),
}


class Change(NamedTuple):
    value: Any
    given: dict[str, Any] = {}  # noqa: RUF012
    """What else must be set for the parameter to matter."""


CHANGES = {
    "method": Change("node"),
    "characteristic_dim": Change(3),
    "width": Change(5),
    "objective": Change("matching"),
    "sharpness": Change(3.0),
    "frequencies": Change(3),
    "augment_dim": Change(3, {"method": "anode"}),
    "members": Change(3),
    "solver": Change("midpoint"),
    "steps": Change(2),
    "rtol": Change(1e-3, {"solver": "midpoint"}),
    "adjoint": Change("backsolve", {"steps": 2}),
    "learning_rate": Change(5e-2),
    "weight_decay": Change(10.0),
    "max_iter": Change(5),
    "batch_size": Change(20),
    "early_stopping": Change(False),
    "validation_fraction": Change(0.3),
    "n_iter_no_change": Change(1, {"learning_rate": 1.0}),
    "warm_start": Change(True),
    "random_state": Change(1),
    "verbose": Change(True),
}
# These need no new program. The optimizer's are tested on a small objective in test_ensemble.py, too.
FAST = {"max_iter", "early_stopping", "validation_fraction", "warm_start", "random_state", "verbose"}
CASES = [
    pytest.param(name, parameter, marks=[] if name == "regressor" and parameter in FAST else [pytest.mark.slow])
    for name, estimator in ESTIMATORS.items()
    for parameter in estimator.get_params()
]


class Observed(NamedTuple):
    predictions: list[float]
    loss_curve: list[float]
    printed: int


_OBSERVED: dict[str, Observed] = {}


def observe(estimator: BaseEstimator) -> Observed:
    """Fit once; twice with a warm start, which would otherwise repeat the first fit."""
    if (key := repr(estimator)) not in _OBSERVED:
        with redirect_stdout(StringIO()) as out:
            fitted: Any = clone(estimator).fit(ROWS, LENGTHS)
            if fitted.warm_start:
                fitted.fit(ROWS, LENGTHS)
        predict = fitted.score_samples if isinstance(fitted, FlowDensity) else fitted.predict
        _OBSERVED[key] = Observed(predict(ROWS).tolist(), fitted.loss_curve_, out.getvalue().count("validation"))
    return _OBSERVED[key]


@pytest.mark.parametrize(("name", "parameter"), CASES)
def test_parameter_has_an_effect(name, parameter):
    value, given = CHANGES[parameter]
    before = clone(ESTIMATORS[name]).set_params(**given)
    assert before.get_params()[parameter] != value
    assert observe(before) != observe(clone(before).set_params(**{parameter: value}))


def test_classifier_has_the_parameters_of_the_regressor():
    assert CNODEClassifier.__init__ is CNODERegressor.__init__
    assert CNODEClassifier._fit_rows is CNODERegressor._fit_rows


def test_max_iter_is_the_number_of_epochs_and_verbose_prints_a_line_for_each():
    regressor = clone(ESTIMATORS["regressor"])
    assert len(observe(regressor.set_params(max_iter=5)).loss_curve) == 5
    assert observe(regressor.set_params(verbose=True)).printed == 5


@pytest.mark.slow
@pytest.mark.parametrize("adjoint", ["backsolve", "direct"])
def test_adjoints_compute_nearly_the_same_gradient(adjoint):
    regressor = clone(ESTIMATORS["regressor"]).set_params(steps=2)
    expected = observe(regressor).predictions
    np.testing.assert_allclose(observe(regressor.set_params(adjoint=adjoint)).predictions, expected, rtol=1e-2)


@pytest.mark.slow
def test_dimensions_set_the_number_of_weights():
    sizes = {}
    for method, parameter in (("c-node", "characteristic_dim"), ("anode", "augment_dim"), ("node", "width")):
        for value in (2, 3):
            settings = {"method": method, parameter: value, "max_iter": 1}
            ensemble = clone(ESTIMATORS["regressor"]).set_params(**settings).fit(ROWS, LENGTHS).ensemble_
            assert len(ensemble.params) == 2
            sizes[parameter, value] = ensemble.params.shape[1]
    assert all(sizes[parameter, 3] > sizes[parameter, 2] for parameter, _ in sizes)
