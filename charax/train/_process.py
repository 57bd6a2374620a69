"""Settings of the process and of the compiler that make a step of training faster on CPUs."""

import ctypes
import os

import jax
import jaxlib.version

_TRIM_THRESHOLD, _MMAP_MAX = -1, -4  # of glibc's malloc.h
_TUNED = ("GLIBC_TUNABLES", "MALLOC_MMAP_MAX_", "MALLOC_TRIM_THRESHOLD_")
_PRODUCTS = "xla_cpu_experimental_ynn_fusion_type"
_TRIED = ("0.9.", "0.10.")
"""Versions of jaxlib that know the option."""


def tune_process() -> None:
    """Make training faster on CPUs. Call it before the first computation; every `charax …` command does.

    malloc keeps the memory that the process frees. A step of training allocates its temporaries as one block, frees it,
    and allocates it again; by default glibc gives blocks of that size back to the system, which has to clear every page
    anew: a third of the time of an image classifier's step. The price is that the process stays as large as it once
    was. JAX then computes on the thread that asks for it, because malloc keeps large blocks for the main thread only.
    It does nothing where malloc is not glibc's, or where its environment variables say how it should behave.

    ```python
    from charax.train import tune_process

    tune_process()
    ```
    """
    _keep_freed_memory()


def _keep_freed_memory() -> bool:
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None) if os.name == "posix" else None
    if mallopt is None or any(name in os.environ for name in _TUNED):
        return False
    kept = all(mallopt(option, value) for option, value in ((_MMAP_MAX, 0), (_TRIM_THRESHOLD, -1)))
    jax.config.update("jax_cpu_enable_async_dispatch", not kept)
    return kept


def small_products() -> dict[str, bool | str]:
    """Options of `jax.jit` for perceptrons of some ten columns: XLA multiplies by Eigen and not by YNNPACK.

    YNNPACK wakes the other cores for products that are not worth it: a third of the time of a dense field's gradient.
    For images it is the better one, by far. The training loop decides by the data.

    ```python
    import jax
    import jax.numpy as jnp
    from charax.train import small_products

    multiply = jax.jit(jnp.matmul, compiler_options=small_products())
    assert multiply(jnp.ones((2, 3)), jnp.ones((3, 1))).shape == (2, 1)
    ```
    """
    return {_PRODUCTS: ""} if jaxlib.version.__version__.startswith(_TRIED) else {}
