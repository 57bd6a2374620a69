"""Many runs at the same time: the results of one after the other, and one that fails leaves the others alone."""

import json
import os
import shutil
import signal
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from charax.train import (
    EPOCHS,
    AbstractJob,
    Interrupted,
    Silent,
    Sweep,
    SweepConfig,
    SweepError,
    TrainingJob,
    seed_jobs,
)
from charax.train._worker import split_evenly
from tests.train.line_task import LineConfig
from tests.train.registration import registered_line

CONFIG = LineConfig()


class Spoken(Silent):
    """Keeps what is said, with the run that said it."""

    def __init__(self):
        self.said: list[tuple[str, str]] = []
        self.label = ""

    def say(self, message: str) -> None:
        self.said.append((self.label, message))

    def epoch(self, row: dict[str, Any]) -> None:
        self.said.append((self.label, f"epoch {row['epoch']}"))

    def child(self, label: str) -> "Spoken":
        child = Spoken()
        child.said, child.label = self.said, label
        return child


@dataclass(frozen=True)
class Odd(AbstractJob[dict[str, Any]]):
    """Leaves what it finds about its process, unless it is told to fail."""

    place: Path
    fate: str = ""

    def is_finished(self) -> bool:
        return self.place.exists()

    def compute(self, progress) -> dict[str, Any]:
        progress.say("hello")
        if self.fate == "raise":
            raise RuntimeError("no such luck\nand more")
        if self.fate == "refuse":
            raise ValueError("no such data")
        if self.fate == "die":
            os.kill(os.getpid(), signal.SIGKILL)
        time.sleep(0.3)  # so that all workers get some
        found = {"cores": sorted(os.sched_getaffinity(0)), "threads": os.environ.get("NPROC"), "process": os.getpid()}
        self.place.write_text(json.dumps(found))
        return found

    def load(self) -> dict[str, Any]:
        return json.loads(self.place.read_text())


FATES = ("raise", "", "refuse", "")


class Swept(NamedTuple):
    """What a sweep left, and what it said."""

    folder: Path
    progress: Spoken
    error: SweepError


@pytest.fixture(scope="module")
def swept(tmp_path_factory) -> Swept:
    """Two seeds and four odd jobs by two processes, which are expensive to start."""
    folder, progress = tmp_path_factory.mktemp("runs"), Spoken()
    odd = [Odd(folder / f"odd{number}.json", fate) for number, fate in enumerate(FATES)]
    jobs: list[AbstractJob[Any]] = [*seed_jobs(CONFIG, folder, range(2)), *odd]
    with registered_line(), pytest.raises(SweepError) as stop:
        Sweep(SweepConfig(jobs=2), progress=progress).run(jobs)
    return Swept(folder, progress, stop.value)


def test_runs_in_two_processes_are_those_of_one(swept, line_task, tmp_path, metrics_of):
    for job in seed_jobs(CONFIG, swept.folder, range(2)):
        alone = tmp_path / job.place.name
        Sweep().run([replace(job, place=alone)])
        assert metrics_of(job.place) == metrics_of(alone)
        assert (job.place / "model.safetensors").read_bytes() == (alone / "model.safetensors").read_bytes()


def test_the_progress_of_every_run_is_shown_by_its_name(swept):
    for seed in range(2):
        label = f"{CONFIG.label}-seed{seed}"
        epochs = [message for name, message in swept.progress.said if name == label and "epoch" in message]
        assert epochs == [f"epoch {number}" for number in range(1, 1 + (CONFIG.loop.epochs or EPOCHS))]
    assert ("odd1", "hello") in swept.progress.said
    assert ("", "odd0 failed: no such luck") in swept.progress.said
    assert not list(swept.folder.glob(".sweep-*"))


def test_a_sweep_that_is_repeated_computes_what_is_missing_only(swept, line_task, monkeypatch):
    monkeypatch.setattr(TrainingJob, "compute", lambda *_: pytest.fail("it is there already"))
    runs = Sweep(SweepConfig(jobs=2)).run(seed_jobs(CONFIG, swept.folder, range(2)))
    assert [run.config.loop.seed for run in runs] == [0, 1]


