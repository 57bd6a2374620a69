"""What every file must be, however odd: read, or refused in one sentence, soon, and without filling the machine."""

import time
import warnings
from collections.abc import Callable
from pathlib import Path

MOST_SECONDS = 5.0
MOST_MEGABYTES = 1000.0
_RESET, _STATUS = Path("/proc/self/clear_refs"), Path("/proc/self/status")


def megabytes(name: str) -> float:
    """The size of this process now (VmRSS), or the largest since it was started or the peak was reset (VmHWM).

    Not from `resource`, where the size of the process that started this one counts, too.
    """
    line = next(line for line in _STATUS.read_text().splitlines() if line.startswith(f"{name}:"))
    return int(line.split()[1]) / 1024


def _reset_peak() -> float | None:
    """Forget the largest size of this process; returns its size now, or None where that cannot be asked for."""
    try:
        _RESET.write_text("5")
        return megabytes("VmRSS")
    except OSError:
        return None


def check(read: Callable[[], object], name: str) -> str | None:
    """Read a file; returns the sentence by which it is refused, if it is, which must have this name in it."""
    before, started, reason = _reset_peak(), time.thread_time(), None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            read()
        except (ValueError, OSError) as error:  # what the command line prints as it is; anything else is a bug
            reason = str(error)
    assert time.thread_time() - started < MOST_SECONDS
    if before is not None:
        assert megabytes("VmHWM") - before < MOST_MEGABYTES
    if reason is not None:
        assert name in reason, reason
        assert "\n" not in reason, reason
        assert len(reason) < 2000, reason
    return reason
