"""Settings of the process."""

import os
import subprocess
import sys

import jaxlib.version
import pytest

from charax.training import process

_PROGRAM = """
import jax, jax.numpy as jnp
from charax.training import tune_process
{tune}
print(jax.jit(jnp.matmul).lower(jnp.ones((512, 64)), jnp.ones((64, 64))).compile().as_text())
"""


def test_what_the_user_set_for_malloc_is_left_alone(monkeypatch):
    monkeypatch.setenv("MALLOC_MMAP_MAX_", "2")
    assert not process._keep_freed_memory()


@pytest.mark.skipif(not jaxlib.version.__version__.startswith("0.10."), reason="others do not choose YNNPACK")
def test_small_products_are_eigens_after_tuning(monkeypatch):
    monkeypatch.setenv("XLA_FLAGS", "")
    run = lambda tune: (
        subprocess.run(
            [sys.executable, "-c", _PROGRAM.format(tune=tune)], capture_output=True, text=True, check=True
        ).stdout
    )
    assert "ynn" in run("")
    assert "ynn" not in run("tune_process()")


def test_other_flags_are_kept(monkeypatch):
    monkeypatch.setenv("XLA_FLAGS", "--xla_cpu_enable_fast_math=false")
    assert process._multiply_by_eigen()
    assert os.environ["XLA_FLAGS"].startswith("--xla_cpu_enable_fast_math=false --xla_cpu_experimental_ynn")


def test_a_flag_that_the_user_set_and_an_unknown_jaxlib_are_left_alone(monkeypatch):
    monkeypatch.setenv("XLA_FLAGS", "--xla_cpu_experimental_ynn_fusion_type=LIBRARY_FUSION_TYPE_DOT")
    assert not process._multiply_by_eigen()
    monkeypatch.setenv("XLA_FLAGS", "")
    monkeypatch.setattr("jaxlib.version.__version__", "0.99.0")
    assert not process._multiply_by_eigen()
    assert os.environ["XLA_FLAGS"] == ""


def test_the_number_of_threads_is_checked():
    with pytest.raises(ValueError, match="at least 1, got 0"):
        process.tune_process(threads=0)
