"""How long the first fit of an equation takes, compilation apart: `python -m benchmarks.equation_time [PROBLEM …]`.

Fits every equation of `charax reproduce equations` (1,000 clean samples, no cache of compiled programs) in a process of
its own, and writes to docs/results/equations/time.json the seconds that JAX traced and compiled, the rest, and the
number of programs.
"""

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from charax.paper import equations

OUTPUT = Path(__file__).parents[1] / "docs" / "results" / "equations" / "time.json"
_EVENTS = {"jaxpr_trace_duration": "trace", "jaxpr_to_mlir_module_duration": "trace", "backend_compile_duration": "xla"}


def measure(problem: str) -> dict[str, Any]:
    """One row: the first fit of a process."""
    import jax

    from charax import train

    seconds = {"trace": 0.0, "xla": 0.0}
    programs = []

    def listen(event: str, duration_secs: float, **kwargs: str | int) -> None:
        part = _EVENTS.get(event.rsplit("/", 1)[-1])
        if part is not None:
            seconds[part] += duration_secs
        if part == "xla":
            programs.append((duration_secs, str(kwargs.get("fun_name"))))

    jax.config.update("jax_enable_compilation_cache", False)
    jax.monitoring.register_event_duration_secs_listener(listen)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "samples.npz"
        equations.save_samples(path, problem, 0.0, points=1000, seed=0)
        config = equations.make_config(path, problem, "equation", epochs=equations.EQUATION_EPOCHS, seed=0)
        started, used = time.perf_counter(), time.process_time()
        run = train.train_or_load(config, Path(folder) / "run")
        wall, cpu = time.perf_counter() - started, time.process_time() - used
    compiled = seconds["trace"] + seconds["xla"]
    return {
        "problem": problem,
        "equation": run.summary()["equation"],
        "compile_seconds": round(compiled, 2),
        "trace_seconds": round(seconds["trace"], 2),
        "fit_seconds": round(wall - compiled, 2),
        "cpu_seconds": round(cpu, 2),
        "programs": len(programs),
        "largest": [f"{name}: {duration:.2f} s" for duration, name in sorted(programs, reverse=True)[:6]],
    }


def main() -> None:
    if sys.argv[1:2] == ["--one"]:
        print(json.dumps(measure(sys.argv[2])))
        return
    rows = []
    for problem in sys.argv[1:] or equations.EQUATIONS:
        command = [sys.executable, "-m", "benchmarks.equation_time", "--one", problem]
        found = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
        rows.append(json.loads(found.stdout.splitlines()[-1]))
        print(json.dumps(rows[-1]), flush=True)
    if not sys.argv[1:]:
        OUTPUT.write_text(json.dumps({"rows": rows}, indent=2) + "\n")


if __name__ == "__main__":
    main()
