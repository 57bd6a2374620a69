"""Time things side by side: interleaved, so that a busy moment of the machine hits all alike."""

import statistics
import time
from collections.abc import Callable, Mapping
from typing import Any

import jax

Timed = Callable[[], float]
"""Does something once, and returns the seconds it took."""


def timed(call: Callable[[], Any], inner: int = 1, steps: int = 1) -> Timed:
    """The seconds of a JAX call, the mean of `inner` of them; per step, if a call takes several."""

    def run() -> float:
        start = time.perf_counter()
        for _ in range(inner):
            jax.block_until_ready(call())
        return (time.perf_counter() - start) / (inner * steps)

    return run


def interleave(runs: Mapping[str, Timed], *, repetitions: int) -> dict[str, dict[str, float]]:
    """Median and spread of each in seconds, after one of each that does not count."""
    for run in runs.values():
        run()
    seconds: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(repetitions):
        for name, run in runs.items():
            seconds[name].append(run())
    return {
        name: {
            "median": statistics.median(times),
            "lowest": min(times),
            "highest": max(times),
            "repetitions": repetitions,
        }
        for name, times in seconds.items()
    }


def interleaved(
    calls: Mapping[str, Callable[[], Any]], *, repetitions: int, inner: int = 1
) -> dict[str, dict[str, float]]:
    """`interleave` of JAX calls."""
    return interleave({name: timed(call, inner) for name, call in calls.items()}, repetitions=repetitions)
