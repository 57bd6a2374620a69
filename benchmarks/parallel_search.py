"""How much faster scikit-learn's searches are with two processes: iris, interleaved, each in a process of its own.

    python -m benchmarks.parallel_search --repeats 3 --output docs/results/parallel-search
    python -m benchmarks.parallel_search --grids "120 fits" --searches 1 --output docs/results/parallel-search
    python -m benchmarks.parallel_search --grids --output docs/results/parallel-search

Run it on a quiet machine with two cores. The first search of a process starts the workers, which import JAX and
scikit-learn; the second finds them there. The compilation cache is warm. Grids that were measured before stay in the
files. The last command measures no grid, only the CPU seconds of a worker, which need no quiet machine: they say how
much two cores could gain at best.
"""

import argparse
import itertools
import json
import math
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

GRIDS = {
    "cross_val_score, 5 fits": {},
    "20 fits": {"width": [16, 24], "weight_decay": [0.0, 0.05]},
    "60 fits": {"width": [16, 24], "weight_decay": [0.0, 0.05], "learning_rate": [3e-3, 1e-2, 3e-2]},
    "120 fits": {"width": [16, 24], "weight_decay": [0.0, 0.05, 0.5, 2.0], "learning_rate": [3e-3, 1e-2, 3e-2]},
}
"""Parameters to search, with five folds each. Only the width is part of a compiled program."""
SEARCH = """
import json, sys, time
began = time.perf_counter()
from sklearn.datasets import load_iris
from sklearn.model_selection import GridSearchCV, cross_val_score
import charax

charax.use_compilation_cache()
if __name__ == "__main__":
    jobs, grid, (x, y) = int(sys.argv[1]), json.loads(sys.argv[2]), load_iris(return_X_y=True)
    estimator, seconds = charax.CNODEClassifier(random_state=0), [time.perf_counter() - began]
    for _ in range(int(sys.argv[3])):
        began = time.perf_counter()
        if grid:
            search = GridSearchCV(estimator, grid, cv=5, n_jobs=jobs).fit(x, y)
            scores = search.cv_results_["mean_test_score"].tolist()
        else:
            scores = cross_val_score(estimator, x, y, cv=5, n_jobs=jobs).tolist()
        seconds.append(time.perf_counter() - began)
    print(json.dumps({"seconds": seconds, "scores": scores}))
"""
WIDTHS = {"cross_val_score, 5 fits": 32, **dict.fromkeys(("20 fits", "60 fits", "120 fits"), 20)}
"""The mean width of the networks of each grid."""
WORKER = """
import json, sys, time
from joblib import Parallel, delayed
from sklearn.base import clone
from sklearn.datasets import load_iris
import charax

charax.use_compilation_cache()
if __name__ == "__main__":
    def fit(estimator, x, y):
        from time import process_time
        seconds = [process_time()]
        for _ in range(4):
            clone(estimator).fit(x, y)
            seconds.append(process_time())
        return seconds
    estimator = charax.CNODEClassifier(width=int(sys.argv[1]), random_state=0)
    fits = [delayed(fit)(estimator, *load_iris(return_X_y=True)) for _ in range(2)]
    Parallel(n_jobs=1)(fits[:1])
    print(json.dumps(Parallel(n_jobs=2)(fits)))
"""


def import_scikit_learn() -> float:
    """CPU seconds of a process that imports what a search needs of scikit-learn."""
    code = "import time, sklearn.model_selection; print(time.process_time())"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True, timeout=600)
    return float(done.stdout)


def worker(width: int) -> dict[str, float]:
    """CPU seconds of a worker: for importing scikit-learn, until its first fit, for that fit, and for a later one."""
    command = [sys.executable, "-c", WORKER, str(width)]
    done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=3600)
    found = json.loads(done.stdout.splitlines()[-1])
    lengths = [[after - before for before, after in itertools.pairwise(each)] for each in found]
    start, first = statistics.mean(each[0] for each in found), statistics.mean(each[0] for each in lengths)
    later = statistics.median(fit for each in lengths for fit in each[1:])
    return {"scikit_learn": import_scikit_learn(), "start": start, "first_fit": first, "later_fit": later}


def bound(seconds: dict[str, float], grid: dict[str, list[float]]) -> float:
    """How many times faster two cores could be in a first search: each worker imports, and compiles per width.

    A grid search then fits the best candidate in its own process, which compiles, too, if workers did before.
    """
    compiled = len(grid.get("width", [0])) * (seconds["first_fit"] - seconds["later_fit"])
    fits = 5 * math.prod(map(len, grid.values())) * seconds["later_fit"]
    alone, parted = (seconds["later_fit"], seconds["first_fit"]) if grid else (0.0, 0.0)
    return (compiled + fits + alone) / (seconds["start"] + compiled + fits / 2 + parted)


