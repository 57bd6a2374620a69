"""Ways in which a run ends early."""

import contextlib
import signal
import threading
from collections.abc import Iterator


class Interrupted(KeyboardInterrupt):
    """A signal asked the run to stop, and it was saved."""

    def __init__(self, message: str, number: int):
        super().__init__(message)
        self.signal = number


class Diverged(RuntimeError):
    """Too many steps in a row had to be skipped."""


class StopRequest:
    """The signal that was received, if one was."""

    number: int | None = None


@contextlib.contextmanager
def listen() -> Iterator[StopRequest]:
    """Note Ctrl-C and SIGTERM instead of dying of them; the second one is obeyed at once."""
    request = StopRequest()
    if threading.current_thread() is not threading.main_thread():
        yield request  # only the main thread may listen to signals
        return
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}

    def note(number, frame):
        request.number = number
        for each, handler in before.items():
            signal.signal(each, handler)

    for number in before:
        signal.signal(number, note)
    try:
        yield request
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
