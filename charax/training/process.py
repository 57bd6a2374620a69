"""Settings of the process that make a step of training faster on CPUs."""

import ctypes
import os

import jax
import jaxlib.version

_TRIM_THRESHOLD, _MMAP_MAX = -1, -4  # of glibc's malloc.h
_TUNED = ("GLIBC_TUNABLES", "MALLOC_MMAP_MAX_", "MALLOC_TRIM_THRESHOLD_")
_PRODUCTS = "xla_cpu_experimental_ynn_fusion_type"
_TRIED = ("0.9.", "0.10.")
"""Versions of jaxlib that know the flag: XLA ends a process with a flag that it does not know."""


def tune_process(threads: int | None = None) -> None:
    """Make training faster on CPUs. Call it before the first computation; every `charax …` command does.

    With `threads` XLA computes on so many instead of one for each core. Perceptrons of some ten columns are faster on
    one: sharing an operation of a few microseconds takes longer than the operation. `NPROC=1` in the environment of a
    command does the same.

    - malloc keeps the memory that the process frees. A step of training allocates its temporaries as one block, frees
      it, and allocates it again; by default glibc gives blocks of that size back to the system, which has to clear
      every page anew: a third of the time of an image classifier's step. The price is that the process stays as large
      as it once was. JAX then computes on the thread that asks for it, because malloc keeps large blocks for the main
      thread only.
    - XLA multiplies small matrices by Eigen and not by YNNPACK, which wakes the other cores for them: a fifth to a
      third of the time of a dense field. Large products and convolutions take as long as before.

    What the user has set (malloc's environment variables, the same flag in `XLA_FLAGS`) is left alone, and so is
    what cannot be set: another malloc, a version of jaxlib this was not tried with, or one that has begun to compute.

    ```python
    from charax.training import tune_process

    tune_process()
    ```
    """
    if threads is not None:
        if threads < 1:
            raise ValueError(f"threads must be at least 1, got {threads}")
        os.environ["NPROC"] = str(threads)
    _keep_freed_memory()
    _multiply_by_eigen()


def _keep_freed_memory() -> bool:
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None) if os.name == "posix" else None
    if mallopt is None or any(name in os.environ for name in _TUNED):
        return False
    kept = all(mallopt(option, value) for option, value in ((_MMAP_MAX, 0), (_TRIM_THRESHOLD, -1)))
    jax.config.update("jax_cpu_enable_async_dispatch", not kept)
    return kept


def _multiply_by_eigen() -> bool:
    flags = os.environ.get("XLA_FLAGS", "")
    if _PRODUCTS in flags or not jaxlib.version.__version__.startswith(_TRIED):
        return False
    os.environ["XLA_FLAGS"] = f"{flags} --{_PRODUCTS}=".strip()
    return True
