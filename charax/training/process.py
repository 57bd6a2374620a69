"""Settings of the process that make a step of training faster on CPUs."""

import ctypes
import os

import jaxlib.version

_TRIM_THRESHOLD, _MMAP_MAX, _ARENA_MAX = -1, -4, -8  # of glibc's malloc.h
_TUNED = ("GLIBC_TUNABLES", "MALLOC_ARENA_MAX", "MALLOC_MMAP_MAX_", "MALLOC_TRIM_THRESHOLD_")
_PRODUCTS = "xla_cpu_experimental_ynn_fusion_type"
_TRIED = ("0.9.", "0.10.")
"""Versions of jaxlib that know the flag: XLA ends a process with a flag that it does not know."""


def tune_process() -> None:
    """Make training faster on CPUs. Call it before the first computation; every `charax …` command does.

    - malloc keeps the memory that the process frees. A step of training allocates its temporaries as one block, frees
      it, and allocates it again; by default glibc gives blocks of that size back to the system, which has to clear
      every page anew: a quarter of the time of an image classifier's step. The price is that the process stays as large
      as it once was. Threads that have an arena of their own by then are not bound by it.
    - XLA multiplies small matrices by Eigen and not by YNNPACK, which wakes the other cores for them: a fifth to a
      third of the time of a dense field. Large products and convolutions take as long as before.

    What the user has set (malloc's environment variables, the same flag in `XLA_FLAGS`) is left alone, and so is
    what cannot be set: another malloc, a version of jaxlib this was not tried with, or one that has begun to compute.

    ```python
    from charax.training import tune_process

    tune_process()
    ```
    """
    _keep_freed_memory()
    _multiply_by_eigen()


def _keep_freed_memory() -> bool:
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None) if os.name == "posix" else None
    if mallopt is None or any(name in os.environ for name in _TUNED):
        return False
    # One arena, because those of other threads cannot hold large blocks and would ask the system for them.
    return all(mallopt(option, value) for option, value in ((_MMAP_MAX, 0), (_TRIM_THRESHOLD, -1), (_ARENA_MAX, 1)))


def _multiply_by_eigen() -> bool:
    flags = os.environ.get("XLA_FLAGS", "")
    if _PRODUCTS in flags or not jaxlib.version.__version__.startswith(_TRIED):
        return False
    os.environ["XLA_FLAGS"] = f"{flags} --{_PRODUCTS}=".strip()
    return True
