"""The forecaster of series: 3-D arrays and lists, any times, calibrated intervals, and what is refused."""

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from charax.estimators import SeriesForecaster

SMALL = {"history": 5, "horizon": 3, "width": 8, "state_dim": 6, "characteristic_dim": 2, "random_state": 0}


def waves(count: int = 24, length: int = 20) -> tuple[np.ndarray, np.ndarray]:
    generator = np.random.default_rng(0)
    times = np.cumsum(generator.uniform(0.2, 0.6, (count, length)), axis=1)
    angle = times + np.arange(count)[:, None]
    return np.stack([np.sin(angle), np.cos(angle)], axis=2) + 0.05 * generator.normal(size=(count, length, 2)), times


@pytest.fixture(scope="module")
def fitted() -> SeriesForecaster:
    X, times = waves()
    return SeriesForecaster(**SMALL, max_iter=15, learning_rate=1e-2).fit(X, times=times)


def test_it_forecasts_better_than_the_last_value_and_its_intervals_cover(fitted):
    X, times = waves()
    ahead = times[:, 15:18] - times[:, 14:15]
    found = fitted.predict(X[:, :15], times[:, :15], at=ahead)
    truth, last = X[:, 15:18], X[:, 14:15]
    assert found.shape == truth.shape
    assert np.mean((found - truth) ** 2) < 0.5 * np.mean((last - truth) ** 2)
    lower, upper = fitted.predict_interval(X[:, :15], times[:, :15], at=ahead)
    assert np.mean((lower <= truth) & (truth <= upper)) > 0.85
    np.testing.assert_allclose((lower + upper) / 2, found, atol=1e-5)
    assert fitted.calibration_.shape == (2,)


def test_lists_of_arrays_missing_values_and_the_default_times(fitted):
    X, times = waves(3)
    X[1, 4, 0] = np.nan
    lists = [X[0], X[1, :7], X[2, :1]]
    clocks = [times[0], times[1, :7], times[2, :1]]
    together = fitted.predict(lists, clocks)
    assert together.shape == (3, 3, 2)
    np.testing.assert_allclose(fitted.predict([lists[1]], [clocks[1]])[0], together[1], atol=1e-5)


def test_positive_values_have_asymmetric_intervals_that_are_never_negative():
    X, times = waves(12, 12)
    fitted = SeriesForecaster(**SMALL, max_iter=2).fit(np.exp(2 * X), times=times)
    assert {each.kind for each in fitted.units_.transforms} == {"log"}
    middle = fitted.predict(np.exp(2 * X), times)
    lower, upper = fitted.predict_interval(np.exp(2 * X), times)
    assert (lower >= 0).all()
    assert (upper - middle > middle - lower).all()


def test_far_intervals_widen(fitted):
    X, times = waves(2)
    far = 9 * fitted.units_.last_time
    lower, upper = fitted.predict_interval(X, times, at=[[0.1, far]] * 2)
    assert np.isfinite(lower).all()
    assert (upper > lower).all()


def test_it_can_be_pickled_and_cloned(fitted):
    X, times = waves(4)
    again = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(again.predict(X, times), fitted.predict(X, times))
    assert clone(fitted).get_params() == fitted.get_params()
    with pytest.raises(NotFittedError):
        clone(fitted).predict(X)


@pytest.mark.parametrize(
    ("at", "words"),
    [
        ([[1.0]], "one row of times for each of the 2 series"),
        ([[1.0, 0.5]] * 2, "above 0, and increase"),
        ([[0.0]] * 2, "above 0"),
    ],
)
def test_bad_times_are_refused(fitted, at, words):
    X, times = waves(2)
    with pytest.raises(ValueError, match=words):
        fitted.predict(X, times, at=at)


def test_other_channels_and_bad_parameters_are_refused(fitted):
    with pytest.raises(ValueError, match="X has 3 channels, but SeriesForecaster was fitted with 2"):
        fitted.predict(np.zeros((1, 4, 3)))
    with pytest.raises(ValueError, match="'history' parameter"):
        SeriesForecaster(history=0).fit(waves(4)[0])
    with pytest.raises(ValueError, match="at least 4"):
        SeriesForecaster().fit(np.zeros((2, 3, 1)))


def test_series_without_any_value_to_forecast_from_are_refused(fitted):
    X = waves(2, 8)[0]
    X[1, 1:] = np.nan
    assert np.isfinite(fitted.predict(X[:, :5])).all()  # one value among the last five
    for ask in (fitted.predict, fitted.predict_interval):
        with pytest.raises(ValueError, match="Series 1 of X has no observed value among its last 5 rows"):
            ask(X)
        with pytest.raises(ValueError, match=r"Series 0 of X has no observed value.*: leave it out"):
            ask([np.full((3, 2), np.nan)])


OTHER = {
    "method": "node-fair",
    "history": 4,
    "horizon": 2,
    "width": 6,
    "state_dim": 5,
    "characteristic_dim": 3,
    "transform": "sqrt",
    "members": 2,
    "solver": "euler",
    "steps": 3,
    "learning_rate": 1e-3,
    "weight_decay": 5.0,
    "max_iter": 1,
    "batch_size": 16,
    "early_stopping": False,
    "validation_fraction": 0.3,
    "n_iter_no_change": 1,
    "random_state": 1,
    "verbose": True,
}


@pytest.mark.slow
@pytest.mark.parametrize("name", OTHER)
def test_every_parameter_has_an_effect(name, capsys):
    X, times = waves(12, 10)
    given = SMALL | {"max_iter": 3}
    if name == "n_iter_no_change":
        given |= {"learning_rate": 10.0, "max_iter": 6}
    before, after = (SeriesForecaster(**given | change).fit(X, times=times) for change in ({}, {name: OTHER[name]}))
    if name == "verbose":
        assert "epoch" in capsys.readouterr().out
    elif name == "n_iter_no_change":
        assert after.n_iter_ < before.n_iter_
    else:
        at = [[0.5, 1.0]] * len(X)
        assert np.abs(before.predict(X, times, at=at) - after.predict(X, times, at=at)).max() > 0
