"""What users of scikit-learn expect of an estimator."""

import joblib
import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from charax.estimators import CharacteristicRegressor, CNODEClassifier, CNODERegressor, FlowDensity

ROWS, LABELS = load_iris(return_X_y=True)
ROWS, LABELS = ROWS[::3], LABELS[::3]
ROWS, LENGTHS = ROWS[:, :3], ROWS[:, 3]
SMALL = {"width": 4, "max_iter": 12, "random_state": 0}
FEW = {**SMALL, "members": 2}
ESTIMATORS = {
    "classifier": (CNODEClassifier(**FEW), LABELS),
    "regressor": (CNODERegressor(**FEW), LENGTHS),
    "density": (FlowDensity(steps=2, **SMALL), None),
    "characteristic": (CharacteristicRegressor(steps=2, **SMALL), LENGTHS),
}
# A trace and a root finder take long to compile.
CASES = [
    pytest.param(*case, id=name, marks=[pytest.mark.slow] if name in ("characteristic", "density") else [])
    for name, case in ESTIMATORS.items()
]


def ask(estimator, X=ROWS):
    """Everything that a fitted estimator says about rows."""
    names = ("predict_proba", "predict", "score_samples", "transform")
    return [getattr(estimator, name)(X) for name in names if hasattr(estimator, name)]


def agree(these, those):
    return all(np.array_equal(this, that) for this, that in zip(these, those, strict=True))


@pytest.mark.parametrize(("estimator", "y"), CASES)
def test_same_random_state_gives_the_same_answers_after_cloning_and_pickling(estimator, y, tmp_path):
    fitted = clone(estimator).fit(ROWS, y)
    joblib.dump(fitted, tmp_path / "estimator")
    assert agree(ask(fitted), ask(joblib.load(tmp_path / "estimator")))
    assert agree(ask(fitted), ask(clone(fitted).fit(ROWS, y)))
    assert not agree(ask(fitted), ask(clone(fitted).set_params(random_state=1).fit(ROWS, y)))


@pytest.mark.parametrize(("estimator", "y"), CASES)
def test_weight_counts_like_repetition_and_order_does_not_matter(estimator, y):
    weights = np.random.default_rng(0).integers(0, 3, len(ROWS))
    again = np.random.default_rng(1).permutation(np.repeat(np.arange(len(ROWS)), weights))
    weighted = clone(estimator).fit(ROWS, y, sample_weight=weights)
    repeated = clone(estimator).fit(ROWS[again], None if y is None else y[again])
    assert agree(ask(weighted), ask(repeated))
    assert not agree(ask(weighted), ask(clone(estimator).fit(ROWS, y)))


@pytest.mark.parametrize(("estimator", "y"), CASES)
def test_training_that_diverges_warns_and_leaves_weights_that_work(estimator, y):
    wild = clone(estimator).set_params(learning_rate=1e30, early_stopping=False)
    with pytest.warns(ConvergenceWarning, match="diverged"):
        wild.fit(ROWS, y)
    assert all(np.isfinite(answer).all() for answer in ask(wild))


@pytest.mark.parametrize(("estimator", "y"), CASES)
def test_warm_start_goes_on_where_the_last_fit_ended(estimator, y):
    warm = clone(estimator).set_params(warm_start=True, n_iter_no_change=12).fit(ROWS, y)
    first = warm.best_loss_
    warm.fit(ROWS, y)
    assert warm.best_loss_ < first
    with pytest.raises(ValueError, match="warm_start"):
        warm.set_params(width=5).fit(ROWS, y)


def test_text_labels_are_what_is_predicted():
    names = np.array(["setosa", "versicolor", "virginica"])[LABELS]
    classifier = CNODEClassifier(**FEW).fit(ROWS, names)
    assert classifier.classes_.tolist() == ["setosa", "versicolor", "virginica"]
    assert set(classifier.predict(ROWS)) <= set(names)
    assert agree([classifier.predict_proba(ROWS)], [CNODEClassifier(**FEW).fit(ROWS, LABELS).predict_proba(ROWS)])


def test_classifier_learns_iris():
    scores = cross_val_score(CNODEClassifier(**FEW).set_params(max_iter=100), ROWS, LABELS, cv=2)
    assert scores.mean() > 0.8


