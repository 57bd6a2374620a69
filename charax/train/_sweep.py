"""Many runs: at the same time on this machine, or on a cluster. One run that fails leaves the others alone."""

import contextlib
import os
import signal
import tempfile
import threading
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, Literal, TypeVar

from charax.train._checks import check_range
from charax.train._process import on_one_device
from charax.train._progress import AbstractProgress, Silent
from charax.train._stopping import Interrupted

T = TypeVar("T")
Backend = Literal["loky", "dask", "ray"]


class AbstractJob(ABC, Generic[T]):
    """A part of a sweep: settings, and the place of its result. It is pickled, and computed in any process.

    What was computed stays in its place, so that a sweep that is repeated resumes where it was interrupted.

    ```python
    import tempfile
    from dataclasses import dataclass
    from pathlib import Path

    from charax.train import AbstractJob, Sweep

    @dataclass
    class Square(AbstractJob[int]):
        number: int
        place: Path

        def is_finished(self):
            return self.place.exists()

        def compute(self, progress):
            self.place.write_text(str(self.number**2))
            return self.load()

        def load(self):
            return int(self.place.read_text())

    with tempfile.TemporaryDirectory() as folder:
        jobs = [Square(number, Path(folder) / f"{number}.txt") for number in (2, 3)]
        assert Sweep().run(jobs) == [4, 9]
    ```
    """

    place: Path
    """The folder or the file of the result."""

    @abstractmethod
    def is_finished(self) -> bool:
        """Whether the result is in its place.

        Returns:
            True if it can be loaded.

        Raises:
            ValueError: If there is a result of other settings; the message names them.
        """

    @abstractmethod
    def compute(self, progress: AbstractProgress) -> T:
        """Compute the result and leave it in its place; resume what is there of it.

        Args:
            progress: Where to report.

        Returns:
            The result.
        """

    @abstractmethod
    def load(self) -> T:
        """Load a result that is finished.

        Returns:
            The result.
        """


@dataclass(frozen=True)
class SweepConfig:
    """How many runs are trained at the same time, and where.

    ```python
    import charax

    assert charax.SweepConfig(jobs=2).is_local
    assert not charax.SweepConfig(slurm="gpu", minutes=30).is_local
    ```
    """

    jobs: int | None = None
    """Runs that are trained at the same time, each on its share of the cores: 1 by default. Results do not depend on
    it."""
    backend: Backend = "loky"
    """Where the runs are trained: loky, in processes of this machine; dask or ray, on the cluster at --address. All
    machines must see the folder of the runs."""
    address: str | None = None
    """Address of the cluster of dask or ray."""
    slurm: str | None = None
    """Submit the runs to this partition of Slurm, as an array of jobs; local starts them on this machine instead."""
    minutes: int | None = None
    """Time limit of a run that is submitted to Slurm, 240 by default. Call the command again to resume those that
    needed more."""

    def __post_init__(self):
        check_range(self, least={"jobs": 1, "minutes": 1})
        if self.backend != "loky" and self.slurm is not None:
            raise ValueError("--backend and --slurm exclude each other: give one of them")
        if self.minutes is not None and self.slurm is None:
            raise ValueError("--minutes is a limit of Slurm's jobs: leave it out, or give --slurm")
        if (self.backend == "loky") != (self.address is None):
            raise ValueError("--backend dask or ray and --address, such as tcp://HOST:8786, go together: give both")
        if self.backend != "loky" and self.jobs is not None:
            raise ValueError(f"a cluster of {self.backend} has as many workers as it has: leave --jobs out")

    @property
    def is_local(self) -> bool:
        """Whether all runs are trained by processes of this machine that belong to this one."""
        return self.backend == "loky" and self.slurm is None


class SweepError(RuntimeError):
    """Some runs of a sweep failed. The message names them; the others are kept.

    ```python
    from charax.train import SweepError

    try:
        raise SweepError("1 of 5 runs failed: seed3: the solve failed")  # as `train_seeds` does
    except SweepError as error:
        assert "seed3" in str(error)
    ```
    """


