"""scikit-learn's own processes: they end, and find what one process finds."""

import subprocess
import sys

import pytest

SEARCH = """
import sys
from sklearn.datasets import load_iris
from sklearn.model_selection import GridSearchCV, cross_val_score
import charax

if __name__ == "__main__":
    x, y = load_iris(return_X_y=True)
    small = charax.CNODEClassifier(width=4, members=1, max_iter=2, random_state=0)
    small.fit(x, y)  # JAX has threads now, which a fork would not survive
    jobs = int(sys.argv[1])
    search = GridSearchCV(small, {"learning_rate": [1e-2, 1e-3]}, cv=2, n_jobs=jobs).fit(x, y)
    print(search.cv_results_["mean_test_score"].tolist(), cross_val_score(small, x, y, cv=2, n_jobs=jobs).tolist())
"""


@pytest.mark.slow
def test_a_search_in_two_processes_ends_and_finds_what_one_process_finds():
    search = lambda jobs: subprocess.run(
        [sys.executable, "-c", SEARCH, str(jobs)], check=True, capture_output=True, text=True, timeout=600
    )
    assert search(2).stdout == search(1).stdout
