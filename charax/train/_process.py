"""Settings of the process and of the compiler that make a step of training faster on CPUs."""

import contextlib
import ctypes
import functools
import os
import sys
from collections.abc import Callable, Iterator, MutableMapping
from importlib.metadata import entry_points
from importlib.util import find_spec
from pathlib import Path
from typing import Any, ClassVar

_TRIM_THRESHOLD, _MMAP_MAX = -1, -4  # of glibc's malloc.h
_MALLOC_VARIABLES = ("GLIBC_TUNABLES", "MALLOC_MMAP_MAX_", "MALLOC_TRIM_THRESHOLD_")
_PRODUCTS = "xla_cpu_experimental_ynn_fusion_type"
_KNOWN_TO = ("0.9.", "0.10.")
"""Versions of jaxlib that know the option."""
_DEVICES_FLAG = "xla_force_host_platform_device_count"
_MAX_CPU_DEVICES, _LEAST_SAMPLES = 8, 16
"""Devices that are made of the cores, and samples of a mini-batch that each of them gets at least."""


def tune_process() -> None:
    """Make training faster on CPUs. Call it before the first computation; the `charax` command does.

    malloc keeps the memory that the process frees. A step of training allocates its temporaries as one block, frees it,
    and allocates it again; by default glibc returns blocks of that size to the system, which has to clear every page
    again: a third of the time of an image classifier's step. In exchange the process stays as large as it once was.
    JAX then computes on the calling thread, because malloc keeps large blocks for the main thread only. Nothing of
    this is changed where malloc is not glibc's, or where its environment variables say how it should behave.

    Every core becomes a device of JAX, so that the cores can share a mini-batch of small images (`share_cores`).

    Nothing at all is changed where JAX will compute on a GPU or TPU.

    ```python
    from charax.train import tune_process

    tune_process()
    ```
    """
    if not computes_on_cpu():
        return
    import jax

    if keep_freed_memory():
        jax.config.update("jax_cpu_enable_async_dispatch", False)
    if jax.config.jax_num_cpu_devices < 0 and _DEVICES_FLAG not in os.environ.get("XLA_FLAGS", ""):  # pyright: ignore[reportAttributeAccessIssue]
        with contextlib.suppress(RuntimeError):  # it is too late: JAX has computed already
            jax.config.update("jax_num_cpu_devices", min(count_cores(), _MAX_CPU_DEVICES))
            _Cores.are_devices = True


class _Cores:
    """What `tune_process` has made of the cores."""

    are_devices: ClassVar[bool] = False
    """Whether each is a device of JAX, and the user has not chosen the devices."""
    are_shared: ClassVar[bool] = True
    """Whether a run may use several of them."""


def count_cores() -> int:
    """The number of cores of this process.

    Returns:
        The number of cores, or what the environment variable NPROC says, as XLA has it.
    """
    given = os.environ.get("NPROC", "")
    if given.isdecimal() and int(given):
        return int(given)
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def share_cores(batch_size: int, *, wanted: bool) -> int | None:
    """Choose how many cores share a mini-batch, if `tune_process` has made devices of them.

    Args:
        batch_size: Samples per mini-batch.
        wanted: Whether the task would have it so (`AbstractTask.shares_cores`).

    Returns:
        The number of cores; None for all devices of JAX, where these are not our own.
    """
    import jax

    if not _Cores.are_devices:
        return None
    if not wanted or not _Cores.are_shared:
        return 1
    fits = lambda cores: batch_size % cores == 0 and batch_size // cores >= _LEAST_SAMPLES
    return max(cores for cores in range(1, jax.local_device_count() + 1) if cores == 1 or fits(cores))


@contextlib.contextmanager
def on_one_device() -> Iterator[None]:
    """Let the runs of a sweep share no cores: workers have cores of their own, and results must not depend on them."""
    before, _Cores.are_shared = _Cores.are_shared, False
    try:
        yield
    finally:
        _Cores.are_shared = before


def give_up_shared_cores() -> None:
    """Leave the cores of this process to one device, where it will train together with other processes."""
    import jax

    if _Cores.are_devices:
        jax.config.update("jax_num_cpu_devices", -1)
        _Cores.are_devices = False


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


def compile_with(
    options: Callable[[], dict[str, bool | int | str]],
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Make a decorator like `equinox.filter_jit` with compiler options that depend on the platform.

    The first call asks for the platform, since importing a module must not start it.

    Args:
        options: Returns the options, such as `quick_compilation`.

    Returns:
        The decorator.

    ```python
    import jax.numpy as jnp
    from charax.train import compile_with, quick_compilation

    @compile_with(quick_compilation)
    def double(x):
        return 2 * x

    assert double(jnp.ones(3)).sum() == 6
    ```
    """

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.cache
        def compiled() -> Callable[..., Any]:
            import equinox as eqx

            return eqx.filter_jit(function, compiler_options=options() or None)  # pyright: ignore[reportCallIssue]

        @functools.wraps(function)
        def call(*args: Any) -> Any:
            return compiled()(*args)

        return call

    return decorate
