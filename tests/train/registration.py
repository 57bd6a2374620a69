"""The one line that makes a task known, taken back afterwards."""

import contextlib
from collections.abc import Iterator

from charax.train import register_task
from charax.train._registry import _TASKS
from tests.train.line_task import LineConfig


@contextlib.contextmanager
def registered_line() -> Iterator[None]:
    register_task(LineConfig)
    try:
        yield
    finally:
        del _TASKS[LineConfig.name]
