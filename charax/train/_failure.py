"""Recognize a solve that failed as an exception."""

import contextlib
import logging
from collections.abc import Callable, Iterator
from typing import ParamSpec, TypeVar

import jax

P = ParamSpec("P")
T = TypeVar("T")


def catch_failed_solve(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T | None:
    """Call a compiled function and wait for its result.

    The backward solve of `backsolve` has no solution that could carry its outcome, so diffrax raises. JAX passes that
    on as a `JaxRuntimeError`, or as a `ValueError` if it computes on the calling thread.

    Args:
        function: The function.
        args: Its arguments.
        kwargs: Its keyword arguments.

    Returns:
        The result, or None if a solve failed on the way.
    """
    try:
        with _silent_callbacks():
            return jax.block_until_ready(function(*args, **kwargs))
    except (jax.errors.JaxRuntimeError, ValueError) as error:
        if "EquinoxRuntimeError" not in str(error):  # anything but a failed solve
            raise
        return None


@contextlib.contextmanager
def _silent_callbacks() -> Iterator[None]:
    """JAX logs the traceback of a callback that fails, although it passes the exception on."""
    logger = logging.getLogger("jax._src.callback")
    before, logger.disabled = logger.disabled, True
    try:
        yield
    finally:
        logger.disabled = before