@pytest.mark.slow
def test_grid_search_over_method_and_characteristic_dim_in_a_pipeline():
    grid = {"cnodeclassifier__method": ["c-node", "anode"], "cnodeclassifier__characteristic_dim": [1, 2]}
    pipeline = make_pipeline(StandardScaler(), CNODEClassifier(**FEW))
    search = GridSearchCV(pipeline, grid, cv=2, error_score="raise").fit(ROWS, LABELS)
    assert len(search.cv_results_["params"]) == 4
    assert search.best_estimator_[-1].get_params()["method"] == search.best_params_["cnodeclassifier__method"]


@pytest.mark.slow
def test_several_values_are_learned_at_once():
    both = np.column_stack([LENGTHS, -2 * LENGTHS])
    regressor = CNODERegressor(**FEW).set_params(max_iter=100).fit(ROWS, both)
    assert regressor.predict(ROWS).shape == both.shape
    assert regressor.score(ROWS, both) > 0.8


def test_names_of_columns_are_kept_and_asked_for():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(ROWS, columns=["length", "width", "petal"])
    density = FlowDensity(steps=2, **SMALL).fit(frame)
    assert density.feature_names_in_.tolist() == ["length", "width", "petal"]
    carried = density.set_output(transform="pandas").transform(frame)
    assert carried.columns.tolist() == ["flowdensity0", "flowdensity1", "flowdensity2"]
    with pytest.raises(ValueError, match="feature names should match"):
        density.transform(frame[["width", "length", "petal"]])


@pytest.mark.slow
def test_early_stopping_ends_before_max_iter_and_verbose_tells_of_every_epoch(capsys):
    stopped = CNODEClassifier(**FEW).set_params(learning_rate=1.0, n_iter_no_change=2, verbose=True).fit(ROWS, LABELS)
    assert 2 < stopped.n_iter_ < 12
    assert capsys.readouterr().out.count("validation") == stopped.n_iter_
    whole = CNODEClassifier(**FEW).set_params(learning_rate=1.0, n_iter_no_change=2, early_stopping=False)
    assert whole.fit(ROWS, LABELS).n_iter_ == 12


@pytest.mark.parametrize("estimator", [estimator for estimator, _ in ESTIMATORS.values()], ids=ESTIMATORS)
def test_estimator_that_is_not_fitted_says_so(estimator):
    with pytest.raises(NotFittedError):
        ask(clone(estimator))


def test_bad_input_is_refused_in_the_words_of_scikit_learn():
    with pytest.raises(ValueError, match="The 'method' parameter of CNODEClassifier must be a str among"):
        CNODEClassifier(method="resnet").fit(ROWS, LABELS)
    with pytest.raises(ValueError, match="Input X contains NaN"):
        CNODERegressor().fit([[np.nan], [1.0]], [1.0, 2.0])
    with pytest.raises(ValueError, match="minimum of 2 is required"):
        CharacteristicRegressor().fit([[1.0], [2.0]], [1.0, 2.0])
    with pytest.raises(ValueError, match="Unknown label type"):
        CNODEClassifier().fit(ROWS, LENGTHS + 0.01)


@pytest.mark.slow
def test_density_is_one_altogether_in_the_units_of_the_data():
    X = np.random.default_rng(0).normal(5.0, 3.0, (60, 1))
    density = FlowDensity(width=4, max_iter=12, random_state=0).fit(X)
    grid = np.linspace(-25, 35, 2_001)[:, None]
    assert abs(np.trapezoid(np.exp(density.score_samples(grid)), grid[:, 0]) - 1) < 0.01
    assert abs(density.sample(2_000, random_state=0).mean() - X.mean()) < 1


@pytest.mark.slow
def test_prediction_with_a_tolerance_does_not_depend_on_the_other_rows():
    regressor = CNODERegressor(**FEW, rtol=1e-2).set_params(max_iter=2).fit(ROWS, LENGTHS)
    one_by_one = np.concatenate([regressor.predict(row[None]) for row in ROWS[:5]])
    np.testing.assert_allclose(regressor.predict(ROWS)[:5], one_by_one, rtol=1e-6)
