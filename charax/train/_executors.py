"""Where the jobs of a sweep are computed: joblib's processes and clusters, or Slurm."""

import time
from abc import ABC, abstractmethod
from collections.abc import Generator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

from charax.train._sweep import SweepConfig, describe_error
from charax.train._worker import Failure, Share, WorkItem

Outcome = tuple[int, Exception | None]
"""The number of an item, and why it failed, if it did."""
_MINUTES = 240
_EVERY = 0.5
"""Seconds between two looks at what has ended."""


class AbstractExecutor(ABC):
    """Computes the items of a sweep."""

    @abstractmethod
    def run(self, items: Sequence[WorkItem]) -> Generator[Outcome, None, None]:
        """Compute all items, at the same time as far as possible.

        Args:
            items: The items.

        Yields:
            Their outcomes, in the order in which they end.
        """


def make_executor(config: SweepConfig, folder: Path, items: int) -> AbstractExecutor:
    """Choose where to compute.

    Args:
        config: The flags.
        folder: A folder for the executor's own files, which all machines see.
        items: How many items there will be.

    Returns:
        The executor.
    """
    if config.slurm is not None:
        return SlurmExecutor(config.slurm, folder, minutes=config.minutes or _MINUTES, jobs=config.jobs)
    return JoblibExecutor(config, folder, min(config.jobs or 1, items))


class JoblibExecutor(AbstractExecutor):
    """One of joblib's backends: processes of this machine, or the cluster of dask or ray."""

    def __init__(self, config: SweepConfig, folder: Path, workers: int):
        """Choose a backend.

        Args:
            config: The flags.
            folder: A folder for locks.
            workers: Processes on this machine.
        """
        self._config, self._folder, self._workers = config, folder, workers

    def run(self, items: Sequence[WorkItem]) -> Generator[Outcome, None, None]:
        waiting = list(range(len(items)))
        suspects: list[int] = []
        while waiting:
            try:
                for number, error in self._compute(items, waiting, self._workers):
                    waiting.remove(number)
                    yield number, error
            except Exception:  # a process died, and everything that was running or waiting is lost with it
                begun = [number for number in waiting if items[number].journal.exists()]
                if not begun:  # there is no other way to lose a process
                    raise
                suspects += begun
                waiting = [number for number in waiting if number not in begun]
        for number in suspects:  # one of them took the others with it: alone, it takes only itself
            try:
                yield from self._compute(items, [number], 1)
            except Exception as error:
                reason = describe_error(error)
                yield number, RuntimeError(f"its process died, perhaps because the memory was not enough ({reason})")

    def _compute(
        self, items: Sequence[WorkItem], numbers: Sequence[int], workers: int
    ) -> Generator[Outcome, None, None]:
        import joblib
        from joblib.externals.loky import get_reusable_executor

        local = self._config.backend == "loky"
        share = Share(workers, self._folder) if local else None
        calls = [joblib.delayed(_numbered)(number, replace(items[number], share=share)) for number in numbers]
        with ExitStack() as stack:
            backend = (
                {"backend": "loky", "inner_max_num_threads": joblib.cpu_count()} if local else self._connect(stack)
            )
            if local:
                stack.callback(lambda: get_reusable_executor().shutdown(wait=True, kill_workers=True))
            stack.enter_context(joblib.parallel_config(**backend))
            parallel: Any = joblib.Parallel(
                n_jobs=max(workers, 2) if local else -1,  # one would be this process itself
                # ray's backend hands out all results at the end.
                return_as="list" if self._config.backend == "ray" else "generator_unordered",
                batch_size=1,  # pyright: ignore[reportArgumentType]
                pre_dispatch="all",
            )
            for number, failure in parallel(calls):
                yield number, None if failure is None else failure.error()

    def _connect(self, stack: ExitStack) -> dict[str, Any]:
        if self._config.backend == "dask":
            import distributed

            stack.enter_context(distributed.Client(self._config.address))
            return {"backend": "dask"}
        import ray  # pyright: ignore[reportMissingImports]
        from ray.util.joblib import register_ray  # pyright: ignore[reportMissingImports]

        ray.init(address=self._config.address)
        stack.callback(ray.shutdown)
        register_ray()
        return {"backend": "ray"}


class SlurmExecutor(AbstractExecutor):
    """An array of jobs of Slurm, by submitit."""

    def __init__(self, partition: str, folder: Path, *, minutes: int, jobs: int | None):
        """Choose a partition.

        Args:
            partition: Its name; local for processes of this machine.
            folder: A folder for submitit's files.
            minutes: Time limit of a job.
            jobs: Maximum number of jobs at the same time; as many as there are if left out.
        """
        import submitit

        self._share = Share(1, folder)  # all that Slurm gave
        local = partition == "local"
        self._executor = submitit.AutoExecutor(folder / "submitit", cluster="local" if local else "slurm")
        self._executor.update_parameters(timeout_min=minutes, name="charax")
        if not local:
            self._executor.update_parameters(slurm_partition=partition)
            if jobs is not None:
                self._executor.update_parameters(slurm_array_parallelism=jobs)

    def run(self, items: Sequence[WorkItem]) -> Generator[Outcome, None, None]:
        jobs = dict(enumerate(self._executor.map_array(_call, [replace(item, share=self._share) for item in items])))
        try:
            while jobs:
                for number in [number for number, job in jobs.items() if job.done()]:
                    failure = _result(jobs.pop(number))
                    yield number, None if failure is None else failure.error()
                time.sleep(_EVERY)
        finally:
            for job in jobs.values():
                job.cancel()


def _numbered(number: int, item: WorkItem) -> tuple[int, Failure | None]:
    return number, item()


def _call(item: WorkItem) -> Failure | None:
    return item()


def _result(job: Any) -> Failure | None:
    try:
        return job.result()
    except Exception as error:
        return Failure(f"its process ended without a result ({describe_error(error)})", False)
