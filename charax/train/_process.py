"""Settings of the process and of the compiler that make a step of training faster on CPUs."""

import ctypes
import os
import sys
from collections.abc import MutableMapping
from importlib.metadata import entry_points
from importlib.util import find_spec
from pathlib import Path

_TRIM_THRESHOLD, _MMAP_MAX = -1, -4  # of glibc's malloc.h
_MALLOC_VARIABLES = ("GLIBC_TUNABLES", "MALLOC_MMAP_MAX_", "MALLOC_TRIM_THRESHOLD_")
_PRODUCTS = "xla_cpu_experimental_ynn_fusion_type"
_KNOWN_TO = ("0.9.", "0.10.")
"""Versions of jaxlib that know the option."""


def tune_process() -> None:
    """Make training faster on CPUs. Call it before the first computation; the `charax` command does.

    malloc keeps the memory that the process frees. A step of training allocates its temporaries as one block, frees it,
    and allocates it again; by default glibc returns blocks of that size to the system, which has to clear every page
    again: a third of the time of an image classifier's step. In exchange the process stays as large as it once was.
    JAX then computes on the calling thread, because malloc keeps large blocks for the main thread only. Nothing is
    changed where malloc is not glibc's, where its environment variables say how it should behave, or where JAX will
    compute on a GPU or TPU.

    ```python
    from charax.train import tune_process

    tune_process()
    ```
    """
    if computes_on_cpu() and keep_freed_memory():
        import jax

        jax.config.update("jax_cpu_enable_async_dispatch", False)


def computes_on_cpu() -> bool:
    """Whether JAX will compute on CPUs, as far as that is known before it has looked for devices.

    Returns:
        True if JAX_PLATFORMS says so, or if no plugin for other devices is installed.
    """
    platforms = os.environ.get("JAX_PLATFORMS", "")
    if platforms:
        return platforms.split(",")[0] == "cpu"
    return not entry_points(group="jax_plugins") and find_spec("libtpu") is None


def keep_freed_memory() -> bool:
    """Tell glibc's malloc to keep freed blocks; False where that is not possible or not wanted."""
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None) if os.name == "posix" else None
    if mallopt is None or any(name in os.environ for name in _MALLOC_VARIABLES):
        return False
    return all(mallopt(option, value) for option, value in ((_MMAP_MAX, 0), (_TRIM_THRESHOLD, -1)))


def release_freed_memory() -> None:
    """Return what was freed to the system, once, also where malloc keeps it."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None) if os.name == "posix" else None
    if trim is not None:
        trim(0)


def use_compilation_cache(environment: MutableMapping[str, str] | None = None) -> Path:
    """Keep compiled programs from one process to the next, in a folder of the user's cache. The `charax` command does.

    Call it at the start of a program or a notebook: the first fit of an estimator then mostly takes the time of a
    later one, from the second process on.

    Args:
        environment: The environment variables to set; those of this process if left out. What JAX's own variables
            say already is left alone.

    Returns:
        The folder of the cache.

    ```python
    from charax.train import use_compilation_cache

    folder = use_compilation_cache({})
    assert folder.name == "jax"
    ```
    """
    variables = os.environ if environment is None else environment
    default = Path(variables.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "charax" / "jax"
    variables.setdefault("JAX_COMPILATION_CACHE_DIR", str(default))
    variables.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0.2")
    folder = Path(variables["JAX_COMPILATION_CACHE_DIR"])
    if environment is None and "jax" in sys.modules:  # JAX has read its variables already
        _tell_jax(folder, float(variables["JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS"]))
    return folder


def _tell_jax(folder: Path, least_seconds: float) -> None:
    import jax
    from jax.experimental.compilation_cache import compilation_cache

    if jax.config.jax_compilation_cache_dir is None:  # pyright: ignore[reportAttributeAccessIssue]
        jax.config.update("jax_compilation_cache_dir", str(folder))
        jax.config.update("jax_persistent_cache_min_compile_time_secs", least_seconds)
        compilation_cache.reset_cache()  # a program that was compiled before has switched it off


def small_products() -> dict[str, bool | str]:
    """Options of `jax.jit` for perceptrons of some tens of columns: XLA multiplies by Eigen and not by YNNPACK.

    YNNPACK wakes the other cores for products that are too small for it: a third of the time of a dense field's
    gradient. For images it is faster by far. The training loop decides by the data.

    Returns:
        Compiler options; none on a GPU or TPU, or for a version of jaxlib that does not know them.

    ```python
    import jax
    import jax.numpy as jnp
    from charax.train import small_products

    multiply = jax.jit(jnp.matmul, compiler_options=small_products())
    assert multiply(jnp.ones((2, 3)), jnp.ones((3, 1))).shape == (2, 1)
    ```
    """
    import jax
    import jaxlib.version

    known = jaxlib.version.__version__.startswith(_KNOWN_TO)
    return {_PRODUCTS: ""} if known and jax.default_backend() == "cpu" else {}


def quick_compilation() -> dict[str, bool | int | str]:
    """Options of `jax.jit` for programs that run for about as long as they compile: less optimization by LLVM.

    It is for the first fit of an estimator to a small table, which is mostly compilation.

    Returns:
        Compiler options; none on a GPU or TPU.

    ```python
    import jax
    import jax.numpy as jnp
    from charax.train import quick_compilation

    assert jax.jit(jnp.sin, compiler_options=quick_compilation())(0.0) == 0
    ```
    """
    import jax

    return {"xla_backend_optimization_level": 1} if jax.default_backend() == "cpu" else {}
