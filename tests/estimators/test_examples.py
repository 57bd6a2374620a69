"""The examples of the estimators run, and reach the scores that they should."""

import runpy
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"
MINIMUM_SCORES = {
    "estimators_classify": ("accuracy", 0.9),
    "estimators_regress": ("r_squared", 0.3),
    "estimators_density": ("mean_log_density", -1.5),
    "estimators_pde": ("r_squared", 0.95),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", MINIMUM_SCORES)
def test_example_runs_and_learns(name):
    score, minimum = MINIMUM_SCORES[name]
    assert runpy.run_path(str(EXAMPLES / f"{name}.py"))[score] > minimum


def test_every_example_of_an_estimator_is_run():
    assert {path.stem for path in EXAMPLES.glob("estimators_*.py")} == set(MINIMUM_SCORES)
