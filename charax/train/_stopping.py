"""How a run ends early: signals and divergence."""

import contextlib
import os
import signal
import threading
from collections.abc import Iterator


class Interrupted(KeyboardInterrupt):
    """A signal stopped the run after its state was saved.

    ```python
    import signal

    from charax.train import Interrupted

    try:
        raise Interrupted("resume with: charax resume runs/mine", signal.SIGTERM)  # as `train` does after a signal
    except Interrupted as error:
        assert error.signal == signal.SIGTERM and "resume" in str(error)
    ```
    """

    def __init__(self, message: str, number: int):
        """Describe the interruption.

        Args:
            message: How to resume.
            number: The number of the signal.
        """
        super().__init__(message)
        self.signal = number


class Diverged(RuntimeError):
    """Too many steps in a row had to be skipped.

    ```python
    from charax.train import Diverged

    try:
        raise Diverged("10 steps in a row were skipped: lower the learning rate")  # as `train` does
    except Diverged as error:
        assert "learning rate" in str(error)
    ```
    """


class SaveError(RuntimeError):
    """The folder of a run could not be written to. The message says why, what is kept, and how to resume it.

    ```python
    from charax.train import SaveError

    try:
        raise SaveError("runs/mine cannot be written to: no space left on device")  # as `train` does
    except SaveError as error:
        assert "runs/mine" in str(error)
    ```
    """


class StopRequest:
    """The signal that was received, if any."""

    number: int | None = None

    def is_due(self, step: int) -> bool:
        """Whether to stop before a step. Steps are asked for in order."""
        return self.number is not None


class _SharedStopRequest(StopRequest):
    """A signal to any of the processes stops all of them, before the same step: JAX's notice of preemption."""

    def is_due(self, step: int) -> bool:
        from jax.experimental.multihost_utils import reached_preemption_sync_point

        if not reached_preemption_sync_point(step):
            return False
        self.number = self.number or signal.SIGTERM
        return True


@contextlib.contextmanager
def listen(*, shared: bool = False) -> Iterator[StopRequest]:
    """Record Ctrl-C and SIGTERM instead of stopping at once; a second signal stops at once.

    Between processes (`shared`) JAX listens to SIGTERM, and Ctrl-C is passed on as that.
    """
    request = _SharedStopRequest() if shared else StopRequest()
    if threading.current_thread() is not threading.main_thread():
        yield request  # only the main thread may listen to signals
        return
    numbers = (signal.SIGINT,) if shared else (signal.SIGINT, signal.SIGTERM)
    before = {number: signal.getsignal(number) for number in numbers}

    def note(number, frame):
        request.number = number
        for each, handler in before.items():
            signal.signal(each, handler)
        if shared:
            os.kill(os.getpid(), signal.SIGTERM)

    for number in before:
        signal.signal(number, note)
    try:
        yield request
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