class Sweep:
    """Computes jobs at the same time, and loads those that were computed before.

    ```python
    import tempfile
    from pathlib import Path

    import charax

    config = charax.ClassificationConfig(preset="dense", method="node", width=4, loop=charax.LoopConfig(epochs=1))
    with tempfile.TemporaryDirectory() as folder:
        (run,) = charax.Sweep().run([charax.TrainingJob(config, Path(folder) / "run")])
    assert run.summary()["accuracy"] <= 1
    ```
    """

    def __init__(self, config: SweepConfig | None = None, *, progress: AbstractProgress | None = None):
        """Choose where to compute.

        Args:
            config: How many at the same time, and where; one after the other in this process if left out.
            progress: Where to report; nowhere if left out.
        """
        self.config = config or SweepConfig()
        self.progress = progress or Silent()

    def run(self, jobs: Sequence[AbstractJob[T]]) -> list[T]:
        """Compute the jobs that are not finished.

        Args:
            jobs: The jobs, each with a place of its own.

        Returns:
            Their results, in the same order.

        Raises:
            ValueError: If one of the places has a result of other settings; nothing is computed then. Or if settings or
                data of some jobs cannot be used; the others are finished.
            SweepError: If some jobs failed in another way; the others are finished.
            Interrupted: If a signal asked for it. The same call resumes.
        """
        waiting = {label: job for label, job in zip(_name(jobs), jobs, strict=True) if not job.is_finished()}
        computed: dict[str, T] = {}
        failed: dict[str, Exception] = {}
        if self.config.is_local and min(self.config.jobs or 1, len(waiting)) <= 1:
            self._run_here(waiting, computed, failed)
        elif waiting:
            self._run_elsewhere(waiting, failed)
        if len(jobs) == 1:
            for error in failed.values():
                raise error
        _raise_failures({label: failed[label] for label in waiting if label in failed}, len(jobs))
        return [
            computed[label] if label in computed else job.load() for label, job in zip(_name(jobs), jobs, strict=True)
        ]

    def run_groups(self, groups: Sequence[Sequence[AbstractJob[T]]]) -> list[list[T]]:
        """Compute groups of jobs, such as the seeds of the rows of a table, all of them in one sweep.

        The first of every group come first, so that an interrupted table is complete for the first seeds.

        Args:
            groups: The groups.

        Returns:
            Their results.

        Raises:
            ValueError: As `run` does, and if a group is empty.
            SweepError: As `run` does.
            Interrupted: As `run` does.
        """
        if not all(groups):
            raise ValueError("seeds must be at least 1: there is nothing to average")
        order = sorted((number, row) for row, group in enumerate(groups) for number in range(len(group)))
        results = self.run([groups[row][number] for number, row in order])
        found = dict(zip(order, results, strict=True))
        return [[found[number, row] for number in range(len(group))] for row, group in enumerate(groups)]

    def _run_here(
        self, jobs: Mapping[str, AbstractJob[T]], computed: dict[str, T], failed: dict[str, Exception]
    ) -> None:
        """One after the other, in this process."""
        for label, job in jobs.items():
            self.progress.say(label)
            try:
                with on_one_device():
                    computed[label] = job.compute(self.progress)
            except Exception as error:
                self._note(label, error, failed)

    def _run_elsewhere(self, jobs: Mapping[str, AbstractJob[T]], failed: dict[str, Exception]) -> None:
        """At the same time, in other processes. What they compute is loaded afterwards."""
        from charax.train._executors import make_executor
        from charax.train._journal import follow_journals
        from charax.train._worker import WorkItem

        labels, shared = list(jobs), _shared_folder(list(jobs.values()))
        shared.mkdir(parents=True, exist_ok=True)
        # In the folder of the results, which every machine of a cluster sees.
        with tempfile.TemporaryDirectory(prefix=".sweep-", dir=shared, ignore_cleanup_errors=True) as name:
            items = [WorkItem(job, Path(name) / f"{number}.jsonl") for number, job in enumerate(jobs.values())]
            executor = make_executor(self.config, Path(name), len(items))
            journals = {item.journal: label for item, label in zip(items, labels, strict=True)}
            outcomes = contextlib.closing(executor.run(items))
            with _interruptible(), follow_journals(journals, self.progress), outcomes as ended:
                for number, error in ended:
                    if error is not None:
                        self._note(labels[number], error, failed)

    def _note(self, label: str, error: Exception, failed: dict[str, Exception]) -> None:
        self.progress.say(f"{label} failed: {describe_error(error)}")
        failed[label] = error


def _shared_folder(jobs: Sequence[AbstractJob[Any]]) -> Path:
    return Path(os.path.commonpath([job.place.absolute().parent for job in jobs]))


def _name(jobs: Sequence[AbstractJob[Any]]) -> list[str]:
    """A name for each, by which the user finds its place."""
    shared = _shared_folder(jobs) if jobs else Path()
    return [str(job.place.absolute().relative_to(shared)).removesuffix(".json") for job in jobs]


@contextlib.contextmanager
def _interruptible() -> Iterator[None]:
    """Ctrl-C and SIGTERM leave the workers no longer than this process, and say how to resume."""

    def stop(number: int, frame: object) -> None:
        raise Interrupted("interrupted; call the same command again to resume the runs", number)

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def describe_error(error: BaseException) -> str:
    """The first line of an error.

    Args:
        error: The error.

    Returns:
        One line of text.
    """
    return (str(error).strip().splitlines() or [type(error).__name__])[0]


def _raise_failures(failed: Mapping[str, Exception], total: int) -> None:
    if not failed:
        return
    by_reason: dict[str, list[str]] = {}
    for label, error in failed.items():
        by_reason.setdefault(describe_error(error), []).append(label)
    named = "; ".join(f"{', '.join(labels)}: {reason}" for reason, labels in by_reason.items())
    kept = "" if len(failed) == total else "; the others are finished, and calling the command again repeats only these"
    kind = ValueError if all(isinstance(error, ValueError) for error in failed.values()) else SweepError
    raise kind(f"{len(failed)} of {total} runs failed: {named}{kept}")
