"""What users of scikit-learn expect of an estimator."""

from typing import Any, NamedTuple

import jax.numpy as jnp
import joblib
import numpy as np
import pytest
from sklearn.base import BaseEstimator, clone
from sklearn.datasets import load_iris
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from charax.estimators import CharacteristicRegressor, CNODEClassifier, CNODERegressor, FlowDensity

ROWS, LABELS = load_iris(return_X_y=True)
ROWS, LABELS = ROWS[::3], LABELS[::3]
ROWS, LENGTHS = ROWS[:, :3], ROWS[:, 3]
# The claims are about any solver, and one Euler step compiles in half the time of the defaults.
SMALL = {"width": 4, "solver": "euler", "steps": 1, "max_iter": 12, "random_state": 0}
FEW = {**SMALL, "members": 2}
ESTIMATORS = {
    "classifier": (CNODEClassifier(**FEW), LABELS),
    "regressor": (CNODERegressor(**FEW), LENGTHS),
    "density": (FlowDensity(**SMALL), None),
    "characteristic": (CharacteristicRegressor(**SMALL), LENGTHS),
}
SLOW = {"density", "characteristic"}  # a trace and a root finder take long to compile


def mark_slow(names: set[str]) -> list[Any]:
    return [pytest.param(name, marks=[pytest.mark.slow] if name in names else []) for name in ESTIMATORS]


class Case(NamedTuple):
    fitted: Any
    y: np.ndarray | None

    def new(self, **params: Any) -> Any:
        return clone(self.fitted).set_params(**params)


@pytest.fixture(scope="module", params=mark_slow(SLOW))
def case(request: pytest.FixtureRequest) -> Case:
    estimator, y = ESTIMATORS[request.param]
    return Case(clone(estimator).fit(ROWS, y), y)


@pytest.fixture(scope="module")
def classifier() -> CNODEClassifier:
    return CNODEClassifier(**FEW).fit(ROWS, LABELS)


def predictions(estimator: BaseEstimator, X: Any = ROWS) -> list[np.ndarray]:
    names = ("predict_proba", "predict", "score_samples", "transform")
    return [getattr(estimator, name)(X) for name in names if hasattr(estimator, name)]


def are_equal(these: list[np.ndarray], those: list[np.ndarray]) -> bool:
    return all(np.array_equal(this, that) for this, that in zip(these, those, strict=True))


def test_same_random_state_gives_the_same_predictions_after_cloning_and_pickling(case, tmp_path):
    joblib.dump(case.fitted, tmp_path / "estimator")
    expected = predictions(case.fitted)
    assert are_equal(expected, predictions(joblib.load(tmp_path / "estimator")))
    assert are_equal(expected, predictions(case.new().fit(ROWS, case.y)))
    assert not are_equal(expected, predictions(case.new(random_state=1).fit(ROWS, case.y)))


def test_weight_counts_like_repetition_and_order_does_not_matter(case):
    weights = np.random.default_rng(0).integers(0, 3, len(ROWS))
    repeated = np.random.default_rng(1).permutation(np.repeat(np.arange(len(ROWS)), weights))
    weighted = predictions(case.new().fit(ROWS, case.y, sample_weight=weights))
    y = None if case.y is None else case.y[repeated]
    assert are_equal(weighted, predictions(case.new().fit(ROWS[repeated], y)))
    assert not are_equal(weighted, predictions(case.fitted))


# A learning rate of its own is a program of its own.
@pytest.mark.parametrize("case", mark_slow({*SLOW, "regressor"}), indirect=True)
def test_diverging_training_warns_and_leaves_usable_weights(case):
    diverging = case.new(learning_rate=1e30, early_stopping=False)
    with pytest.warns(ConvergenceWarning, match="diverged"):
        diverging.fit(ROWS, case.y)
    assert all(np.isfinite(values).all() for values in predictions(diverging))


def test_warm_start_continues_from_the_last_fit(case):
    warm = case.new(warm_start=True, n_iter_no_change=12).fit(ROWS, case.y)
    first = warm.best_loss_
    warm.fit(ROWS, case.y)
    assert warm.best_loss_ < first
    with pytest.raises(ValueError, match="warm_start"):
        warm.set_params(width=5).fit(ROWS, case.y)


def test_text_labels_are_predicted(classifier):
    names = np.array(["setosa", "versicolor", "virginica"])[LABELS]
    of_names = clone(classifier).fit(ROWS, names)
    assert of_names.classes_.tolist() == ["setosa", "versicolor", "virginica"]
    assert set(of_names.predict(ROWS)) <= set(names)
    assert are_equal([of_names.predict_proba(ROWS)], [classifier.predict_proba(ROWS)])


def test_classifier_learns_iris(classifier):
    assert cross_val_score(clone(classifier).set_params(max_iter=100), ROWS, LABELS, cv=2).mean() > 0.8