def test_other_settings_are_refused_before_anything_is_computed(swept, line_task):
    other = replace(CONFIG, loop=replace(CONFIG.loop, epochs=7))
    with pytest.raises(ValueError, match=r"other settings: .*epochs"):
        Sweep().run(seed_jobs(other, swept.folder, [3, 1]))
    assert not (swept.folder / f"{CONFIG.label}-seed3").exists()


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="there is one core")
def test_a_process_has_its_own_cores_and_as_many_threads_as_one_process_would_have(swept):
    cores = sorted(os.sched_getaffinity(0))
    for name in ("odd1", "odd3"):
        found = Odd(swept.folder / f"{name}.json").load()
        assert found["process"] != os.getpid()
        assert found["cores"] in (cores[: len(cores) // 2], cores[len(cores) // 2 :])
        assert found["threads"] == str(len(cores))


def test_failed_runs_are_named_and_the_others_are_finished(swept, tmp_path):
    named = "2 of {} runs failed: odd0: no such luck; odd2: no such data; the others are finished, and calling the"
    assert str(swept.error).startswith(named.format(6))
    assert [(swept.folder / f"odd{number}.json").exists() for number in range(4)] == [False, True, False, True]
    jobs = [Odd(tmp_path / f"odd{number}.json", fate) for number, fate in enumerate(FATES)]
    with pytest.raises(SweepError, match=named.format(4)):
        Sweep().run(jobs)
    assert [job.is_finished() for job in jobs] == [False, True, False, True]


@pytest.mark.slow
def test_a_process_that_dies_takes_only_its_own_run_with_it(tmp_path):
    jobs = [Odd(tmp_path / f"{number}.json", "die" if number == 1 else "") for number in range(4)]
    with pytest.raises(SweepError, match=r"1 of 4 runs failed: 1: its process died"):
        Sweep(SweepConfig(jobs=2)).run(jobs)
    assert [job.is_finished() for job in jobs] == [True, False, True, True]


def test_a_signal_ends_the_sweep_also_if_the_run_cannot_be_saved(line_task, tmp_path):
    class Removing(Silent):
        def child(self, label: str) -> "Removing":
            return self

        def step(self, epoch, step, metrics) -> None:
            if (tmp_path / "0").exists():  # a second signal would end the tests
                shutil.rmtree(tmp_path / "0")
                os.kill(os.getpid(), signal.SIGTERM)

    jobs = [TrainingJob(CONFIG, tmp_path / str(number)) for number in range(2)]
    with pytest.raises(Interrupted, match="not saved") as raised:
        Sweep(progress=Removing()).run(jobs)
    assert raised.value.signal == signal.SIGTERM
    assert not (tmp_path / "1").exists()


def test_bad_input_alone_is_bad_input(tmp_path):
    jobs = [Odd(tmp_path / f"{number}.json", "refuse") for number in range(2)]
    with pytest.raises(ValueError, match=r"2 of 2 runs failed: 0, 1: no such data$"):
        Sweep().run(jobs)
    with pytest.raises(ValueError, match=r"^no such data$"):
        Sweep().run(jobs[:1])


def test_shares_differ_by_one_at_most_and_are_never_empty():
    for count in range(1, 9):
        for parts in range(1, 9):
            shares = [split_evenly(list(range(count)), number, parts) for number in range(parts)]
            assert min(map(len, shares)) >= 1
            assert max(map(len, shares)) - min(map(len, shares)) <= 1
            assert {each for share in shares for each in share} == set(range(count))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"jobs": 0}, "jobs must be a number of at least 1"),
        ({"backend": "dask"}, "--address"),
        ({"minutes": 10}, "--minutes is a limit of Slurm's jobs"),
        ({"address": "tcp://localhost:8786"}, "--backend dask or ray"),
        ({"backend": "ray", "address": "auto", "jobs": 2}, "leave --jobs out"),
        ({"backend": "dask", "address": "x", "slurm": "gpu"}, "exclude each other"),
    ],
)
def test_flags_that_contradict_each_other_are_refused(settings, message):
    with pytest.raises(ValueError, match=message):
        SweepConfig(**settings)
