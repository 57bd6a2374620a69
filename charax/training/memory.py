"""Keep freed memory in the process."""

import ctypes
import os

_TRIM_THRESHOLD, _MMAP_MAX, _ARENA_MAX = -1, -4, -8  # of glibc's malloc.h
_TUNED = ("GLIBC_TUNABLES", "MALLOC_ARENA_MAX", "MALLOC_MMAP_MAX_", "MALLOC_TRIM_THRESHOLD_")


def keep_freed_memory() -> bool:
    """Ask malloc to keep the memory that the process frees; whether it agreed.

    A step of training allocates its temporaries as one block, frees it, and allocates it again. By default glibc gives
    blocks of that size back to the system, which has to clear every page anew: a quarter of the time of an image
    classifier's step. The price is that the process stays as large as it once was.

    Call it before the first computation; every `charax …` command does. Threads that have an arena of their own by then
    are not bound by it, so that it does not help every process. It does nothing where malloc is not glibc's,
    or where its environment variables say how it should behave.

    ```python
    from charax.training import keep_freed_memory

    keep_freed_memory()
    ```
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None) if os.name == "posix" else None
    if mallopt is None or any(name in os.environ for name in _TUNED):
        return False
    # One arena, because those of other threads cannot hold large blocks and would ask the system for them.
    return all(mallopt(option, value) for option, value in ((_MMAP_MAX, 0), (_TRIM_THRESHOLD, -1), (_ARENA_MAX, 1)))