def search(jobs: int, grid: dict[str, list[float]], searches: int) -> dict[str, Any]:
    """Seconds of the imports and of one or two searches, and the scores."""
    command = [sys.executable, "-c", SEARCH, str(jobs), json.dumps(grid), str(searches)]
    began = time.perf_counter()
    done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=3600)
    return {**json.loads(done.stdout.splitlines()[-1]), "process": time.perf_counter() - began}


def compare(grid: dict[str, list[float]], repeats: int, searches: int) -> dict[str, Any]:
    """The medians of interleaved runs with one and with two jobs, and their ratios."""
    # Fills the cache of compiled programs, of which only the width is a part.
    search(1, {name: values if name == "width" else values[:1] for name, values in grid.items()}, 1)
    runs = {1: [], 2: []}
    for _ in range(repeats):
        for jobs, found in runs.items():
            found.append(search(jobs, grid, searches))
    times = {jobs: [run["seconds"] for run in found] for jobs, found in runs.items()}
    median = lambda jobs, part: statistics.median(seconds[part] for seconds in times[jobs])
    whole = lambda jobs: statistics.median(sum(seconds[:2]) for seconds in times[jobs])
    return {
        "grid": grid,
        "seconds": {str(jobs): seconds for jobs, seconds in times.items()},
        "speedup_with_imports": whole(1) / whole(2),
        "speedup_first": median(1, 1) / median(2, 1),
        "speedup_second": median(1, 2) / median(2, 2) if searches > 1 else None,
        "same_scores": len({json.dumps(run["scores"]) for found in runs.values() for run in found}) == 1,
    }


def _ratio(value: float | None) -> str:
    return "" if value is None else f"{value:.2f}x"


def write(output: Path, found: dict[str, Any]) -> None:
    """Write the numbers and a page."""
    output.mkdir(parents=True, exist_ok=True)
    (output / "parallel-search.json").write_text(json.dumps(found, indent=1) + "\n")
    lines = [
        "# Searches of scikit-learn with two processes",
        "",
        "**Two processes pay off for many or long fits: the first search waits for its workers to start.**",
        "",
        "Written by `python -m benchmarks.parallel_search`. Iris, two cores: how many times faster `n_jobs=2` is than",
        "`n_jobs=1`. A new process counts its imports, too; the first search starts the workers, which import and",
        "compile by themselves; a second search in the same process finds them ready. At best: what the CPU seconds of",
        "a worker admit in a first search, in which a grid search also compiles its last fit in its own process.",
        "",
        "| search | new process | first search | at best | second search | same scores |",
        "|---|---|---|---|---|---|",
    ]
    lines += [
        f"| {name} | {row['speedup_with_imports']:.2f}x | {row['speedup_first']:.2f}x "
        f"| {bound(found['workers'][str(WIDTHS[name])], GRIDS[name]):.2f}x "
        f"| {_ratio(row['speedup_second'])} | {'yes' if row['same_scores'] else 'no'} |"
        for name, row in ((name, found[name]) for name in GRIDS if name in found)
    ]
    parts = ("start", "scikit_learn", "first_fit", "later_fit")
    lines += ["", "CPU seconds of a worker:", ""]
    lines += ["| width | until its first fit | of them for importing scikit-learn | first fit | later fit |"]
    lines += ["|---|---|---|---|---|"]
    lines += [
        f"| {width} | {' | '.join(f'{each[part]:.2f}' for part in parts)} |" for width, each in found["workers"].items()
    ]
    lines += ["", "Raw numbers: [parallel-search.json](parallel-search.json).", ""]
    (output / "README.md").write_text("\n".join(lines))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--searches", type=int, choices=(1, 2), default=2, help="in each process")
    parser.add_argument("--grids", nargs="*", choices=list(GRIDS), default=list(GRIDS))
    parser.add_argument("--output", type=Path)
    arguments = parser.parse_args()
    file = None if arguments.output is None else arguments.output / "parallel-search.json"
    answer = {} if file is None or not file.is_file() else json.loads(file.read_text())
    answer["workers"] = {str(width): worker(width) for width in sorted(set(WIDTHS.values()))}
    print(json.dumps(answer["workers"]), flush=True)
    keep = lambda: None if arguments.output is None else write(arguments.output, answer)
    keep()
    for name in arguments.grids:
        answer[name] = compare(GRIDS[name], arguments.repeats, arguments.searches)
        print(json.dumps({name: answer[name]}, indent=2), flush=True)
        keep()
