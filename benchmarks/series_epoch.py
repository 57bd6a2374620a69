"""An epoch of training on 1,000 series of 200 irregular observations, and the memory of a step.

python -m benchmarks.series_epoch
"""

import argparse
import json
import os
import tempfile
from pathlib import Path

import equinox as eqx
import jax
import numpy as np

from benchmarks.peers.process import ROOT
from benchmarks.series_training import Clock
from charax.models import SeriesDesign
from charax.solve import Adjoint, Solver
from charax.tasks import SeriesConfig
from charax.train import LoopConfig, fit, tune_process

RESULTS = ROOT / "docs" / "results" / "irregular" / "epoch.json"
SERIES, LENGTH, CHANNELS = 1_000, 200, 3
LENGTHS = (50, LENGTH)
STEPS = (1, 16)


def write_series(path: Path, *, series: int = SERIES, length: int = LENGTH) -> None:
    """Waves of two frequencies at random times, a fifth of whose values is missing."""
    generator = np.random.default_rng(0)
    t = np.sort(generator.uniform(size=(series, length)), axis=1) + np.arange(length) * 1e-4
    y = np.arange(series) % 2
    phase = generator.uniform(0, 2 * np.pi, (series, 1, CHANNELS))
    x = np.sin((12 + 6 * y)[:, None, None] * t[:, :, None] + phase) + 0.3 * generator.normal(size=(*t.shape, CHANNELS))
    x[generator.uniform(size=x.shape) < 0.2] = np.nan
    np.savez(path, x=x, y=y, t=t)


def time_epochs(method: str, epochs: int) -> dict[str, float]:
    """Seconds of an epoch after the first, which compiles."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "waves.npz"
        write_series(path)
        test = Path(folder) / "test.npz"
        write_series(test, series=20)
        config = SeriesConfig(
            data=str(path),
            test=str(test),
            method=method,  # pyright: ignore[reportArgumentType]
            validation_fraction=0.01,
            loop=LoopConfig(epochs, 32),
        )
        data = config.load_data()
        clock = Clock()
        task = config.build_task(data.spec)
        *rows, _ = fit(task, data.splits, config.loop, config.optimizer, progress=clock).history
    each = (rows[-1]["seconds"] - rows[0]["seconds"]) / (len(rows) - 1)
    series = len(data.splits.train.lengths)  # pyright: ignore[reportAttributeAccessIssue]
    return {
        "series": series,
        "epoch_seconds": each,
        "epoch_cpu_seconds": clock.total()[1],
        "compile_seconds": rows[0]["seconds"] - each,
    }


def step_memory(steps: int, adjoint: Adjoint, *, length: int = 50) -> int:
    """Bytes that a compiled gradient allocates for intermediate results, with this many steps per observation."""
    model = SeriesDesign("cde", reads_path=True, readout="mean").build(CHANNELS, 2, key=jax.random.key(0))
    params, static = eqx.partition(model, eqx.is_inexact_array)
    solver = Solver("midpoint", steps=steps, adjoint=adjoint)

    def loss(params, times, values, lengths):
        return eqx.combine(params, static)(times, values, lengths, solver=solver).values.sum()

    shapes = [jax.ShapeDtypeStruct(shape, np.float32) for shape in ((32, length), (32, length, CHANNELS))]
    lengths = jax.ShapeDtypeStruct((32,), np.int32)
    analysis = jax.jit(jax.grad(loss)).lower(params, *shapes, lengths).compile().memory_analysis()
    assert analysis is not None
    return int(analysis.temp_size_in_bytes)


def main() -> None:
    """Measure both, and write them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--method", nargs="+", default=["cde"])
    parser.add_argument("--epochs", type=int, default=3)
    asked = parser.parse_args()
    tune_process()
    rows = [{"method": method, **time_epochs(method, asked.epochs)} for method in asked.method]
    adjoints: tuple[Adjoint, ...] = ("checkpoint", "backsolve", "direct")
    memory = [
        {
            "adjoint": adjoint,
            "observations": length,
            "steps_per_observation": steps,
            "bytes": step_memory(steps, adjoint, length=length),
        }
        for adjoint in adjoints
        for length in LENGTHS
        for steps in STEPS
    ]
    answer = {"cores": len(os.sched_getaffinity(0)), "rows": rows, "memory": memory}
    RESULTS.write_text(json.dumps(answer, indent=2) + "\n")
    print(json.dumps(answer))


if __name__ == "__main__":
    main()
