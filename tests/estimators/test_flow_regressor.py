"""Conditional densities: normalized in the units of the targets, with the mean and quantiles that belong to them."""

import copy

import numpy as np
import pytest
from scipy.stats import norm
from sklearn.base import clone

from charax.data import sample_toy
from charax.estimators import FlowDensity, FlowRegressor
from charax.estimators._quantiles import base_points_with_tails, mixture_quantiles

GENERATOR = np.random.default_rng(0)
X = GENERATOR.uniform(-1, 1, (300, 1))
Y = 100 + 20 * GENERATOR.choice([-1, 1], 300) * X[:, 0] + 2 * GENERATOR.normal(size=300)
ASKED = np.array([[-0.9], [0.0], [0.9]])


@pytest.fixture(scope="module")
def fitted() -> FlowRegressor:
    """A few epochs: what is tested holds for any weights, but not for those before training alone."""
    settings = {"width": 16, "frequencies": 4, "members": 2, "solver": "midpoint", "steps": 24, "rtol": None}
    return FlowRegressor("node", **settings, batch_size=64, max_iter=40, learning_rate=1e-2, random_state=0).fit(X, Y)


@pytest.fixture(scope="module")
def density(fitted) -> tuple[np.ndarray, np.ndarray]:
    """Targets, and their density for each of the rows that are asked for."""
    y = np.linspace(20, 180, 801)
    return y, np.stack([np.exp(fitted.log_prob(np.full((801, 1), x), y)) for x in ASKED[:, 0]])


def test_densities_integrate_to_one_in_the_units_of_the_targets(density):
    y, values = density
    np.testing.assert_allclose(values.sum(1) * (y[1] - y[0]), 1, atol=0.01)


def test_predictions_are_the_means_of_the_densities(fitted, density):
    y, values = density
    np.testing.assert_allclose(fitted.predict(ASKED), values @ y * (y[1] - y[0]), atol=0.5)


def test_quantiles_have_their_probabilities_under_the_densities(fitted, density):
    y, values = density
    probabilities = np.array([0.1, 0.25, 0.5, 0.75, 0.9])
    quantiles = fitted.predict_quantiles(ASKED, probabilities)
    assert quantiles.shape == (3, 5)
    assert (np.diff(quantiles) > 0).all()
    cumulative = np.cumsum(values, axis=1) * (y[1] - y[0])
    found = np.stack([np.interp(row, y, each) for row, each in zip(quantiles, cumulative, strict=True)])
    np.testing.assert_allclose(found, np.broadcast_to(probabilities, (3, 5)), atol=0.03)


@pytest.mark.parametrize("probability", [1e-6, 1 / 256, 1 / 64])
def test_quantiles_in_the_tails_have_their_probabilities_under_the_densities(fitted, probability):
    lower, upper = fitted.predict_quantiles(ASKED, [probability, 1 - probability]).T
    for x, low, high in zip(ASKED[:, 0], lower, upper, strict=True):
        for outwards in (low - np.linspace(0, 100, 2_001), high + np.linspace(0, 100, 2_001)):
            beyond = np.exp(fitted.log_prob(np.full((2_001, 1), x), outwards)).sum() * 0.05
            assert beyond == pytest.approx(probability, rel=0.25)


def test_quantiles_of_a_mixture_are_those_of_its_distribution():
    means, deviations = np.array([[0.0], [-3.0]]), np.array([[0.5], [2.0]])
    z = base_points_with_tails(64, 1e-8)[:, 0]
    probabilities = np.array([1e-8, 1e-3, 0.3, 0.5, 0.9, 1 - 1e-8])
    (found,) = mixture_quantiles((means + deviations * z)[:, None], z, probabilities)
    smaller = np.where(probabilities < 0.5, norm.cdf(found, means, deviations), norm.sf(found, means, deviations))
    np.testing.assert_allclose(smaller.mean(axis=0), np.minimum(probabilities, 1 - probabilities), rtol=0.02)


