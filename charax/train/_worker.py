"""A worker process of a sweep: its share of the cores, and one job after the other."""

import os
import signal
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

from charax.train._journal import Journal
from charax.train._process import on_one_device, tune_process, use_compilation_cache
from charax.train._sweep import AbstractJob, describe_error


class Share(NamedTuple):
    """How the cores of this machine are shared among worker processes."""

    workers: int
    """Number of workers."""
    locks: Path
    """A folder in which each worker locks the number of its share, until it ends."""


class Failure(NamedTuple):
    """Why a job failed. The exception itself may not survive being pickled."""

    reason: str
    bad_input: bool
    """Whether the settings or the data were the cause."""

    def error(self) -> Exception:
        """The exception that the caller raises."""
        return ValueError(self.reason) if self.bad_input else RuntimeError(self.reason)


@dataclass(frozen=True)
class WorkItem:
    """A job, where its progress is written to, and the share of the machine that its process gets."""

    job: AbstractJob[Any]
    journal: Path
    share: Share | None = None
    """None where the cluster decides."""

    def __call__(self) -> Failure | None:
        """Compute the job, in a worker.

        Returns:
            Why it failed, if it did.
        """
        if self.share is not None:
            _Process.prepare(self.share)
        journal = Journal(self.journal)
        try:
            with on_one_device():
                self.job.compute(journal)
        except (Exception, KeyboardInterrupt) as error:
            return Failure(describe_error(error), isinstance(error, ValueError))
        finally:
            journal.close()
        return None


class _Process:
    """What this process was given, once: a worker computes several jobs."""

    prepared: ClassVar[bool] = False
    lock: ClassVar[int] = -1

    @classmethod
    def prepare(cls, share: Share) -> None:
        if cls.prepared:
            return
        cls.prepared = True
        number = cls._claim(share)
        _pin(number, share.workers)
        threading.Thread(target=_end_with_parent, args=(os.getppid(),), daemon=True).start()
        use_compilation_cache()
        tune_process()

    @classmethod
    def _claim(cls, share: Share) -> int:
        """The first share that no other process has. The lock ends with the process, however that ends."""
        try:
            import fcntl
        except ModuleNotFoundError:  # Windows: no locks of this kind, and no pinning
            return 0
        for number in range(share.workers):
            descriptor = os.open(share.locks / f"share-{number}", os.O_CREAT | os.O_RDWR)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                os.close(descriptor)
            else:
                cls.lock = descriptor
                return number
        return 0


def split_evenly(items: list[Any], number: int, parts: int) -> list[Any]:
    """One of several parts of a list, which differ by at most one item; never empty.

    Args:
        items: The list.
        number: The part, counted from 0.
        parts: The number of parts.

    Returns:
        The part; parts of a list that has fewer items than that share them.

    ```python
    from charax.train._worker import split_evenly

    assert [split_evenly([0, 1, 2], number, 2) for number in range(2)] == [[0], [1, 2]]
    assert [split_evenly([0, 1], number, 3) for number in range(3)] == [[0], [0], [1]]
    ```
    """
    start, end = number * len(items) // parts, (number + 1) * len(items) // parts
    return items[start : max(end, start + 1)]


def _pin(number: int, workers: int) -> None:
    """Keep this process on its share of the cores and GPUs. Before JAX makes its first array.

    XLA still gets as many threads as all cores would have: their number decides how sums are split, and so the last
    bits of a result, which must not depend on the number of workers. Threads that share a core cost no time.
    """
    if hasattr(os, "sched_getaffinity"):
        cores = sorted(os.sched_getaffinity(0))
        os.environ.setdefault("NPROC", str(len(cores)))
        os.sched_setaffinity(0, split_evenly(cores, number, workers))
    gpus = os.environ.get("CUDA_VISIBLE_DEVICES", "")
    if "," in gpus:
        os.environ["CUDA_VISIBLE_DEVICES"] = ",".join(split_evenly(gpus.split(","), number, workers))


def _end_with_parent(parent: int) -> None:
    """Stop this process, as SIGTERM does, when the one that started it is gone."""
    while os.getppid() == parent:
        time.sleep(1)
    os.kill(os.getpid(), signal.SIGTERM)
