"""Freed memory stays in the process: counted in page faults, in processes of their own."""

import ctypes
import os
import subprocess
import sys

import pytest

from charax.training.memory import keep_freed_memory

PROGRAM = """
import resource
from charax.training import keep_freed_memory

if {keep}:
    assert keep_freed_memory()

import jax, jax.numpy as jnp

step = jax.jit(lambda x: jnp.sort(x + 1, axis=0).sum())
x = jnp.ones((16, 1 << 18))
faults = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_minflt
step(x).block_until_ready()
before = faults()
step(x).block_until_ready()
print(faults() - before)
"""


def count_faults(keep: bool) -> int:
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith(("MALLOC_", "GLIBC_TUNABLES"))
    }
    child = subprocess.run(
        [sys.executable, "-c", PROGRAM.format(keep=keep)], env=environment, capture_output=True, text=True, check=True
    )
    return int(child.stdout)


@pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "mallopt"), reason="malloc is not glibc's")
def test_a_second_step_asks_the_system_for_no_pages():
    pages = 16 * (1 << 18) * 4 // 4096
    assert count_faults(keep=False) > pages // 4
    assert count_faults(keep=True) < pages // 100


def test_what_the_user_set_for_malloc_is_left_alone(monkeypatch):
    monkeypatch.setenv("MALLOC_ARENA_MAX", "2")
    assert not keep_freed_memory()
