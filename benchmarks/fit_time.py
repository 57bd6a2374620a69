"""`python -m benchmarks.fit_time`: time and accuracy of a fit at 1,000, 20,000 and 200,000 rows, beside scikit-learn.

y says whether f0·f1 + f2 > 0 for 20 standard normal features; 10,000 more rows are the test rows. Every fit is a
process of its own without a cache of compiled programs, so that ours include all compilation. Writes
docs/results/fit-time/.
"""

import argparse
import json
import os
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float, Int

RESULTS = Path(__file__).parents[1] / "docs" / "results" / "fit-time"
ROWS, FEATURES, TEST_ROWS = (1_000, 20_000, 200_000), 20, 10_000
EPOCHS, WIDTH, SEED = 20, 64, 1_000


def made_up_table(rows: int, seed: int) -> tuple[Float[np.ndarray, "rows features"], Int[np.ndarray, "rows"]]:
    """Standard normal features, and the classes y = (f0·f1 + f2 > 0)."""
    X = np.random.default_rng(seed).normal(size=(rows, FEATURES))
    return X, (X[:, 0] * X[:, 1] + X[:, 2] > 0).astype(int)


def _defaults() -> Any:
    from charax.estimators import CNODEClassifier

    return CNODEClassifier(random_state=0)


def _equal() -> Any:
    """One model with as many epochs, as large mini-batches and as many parameters as the perceptron (5,490, 5,569)."""
    from charax.estimators import CNODEClassifier

    return CNODEClassifier(
        members=1, width=51, max_iter=EPOCHS, n_iter_no_change=EPOCHS, batch_size=200, random_state=0
    )


def _boosting() -> Any:
    from sklearn.ensemble import HistGradientBoostingClassifier

    return HistGradientBoostingClassifier(random_state=0)


def _perceptron() -> Any:
    from sklearn.neural_network import MLPClassifier

    return MLPClassifier((WIDTH, WIDTH), max_iter=EPOCHS, n_iter_no_change=EPOCHS, random_state=0)


_DEFAULTS, _BOOSTING = "CNODEClassifier, defaults", "HistGradientBoostingClassifier"
CASES: dict[str, Callable[[], Any]] = {
    _DEFAULTS: _defaults,
    f"CNODEClassifier, one member, {EPOCHS} epochs": _equal,
    _BOOSTING: _boosting,
    f"MLPClassifier ({WIDTH}, {WIDTH}), {EPOCHS} epochs": _perceptron,
}


def measure(case: str, rows: int) -> dict[str, Any]:
    """Accuracy and seconds of a first and of a second fit."""
    X, y = made_up_table(rows + TEST_ROWS, SEED)
    warnings.simplefilter("ignore")  # the perceptron's, that it has not converged
    found: dict[str, Any] = {"case": case, "rows": rows}
    for fit in ("first", "later"):
        estimator = CASES[case]()
        wall, cpu = time.perf_counter(), time.process_time()
        estimator.fit(X[:rows], y[:rows])
        found[f"{fit}_fit_seconds"] = round(time.perf_counter() - wall, 2)
        found[f"{fit}_fit_cpu_seconds"] = round(time.process_time() - cpu, 2)
        found["accuracy"] = float(estimator.score(X[rows:], y[rows:]))
        found["members"] = getattr(estimator, "members_", None)
        found["epochs"] = getattr(estimator, "n_iter_", None)
    return found


def main() -> None:
    """Measure every case at every number of rows, and write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, nargs="+", default=ROWS)
    parser.add_argument("--only", help="measure one case in this process, and print it")
    arguments = parser.parse_args()
    if arguments.only:
        print(json.dumps(measure(arguments.only, arguments.rows[0])))
        return
    path = RESULTS / "fit-time.json"
    before = json.loads(path.read_text())["rows"] if path.exists() else []
    kept = [row for row in before if row["rows"] not in arguments.rows]
    RESULTS.mkdir(parents=True, exist_ok=True)
    for count in arguments.rows:
        kept = sorted([*kept, *(_afresh(case, count) for case in CASES)], key=lambda row: row["rows"])
        path.write_text(json.dumps({"rows": kept}, indent=2) + "\n")
        (RESULTS / "README.md").write_text(f"{_page(kept).rstrip()}\n\nRaw numbers: [fit-time.json](fit-time.json).\n")


def _afresh(case: str, rows: int) -> dict[str, Any]:
    environment = {name: value for name, value in os.environ.items() if name != "JAX_COMPILATION_CACHE_DIR"}
    command = [sys.executable, "-m", "benchmarks.fit_time", "--only", case, "--rows", str(rows)]
    printed = subprocess.run(command, env=environment, check=True, stdout=subprocess.PIPE, text=True).stdout
    found = json.loads(printed.splitlines()[-1])
    print(_line(found), flush=True)
    return found


def _line(row: dict[str, Any]) -> str:
    first, later = ((row[f"{fit}_fit_seconds"], row[f"{fit}_fit_cpu_seconds"]) for fit in ("first", "later"))
    times = f"{first[0]:.1f} ({first[1]:.1f}) | {later[0]:.1f} ({later[1]:.1f})"
    members = "" if row["members"] is None else f"{row['members']} models, "
    return (
        f"| {row['rows']:,} | {row['case']} | {row['accuracy']:.1%} | {times} | {members}{row['epochs']} iterations |"
    )


def _page(rows: list[dict[str, Any]]) -> str:
    lines = "\n".join(map(_line, rows))
    ours, boosting = (
        [row["later_fit_seconds"] for row in rows if row["case"] == case] for case in (_DEFAULTS, _BOOSTING)
    )
    return f"""# Time of a fit

**With its defaults, and once its programs are compiled, `CNODEClassifier` fits {rows[0]["rows"]:,} to
{rows[-1]["rows"]:,} rows in {min(ours):.1f} to {max(ours):.1f} s;** gradient boosting takes {min(boosting):.1f} to
{max(boosting):.1f} s.

Classification of {FEATURES} standard normal features by whether f0·f1 + f2 > 0, accuracy on {TEST_ROWS:,} other rows;
made by `python -m benchmarks.fit_time`.

| rows | estimator | accuracy | first fit, s (CPU s) | later fit, s (CPU s) | |
|---|---|---|---|---|---|
{lines}

Seconds of the clock, and CPU seconds of all threads in brackets: where the first are far more than the second,
the machine also did other work. The first fit is in a new process with no compiled programs from before. One seed each:
the order of accuracies that differ by some tenths of a percent means nothing. The recipe of the defaults was chosen on
other rows ([table-recipe](../table-recipe/README.md)).
"""


if __name__ == "__main__":
    main()
