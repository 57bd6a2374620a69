"""`python -m benchmarks.tables`: time and memory of reading a CSV of 200,000 x 20 numbers, beside pandas.read_csv.

Each measurement is a process of its own, because memory that was once used is not given back.
"""

import json
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROWS, COLUMNS, REPETITIONS = 200_000, 20, 5
AT_MOST = 2.0
"""Times what pandas takes."""


def _pandas(path: str) -> Any:
    import pandas as pd

    return pd.read_csv(path)


def _read(path: str) -> Any:
    from charax.data.files._dispatch import read_table
    from charax.data.files._table import TableRequest

    return read_table(Path(path), TableRequest())


def _density(path: str) -> Any:
    from charax.data import load_density_data

    return load_density_data(path)


def _classification(path: str) -> Any:
    from charax.data import load_dataset

    return load_dataset(path, target="class")


CASES: dict[str, Callable[[str], Any]] = {
    "pandas.read_csv": _pandas,
    "read a table": _read,
    "load_density_data: read, check, split, standardize": _density,
    "load_dataset: read, encode, split, standardize": _classification,
}


def write_csv(path: Path, rows: int, columns: int) -> None:
    """Write random numbers with all of their digits, and a column of three classes."""
    import numpy as np
    import pandas as pd

    values = np.random.default_rng(0).normal(size=(rows, columns))
    frame = pd.DataFrame(values, columns=[f"x{i}" for i in range(columns)])
    frame.assign(**{"class": np.arange(rows) % 3}).to_csv(path, index=False)


def measure(case: str, path: str) -> dict[str, float]:
    """Seconds and the growth of the peak memory in MB of one call, after all imports."""
    with tempfile.TemporaryDirectory() as folder:
        write_csv(Path(folder) / "small.csv", 100, 2)
        CASES[case](f"{folder}/small.csv")
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    start = time.perf_counter()
    kept = CASES[case](path)
    seconds = time.perf_counter() - start
    del kept
    return {"seconds": seconds, "megabytes": (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1e3}


def main() -> None:
    """Measure all cases in turn, and print the medians and their ratios to pandas."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "numbers.csv"
        # In another process: the peak memory of this one would count as that of its children.
        subprocess.run([sys.executable, "-m", "benchmarks.tables", "write", str(path)], check=True)
        found: dict[str, list[dict[str, float]]] = {case: [] for case in CASES}
        for _ in range(REPETITIONS):
            for case, results in found.items():
                command = [sys.executable, "-m", "benchmarks.tables", case, str(path)]
                results.append(json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout))
    medians = {
        case: {name: statistics.median(result[name] for result in results) for name in ("seconds", "megabytes")}
        for case, results in found.items()
    }
    reference = medians["pandas.read_csv"]
    for case, median in medians.items():
        ratios = ", ".join(f"{name} {value:.3g} ({value / reference[name]:.2f})" for name, value in median.items())
        print(f"{case}: {ratios}")
    print(f"in brackets: times pandas.read_csv, at most {AT_MOST:g}")


if __name__ == "__main__":
    if sys.argv[1:2] == ["write"]:
        write_csv(Path(sys.argv[2]), ROWS, COLUMNS)
    elif len(sys.argv) > 1:
        print(json.dumps(measure(*sys.argv[1:3])))
    else:
        main()