@pytest.mark.slow
def test_grid_search_over_method_and_characteristic_dim_in_a_pipeline(classifier):
    grid = {"cnodeclassifier__method": ["c-node", "anode"], "cnodeclassifier__characteristic_dim": [1, 2]}
    pipeline = make_pipeline(StandardScaler(), clone(classifier))
    search = GridSearchCV(pipeline, grid, cv=2, error_score="raise").fit(ROWS, LABELS)
    assert len(search.cv_results_["params"]) == 4
    assert search.best_estimator_[-1].get_params()["method"] == search.best_params_["cnodeclassifier__method"]


@pytest.mark.slow
def test_several_outputs_are_learned_at_once():
    both = np.column_stack([LENGTHS, -2 * LENGTHS])
    regressor = CNODERegressor(**FEW).set_params(max_iter=100).fit(ROWS, both)
    assert regressor.predict(ROWS).shape == both.shape
    assert regressor.score(ROWS, both) > 0.8


def test_feature_names_are_kept_and_checked():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(ROWS, columns=["length", "width", "petal"])
    density = FlowDensity("node", **SMALL).fit(frame)
    assert density.feature_names_in_.tolist() == ["length", "width", "petal"]
    mapped = density.set_output(transform="pandas").transform(frame)
    assert mapped.columns.tolist() == ["flowdensity0", "flowdensity1", "flowdensity2"]
    with pytest.raises(ValueError, match="feature names should match"):
        density.transform(frame[["width", "length", "petal"]])


@pytest.mark.slow
def test_early_stopping_ends_before_max_iter_and_verbose_prints_every_epoch(classifier, capsys):
    settings = {"learning_rate": 1.0, "n_iter_no_change": 2}
    stopped = clone(classifier).set_params(**settings, verbose=True).fit(ROWS, LABELS)
    assert 2 < stopped.n_iter_ < 12
    assert capsys.readouterr().out.count("validation") == stopped.n_iter_
    assert clone(classifier).set_params(**settings, early_stopping=False).fit(ROWS, LABELS).n_iter_ == 12


@pytest.mark.parametrize("estimator", [estimator for estimator, _ in ESTIMATORS.values()], ids=ESTIMATORS)
def test_estimator_that_is_not_fitted_raises(estimator):
    with pytest.raises(NotFittedError):
        predictions(clone(estimator))


def test_invalid_input_is_refused_as_in_scikit_learn():
    with pytest.raises(ValueError, match="The 'method' parameter of CNODEClassifier must be a str among"):
        CNODEClassifier(method="resnet").fit(ROWS, LABELS)
    with pytest.raises(ValueError, match="The 'rtol' parameter needs a solver with an error estimate"):
        CNODERegressor(solver="euler", rtol=1e-3).fit(ROWS, LENGTHS)
    with pytest.raises(ValueError, match="Input X contains NaN"):
        CNODERegressor().fit([[np.nan], [1.0]], [1.0, 2.0])
    with pytest.raises(ValueError, match="minimum of 2 is required"):
        CharacteristicRegressor().fit([[1.0], [2.0]], [1.0, 2.0])
    with pytest.raises(ValueError, match="Unknown label type"):
        CNODEClassifier().fit(ROWS, LENGTHS + 0.01)


@pytest.mark.slow
def test_density_integrates_to_one_in_the_units_of_the_data():
    X = np.random.default_rng(0).normal(5.0, 3.0, (60, 1))
    density = FlowDensity(width=4, max_iter=12, random_state=0).fit(X)
    grid = np.linspace(-25, 35, 2_001)[:, None]
    assert abs(np.trapezoid(np.exp(density.score_samples(grid)), grid[:, 0]) - 1) < 0.01
    assert abs(density.sample(2_000, random_state=0).mean() - X.mean()) < 1


@pytest.mark.slow
def test_prediction_with_adaptive_steps_does_not_depend_on_the_other_rows():
    settings = {**FEW, "solver": "midpoint", "rtol": 1e-2, "max_iter": 2}
    regressor = CNODERegressor(**settings).fit(ROWS, LENGTHS)
    one_by_one = np.concatenate([regressor.predict(row[None]) for row in ROWS[:5]])
    np.testing.assert_allclose(regressor.predict(ROWS)[:5], one_by_one, rtol=1e-6)


@pytest.mark.slow
def test_a_learned_equation_is_a_problem_in_the_units_of_the_data():
    random = np.random.default_rng(0)
    X = np.stack([random.uniform(0, 30, 200), random.uniform(5, 9, 200)], axis=1)  # a wave that moves at speed 2
    u = 50 + 20 * np.sin((X[:, 0] - 2 * X[:, 1]) / 5)
    regressor = CharacteristicRegressor("equation", max_iter=300, random_state=0).fit(X, u)
    problem = regressor.problem_
    assert problem.domain == regressor.domain_
    x, t, values = jnp.full((3, 1), 15.0), jnp.full(3, 2.0), jnp.array([40.0, 50.0, 60.0])
    np.testing.assert_allclose(problem.velocity(x, t, values)[:, 0], 2, atol=0.1)
    np.testing.assert_allclose(problem.source(x, t, values), 0, atol=1)
    with pytest.raises(AttributeError, match="learns no equation"):
        _ = CharacteristicRegressor("node-fair", max_iter=1, random_state=0).fit(X, u).problem_
