"""Settings that every test shares."""

import gc
import os
from collections.abc import Iterator
from pathlib import Path

import hypothesis
import jax
import pytest

# Compiled programs survive from one run of the tests to the next.
_CACHE = Path(__file__).parents[1] / ".cache" / "jax"
os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(_CACHE))
jax.config.update("jax_compilation_cache_dir", os.environ["JAX_COMPILATION_CACHE_DIR"])
jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.1)

# A new shape is a new compilation, so a handful of examples, and no deadline.
hypothesis.settings.register_profile("charax", max_examples=12, deadline=None, derandomize=True)
hypothesis.settings.load_profile("charax")


def pytest_collection_finish() -> None:
    """Collect garbage less often: tracing makes many objects that die at once, and what is imported never does."""
    gc.freeze()
    gc.set_threshold(200_000, 20, 20)


@pytest.fixture
def x64() -> Iterator[None]:
    """Double precision for one test."""
    with jax.enable_x64(True):
        yield
