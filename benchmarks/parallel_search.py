"""How much faster `GridSearchCV` is with two processes: iris, interleaved, each in a process of its own.

    python -m benchmarks.parallel_search --repeats 3

Run it on a quiet machine with two cores. The compilation cache is warm from the second call on.
"""

import argparse
import json
import statistics
import subprocess
import sys
import time

SEARCH = """
import sys
from sklearn.datasets import load_iris
from sklearn.model_selection import GridSearchCV
import charax

charax.use_compilation_cache()
if __name__ == "__main__":
    grid = {"width": [16, 24], "weight_decay": [0.0, 0.05]}
    search = GridSearchCV(charax.CNODEClassifier(random_state=0), grid, cv=5, n_jobs=int(sys.argv[1]))
    search.fit(*load_iris(return_X_y=True))
    print(repr(search.cv_results_["mean_test_score"].tolist()))
"""


def search(jobs: int) -> tuple[float, str]:
    """Seconds, and the scores."""
    began = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-c", SEARCH, str(jobs)], check=True, capture_output=True, text=True, timeout=1800
    )
    return time.perf_counter() - began, done.stdout


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=3)
    repeats = parser.parse_args().repeats
    search(1)  # fills the cache of compiled programs
    pairs = [(search(1), search(2)) for _ in range(repeats)]
    one, two = ([pair[i][0] for pair in pairs] for i in range(2))
    answer = {
        "seconds_one_job": one,
        "seconds_two_jobs": two,
        "speedup": statistics.median(one) / statistics.median(two),
        "same_scores": len({scores for pair in pairs for _, scores in pair}) == 1,
    }
    print(json.dumps(answer, indent=2))
