"""`python -m benchmarks.first_results`: how long a user waits for the first result of a process, and for later ones.

Each estimator is fitted to a small table of scikit-learn in a new process with an empty cache of compiled programs, and
in another one with the cache that the first has left, then again in the same process with other seeds. `charax train
classify` is run until it reports its first epoch of digits. Writes docs/results/first-results/. Measure alone.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parents[1] / "docs" / "results" / "first-results"
TABLES = ("iris", "wine", "diabetes")
AT_MOST = {"empty": 4.0, "warm": 2.0, "later": 0.7, "first epoch, warm": 6.0}
LATER_SEEDS = (1, 2, 3, 4, 5)


def _clocks() -> tuple[float, float]:
    return time.perf_counter(), time.process_time()


def _since(begin: tuple[float, float]) -> dict[str, float]:
    wall, cpu = _clocks()
    return {"seconds": round(wall - begin[0], 2), "cpu_seconds": round(cpu - begin[1], 2)}


def fit(table: str) -> dict[str, Any]:
    """Import, a first fit and later fits of the default estimator, in this process."""
    begin = _clocks()
    import charax

    charax.use_compilation_cache()
    from sklearn import datasets

    from charax.estimators import CNODEClassifier, CNODERegressor

    imports = _since(begin)
    if table == "none":  # a process that leaves its bytecode to the next one
        return {"imports": imports}
    X, y = getattr(datasets, f"load_{table}")(return_X_y=True)
    make: Callable[..., Any] = CNODERegressor if table == "diabetes" else CNODEClassifier
    fits = []
    for seed in (0, *LATER_SEEDS):
        begin = _clocks()
        make(random_state=seed).fit(X, y)
        fits.append(_since(begin))
    return {"imports": imports, "first": fits[0], "later": fits[1:]}


def first_epoch(folder: Path, environment: dict[str, str]) -> dict[str, float]:
    """Seconds from the command to its line of the first epoch of digits."""
    command = [sys.executable, "-m", "charax", "train", "classify", "--output", str(folder)]
    begin = time.perf_counter()
    with subprocess.Popen(
        command, env=environment, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True
    ) as run:
        assert run.stderr is not None
        if not any(line.startswith("epoch 1/") for line in run.stderr):
            raise RuntimeError("the run reported no epoch")
        seconds = time.perf_counter() - begin
        run.kill()
    return {"seconds": round(seconds, 2)}


def measure() -> dict[str, Any]:
    """All measurements, one process at a time."""
    found: dict[str, Any] = {}
    # A user's processes keep their bytecode: the first of them is not measured.
    environment = {name: value for name, value in os.environ.items() if name not in _UNUSUAL}
    for table in TABLES:
        with tempfile.TemporaryDirectory() as cache:
            child = [sys.executable, "-m", "benchmarks.first_results", "--fit", table]
            run = lambda child=child, cache=cache: json.loads(
                subprocess.run(
                    child, env=environment | {"XDG_CACHE_HOME": cache}, check=True, stdout=subprocess.PIPE, text=True
                ).stdout
            )
            if not found:
                subprocess.run([*child[:-1], "none"], env=environment, check=True, stdout=subprocess.DEVNULL)
            found[table] = {"empty": run(), "warm": run()}
            print(_line(table, found[table]), flush=True)
    with tempfile.TemporaryDirectory() as folder:
        variables = environment | {"XDG_CACHE_HOME": folder}
        runs = [first_epoch(Path(folder) / f"runs{i}", variables) for i in range(4)]
        found["first epoch"] = {"empty": runs[0], "warm": runs[1:]}
        print(_epoch_line(found["first epoch"]), flush=True)
    return found


_UNUSUAL = ("JAX_COMPILATION_CACHE_DIR", "PYTHONDONTWRITEBYTECODE", "XLA_FLAGS")


def _text(clocks: dict[str, float]) -> str:
    return f"{clocks['seconds']:.1f} ({clocks['cpu_seconds']:.1f})"


def _line(table: str, found: dict[str, Any]) -> str:
    later = sorted(one["seconds"] for process in found.values() for one in process["later"])
    median, largest = statistics.median(later), later[-1]
    empty, warm = _text(found["empty"]["first"]), _text(found["warm"]["first"])
    return f"| {table} | {empty} | {warm} | {median:.2f}, at most {largest:.2f} | {_text(found['warm']['imports'])} |"


def _epoch_line(found: dict[str, Any]) -> str:
    warm = sorted(one["seconds"] for one in found["warm"])
    return (
        f"`charax train classify` reports its first epoch of digits {found['empty']['seconds']:.1f} s after the "
        f"command with an empty cache, and {warm[0]:.1f} to {warm[-1]:.1f} s after it with a warm one "
        f"({len(warm)} runs)."
    )


def _page(found: dict[str, Any]) -> str:
    lines = "\n".join(_line(table, found[table]) for table in TABLES)
    slowest = {cache: max(found[table][cache]["first"]["seconds"] for table in TABLES) for cache in ("empty", "warm")}
    return f"""# Time to the first result

**The first fit of a small table takes at most {slowest["empty"]:.1f} s, compilation included, and at most
{slowest["warm"]:.1f} s where compiled programs are kept from an earlier process.**

Fits of the default estimators, in seconds of the clock (CPU seconds of all threads in brackets); made by
`python -m benchmarks.first_results`, with one call of `charax.use_compilation_cache()` per process.

| table | first fit, empty cache | first fit, warm cache | later fits, {2 * len(LATER_SEEDS)} seeds | imports |
|---|---|---|---|---|
{lines}

{_epoch_line(found["first epoch"])}

The imports (JAX, scikit-learn) come before the fit, and are part of the time to the first epoch.
"""


def main() -> None:
    """Measure, or be one of the processes that are measured."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--fit", choices=(*TABLES, "none"), help="fit this table in this process, and print the times")
    arguments = parser.parse_args()
    if arguments.fit:
        print(json.dumps(fit(arguments.fit)))
        return
    found = measure()
    RESULTS.mkdir(parents=True, exist_ok=True)
    (RESULTS / "first-results.json").write_text(json.dumps({"at_most": AT_MOST, **found}, indent=2) + "\n")
    (RESULTS / "README.md").write_text(_page(found))


if __name__ == "__main__":
    main()
