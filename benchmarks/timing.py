"""Time things side by side: interleaved, so that a busy moment of the machine hits all alike."""

import statistics
import time
from collections.abc import Callable, Mapping
from typing import Any

import jax


def interleaved(
    calls: Mapping[str, Callable[[], Any]], *, repetitions: int, inner: int = 1
) -> dict[str, dict[str, float]]:
    """Median and spread of each call in seconds, after one call to compile."""
    for call in calls.values():
        jax.block_until_ready(call())
    seconds: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(repetitions):
        for name, call in calls.items():
            start = time.perf_counter()
            for _ in range(inner):
                jax.block_until_ready(call())
            seconds[name].append((time.perf_counter() - start) / inner)
    return {
        name: {
            "median": statistics.median(times),
            "lowest": min(times),
            "highest": max(times),
            "repetitions": repetitions,
        }
        for name, times in seconds.items()
    }