def test_samples_have_the_quantiles(fitted):
    samples = fitted.sample(ASKED, 2_000, random_state=0)
    assert samples.shape == (3, 2_000)
    expected = fitted.predict_quantiles(ASKED, [0.25, 0.5, 0.75])
    spread = samples.std(axis=1, keepdims=True)
    np.testing.assert_allclose(np.quantile(samples, [0.25, 0.5, 0.75], axis=1).T / spread, expected / spread, atol=0.25)
    np.testing.assert_array_equal(fitted.sample(ASKED, 3, random_state=1), fitted.sample(ASKED, 3, random_state=1))
    assert not np.allclose(fitted.sample(ASKED, 3, random_state=1), fitted.sample(ASKED, 3, random_state=2))


def test_samples_are_those_of_the_members_that_were_fitted(fitted):
    other = copy.deepcopy(fitted).set_params(members=5)
    np.testing.assert_array_equal(other.sample(ASKED, 3, random_state=1), fitted.sample(ASKED, 3, random_state=1))


def test_features_beyond_20_standard_deviations_count_as_20(fitted):
    """So that a code for a missing value does not take thousands of steps."""
    mean, deviation = fitted.input_scale_.mean[0], fitted.input_scale_.std[0]
    far, limit = np.array([[1e6], [-999_999.0]]), mean + deviation * np.array([[20.0], [-20.0]])
    np.testing.assert_allclose(fitted.predict(far), fitted.predict(limit), rtol=1e-5)
    np.testing.assert_allclose(fitted.log_prob(far, [100.0, 100.0]), fitted.log_prob(limit, [100.0, 100.0]), rtol=1e-5)


def test_the_features_tell_more_than_a_normal_distribution_of_all_targets(fitted):
    assert fitted.score(X, Y) > np.mean(-0.5 * ((Y - Y.mean()) / Y.std()) ** 2) - np.log(Y.std() * np.sqrt(2 * np.pi))


@pytest.mark.slow
def test_matching_learns_two_branches():
    """At x = 0.9 the targets are near 82 or 118 and never at 100, their mean."""
    fitted = FlowRegressor(members=1, random_state=0).fit(X, Y)
    low, mean, high = fitted.log_prob(np.full((3, 1), 0.9), np.array([82.0, 100.0, 118.0]))
    assert min(low, high) > mean + 1


@pytest.mark.parametrize("kind", [FlowRegressor, FlowDensity])
def test_the_patience_of_matching_counts_steps_where_an_epoch_has_few(kind):
    """The log-likelihood of the averaged weights may fall for a few hundred steps before it rises."""
    patience = lambda steps, **settings: kind(**settings)._patience(steps)
    few, many = patience(1, objective="matching"), patience(1_000, objective="matching")
    assert (few, patience(5, objective="matching")) == (500, 100)
    assert many == patience(1, objective="likelihood") < 50
    assert patience(1, objective="matching", n_iter_no_change=3) == 3


def test_the_sharpness_of_a_density_is_chosen_by_its_validation_rows():
    rows = sample_toy("eight-gaussians", 500, seed=0)
    small = FlowDensity(width=8, solver="euler", steps=2, max_iter=8, learning_rate=2e-2, random_state=0)
    fitted = {sharpness: clone(small).set_params(sharpness=sharpness).fit(rows) for sharpness in (1.0, 2.0, 4.0)}
    least = min(fitted, key=lambda sharpness: fitted[sharpness].best_loss_)
    assert least != 1.0
    assert small.sharpness == "auto"
    chosen = clone(small).fit(rows)
    assert (chosen.sharpness_, chosen.best_loss_) == (least, fitted[least].best_loss_)
    np.testing.assert_array_equal(chosen.score_samples(rows[:5]), fitted[least].score_samples(rows[:5]))
    again = clone(chosen).set_params(warm_start=True, max_iter=1).fit(rows).fit(rows)
    assert len(again.loss_curve_) == 1
    # Fewer than 50 validation rows, or none, do not choose.
    few, none = clone(small).fit(rows[:490]), clone(small).set_params(early_stopping=False).fit(rows)
    assert (few.sharpness_, none.sharpness_) == (1, 1)


