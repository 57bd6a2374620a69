"""The classifier of whole series: 3-D arrays and lists, times, missing values, and what is refused."""

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from charax.estimators import SeriesClassifier

SMALL = {"width": 8, "state_dim": 4, "max_iter": 25, "learning_rate": 2e-2, "random_state": 0}


def turning(count: int = 60, length: int = 8) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Circles that turn left or right at irregular times."""
    generator = np.random.default_rng(0)
    times = np.sort(generator.uniform(0, 6, (count, length)), axis=1)
    side = np.arange(count) % 2
    angle = generator.uniform(0, 6, (count, 1)) + (2 * side[:, None] - 1) * times
    return np.stack([np.cos(angle), np.sin(angle)], axis=2), np.array(["right", "left"])[side], times


@pytest.fixture(scope="module")
def fitted() -> SeriesClassifier:
    X, y, times = turning()
    return SeriesClassifier(**SMALL).fit(X, y, times)


def test_it_tells_left_turns_from_right_ones(fitted):
    X, y, times = turning()
    assert fitted.classes_.tolist() == ["left", "right"]
    assert np.mean(fitted.predict(X, times) == y) >= 0.95
    assert fitted.n_features_in_ == 2
    assert len(fitted.loss_curve_) == fitted.n_iter_ <= 25


def test_lists_of_arrays_are_the_same_as_a_padded_array(fitted):
    X, _, times = turning()
    shorter = [series[: 4 + i % 5] for i, series in enumerate(X[:10])]
    clocks = [clock[: len(series)] for clock, series in zip(times, shorter, strict=False)]
    together = fitted.predict_proba(shorter, clocks)
    alone = fitted.predict_proba([shorter[3]], [clocks[3]])
    np.testing.assert_allclose(together[3], alone[0], atol=1e-5)
    np.testing.assert_allclose(together.sum(axis=1), 1)


def test_missing_values_are_nan_and_series_may_be_longer(fitted):
    longer = np.concatenate([turning()[0][:2]] * 2, axis=1)
    longer[0, 3, 1] = np.nan
    assert np.isfinite(fitted.predict_proba(longer)).all()


def test_it_can_be_pickled_and_cloned(fitted):
    X, _, times = turning(4)
    again = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(again.predict_proba(X, times), fitted.predict_proba(X, times))
    assert clone(fitted).get_params() == fitted.get_params()
    with pytest.raises(NotFittedError):
        clone(fitted).predict(X)


OTHER = {
    "method": "gru",
    "width": 6,
    "state_dim": 5,
    "characteristic_dim": 3,
    "interpolation": "linear",
    "counts": False,
    "drop_augmentation": 0.0,
    "members": 2,
    "solver": "euler",
    "steps": 2,
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
    X, y, times = turning(30, 5)
    X[::3, 2, 0] = np.nan
    given = SMALL | {"max_iter": 3}
    if name == "characteristic_dim":
        given["method"] = "hybrid"
    if name == "max_iter":
        given["early_stopping"] = False  # else both may keep the weights of the first epoch
    if name == "n_iter_no_change":
        given |= {"learning_rate": 10.0, "max_iter": 6}
    before, after = (SeriesClassifier(**given | change).fit(X, y, times) for change in ({}, {name: OTHER[name]}))
    if name == "verbose":
        assert "epoch" in capsys.readouterr().out
    elif name == "n_iter_no_change":
        assert after.n_iter_ < before.n_iter_
    else:
        assert np.abs(before.predict_proba(X, times) - after.predict_proba(X, times)).max() > 0


@pytest.mark.parametrize(
    ("X", "times", "words"),
    [
        ([], None, "no series"),
        (np.zeros((3, 4)), None, r"Series 0 of X has the shape \(4,\)"),
        ([np.zeros((3, 2)), np.zeros((3, 1))], None, "the same number of channels"),
        ([np.full((3, 2), np.inf)], None, "infinite"),
        ([np.full((3, 1), np.nan)], None, "Channel 0 of X has no value"),
        ([np.zeros((3, 2))], [[0, 1]], "one time for each observation"),
        ([np.zeros((3, 2))], [[0, 2, 1]], "series 0 must be finite and increase"),
    ],
)
def test_bad_series_are_refused(X, times, words):
    with pytest.raises(ValueError, match=words):
        SeriesClassifier().fit(X, np.zeros(len(X)), times)


def test_other_channels_than_fitted_are_refused(fitted):
    with pytest.raises(ValueError, match="X has 3 channels, but SeriesClassifier was fitted with 2"):
        fitted.predict(np.zeros((1, 4, 3)))
