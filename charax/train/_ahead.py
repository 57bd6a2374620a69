"""Work that a second core does while the first one trains."""

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")


def begin(function: Callable[..., T], *args: object) -> Future[T]:
    """Call a function in a thread of its own, which ends with it. What it raises, `result()` raises."""
    thread = ThreadPoolExecutor(1, thread_name_prefix="charax-ahead")
    future = thread.submit(function, *args)
    thread.shutdown(wait=False)
    return future
