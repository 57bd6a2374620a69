"""How a run ends early: signals and divergence."""

import contextlib
import signal
import threading
from collections.abc import Iterator


class Interrupted(KeyboardInterrupt):
    """A signal stopped the run after its state was saved."""

    def __init__(self, message: str, number: int):
        """Describe the interruption.

        Args:
            message: How to resume.
            number: The number of the signal.
        """
        super().__init__(message)
        self.signal = number


class Diverged(RuntimeError):
    """Too many steps in a row had to be skipped."""


class SaveError(RuntimeError):
    """The folder of a run could not be written to. The message says why, what is kept, and how to resume it."""


class StopRequest:
    """The signal that was received, if any."""

    number: int | None = None


@contextlib.contextmanager
def listen() -> Iterator[StopRequest]:
    """Record Ctrl-C and SIGTERM instead of stopping at once; a second signal stops at once."""
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