def test_short_epochs_of_matching_are_evaluated_several_at_a_time():
    """40 rows are 36 to train on and 2 steps: 30 epochs have as many steps as an evaluation is worth."""
    X, y = np.random.default_rng(0).normal(size=(2, 40, 1))
    small = FlowRegressor(members=1, width=4, frequencies=2, batch_size=18, random_state=0)
    matched = clone(small).set_params(max_iter=65).fit(X, y[:, 0])
    assert (len(matched.loss_curve_), matched.n_iter_) == (2, 60)
    few = clone(small).set_params(max_iter=7).fit(X, y[:, 0])
    assert (len(few.loss_curve_), few.n_iter_) == (1, 7)
    likely = clone(small).set_params(max_iter=3, objective="likelihood", rtol=None, steps=2).fit(X, y[:, 0])
    assert (len(likely.loss_curve_), likely.n_iter_) == (3, 3)


def test_the_score_is_the_mean_log_density(fitted):
    assert fitted.score(X[:20], Y[:20]) == pytest.approx(fitted.log_prob(X[:20], Y[:20]).mean())
    weights = np.arange(20)
    expected = np.average(fitted.log_prob(X[:20], Y[:20]), weights=weights)
    assert fitted.score(X[:20], Y[:20], sample_weight=weights) == pytest.approx(expected)


def test_bad_questions_are_answered_with_a_sentence(fitted):
    with pytest.raises(ValueError, match="quantiles must be numbers between 0 and 1"):
        fitted.predict_quantiles(ASKED, [0.5, 1.0])
    with pytest.raises(ValueError, match="y must have 3 rows of 1 targets"):
        fitted.log_prob(ASKED, Y[:2])
    with pytest.raises(ValueError, match="y must be finite numbers; row 1 has nan"):
        fitted.log_prob(ASKED, [100.0, np.nan, 100.0])
    for y in (None, 100.0):
        with pytest.raises(ValueError, match=r"y must have 3 rows of 1 targets, like X; got the shape \(\)"):
            fitted.score(ASKED, y)
    with pytest.raises(ValueError, match="Sample weights must contain at least one non-zero number"):
        fitted.score(ASKED, np.full(3, 100.0), sample_weight=np.zeros(3))
    with pytest.raises(ValueError, match="Negative values in data passed to `sample_weight`"):
        fitted.score(ASKED, np.full(3, 100.0), sample_weight=[1, -1, 1])
    with pytest.raises(ValueError, match="n_samples must be at least 1"):
        fitted.sample(ASKED, 0)


@pytest.mark.slow
def test_several_targets_have_a_joint_density():
    targets = np.column_stack([X[:, 0], -X[:, 0]]) + 0.3 * GENERATOR.normal(size=(300, 1))
    targets += 0.05 * GENERATOR.normal(size=(300, 2))
    both = FlowRegressor(members=1, width=32, max_iter=100, random_state=0).fit(X, targets)
    assert both.predict(ASKED).shape == (3, 2)
    assert both.predict_quantiles(ASKED, [0.5]).shape == (3, 1, 2)
    with pytest.raises(ValueError, match=r"quantiles of 2 targets must be at least 0\.0078"):
        both.predict_quantiles(ASKED, [1e-3])
    samples = both.sample(ASKED[:1], 1_000, random_state=0)[0]
    assert np.corrcoef(samples.T)[0, 1] > 0.9  # the common noise
    alone = sum(
        FlowRegressor(members=1, width=32, max_iter=100, random_state=0).fit(X, y).score(X, y) for y in targets.T
    )
    assert both.score(X, targets) > alone + 0.5
