"""A folder that cannot be written to: the last good state is kept, and one sentence says what happened."""

import contextlib
import dataclasses
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from charax import train
from charax.train import LoopConfig, SaveError, Silent, resume
from charax.train._checkpoints import truncate_lines
from charax.train._folder import explain_failed_write, lock_folder
from tests.train.line_task import LineConfig


class Disturbing(Silent):
    """Disturbs the run after its second epoch, when it has checkpoints."""

    def __init__(self, disturb: Callable[[], object]):
        self.disturb = disturb

    def epoch(self, row):
        if row["epoch"] == 2:
            self.disturb()


@pytest.fixture
def disturbed(monkeypatch, refuse, command) -> Callable[[Path, Callable[[], object]], str]:
    """The sentence of a run that is disturbed after its second epoch."""

    def run(folder: Path, disturb: Callable[[], object]) -> str:
        monkeypatch.setattr(train, "make_progress", lambda: Disturbing(disturb))
        return refuse(*command(folder), status=1)

    return run


@pytest.fixture(scope="module")
def disk(tmp_path_factory) -> Iterator[Path]:
    """A small disk of its own."""
    folder = tmp_path_factory.mktemp("disk")
    mount = ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(folder)]
    try:
        mounted = subprocess.run(mount, capture_output=True, text=True)
    except OSError as error:
        pytest.skip(f"there is no mount: {error}")
    if mounted.returncode:
        pytest.skip(f"mounting a small disk is not allowed here: {mounted.stderr.strip()}")
    try:
        yield folder
    finally:
        subprocess.run(["umount", str(folder)], check=True)


@pytest.mark.parametrize("checkpoints", [3, 100_000], ids=["in an epoch", "at its end"])
def test_a_full_disk_keeps_the_last_checkpoint_and_says_so(
    disk, refuse, command, trained, metrics_of, monkeypatch, checkpoints
):
    folder, filler = disk / f"run{checkpoints}", disk / "filler"

    def fill() -> None:
        with contextlib.suppress(OSError), filler.open("wb", buffering=0) as file:
            while file.write(bytes(1024)):
                pass

    monkeypatch.setattr(train, "make_progress", lambda: Disturbing(fill))
    reason = refuse(*command(folder), "--checkpoint-steps", checkpoints, status=1)
    assert f"{folder} cannot be written to, the disk is full: free some space; the run is kept up to step 10" in reason
    assert reason.endswith(f"charax resume {folder}")
    filler.unlink()
    resume(folder)
    assert metrics_of(folder) == metrics_of(trained)
    shutil.rmtree(folder)


def test_a_disk_that_becomes_read_only_keeps_the_last_checkpoint(disk, disturbed, trained, metrics_of):
    remount = lambda mode: subprocess.run(["mount", "-o", f"remount,{mode}", str(disk)], check=True)
    folder = disk / "read-only"
    reason = disturbed(folder, lambda: remount("ro"))
    remount("rw")
    assert f"{folder} cannot be written to, it is read-only: make it writable; the run is kept up to step 10" in reason
    resume(folder)
    assert metrics_of(folder) == metrics_of(trained)


def test_a_folder_that_is_removed_is_said_to_be_so(disturbed, tmp_path):
    folder = tmp_path / "run"
    reason = disturbed(folder, lambda: shutil.rmtree(folder))
    assert f"{folder} was removed while the run was writing to it" in reason
    assert "nothing was saved before" in reason
    assert not folder.exists()


@pytest.mark.skipif(os.geteuid() == 0, reason="nothing is read-only to the superuser")
def test_a_read_only_place_is_named_before_anything_is_written(refuse, command, tmp_path):
    tmp_path.chmod(0o500)
    assert "cannot be made: Permission denied; choose another place with --output" in refuse(*command(tmp_path / "run"))


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (OSError(28, "No space left on device"), "the disk is full: free some space"),
        (OSError(122, "Disk quota exceeded"), "the disk is full: free some space"),
        (OSError(30, "Read-only file system"), "it is read-only: make it writable"),
        (ValueError("RESOURCE_EXHAUSTED: writing\nmore"), "the disk is full: free some space"),
        (ValueError("odd\nmore"), "(odd): remove the cause"),
    ],
)
def test_every_failed_write_is_one_sentence(tmp_path, error, words):
    with pytest.raises(SaveError) as raised, explain_failed_write(tmp_path):
        raise error
    assert words in str(raised.value)
    assert "\n" not in str(raised.value)


def test_two_processes_do_not_train_in_one_folder(command, refuse, trained, metrics_of, tmp_path):
    folder = shutil.copytree(trained, tmp_path / "run")
    truncate_lines(folder / "metrics.jsonl", 2)
    shutil.rmtree(folder / "checkpoints")
    with lock_folder(folder):
        for _ in range(2):  # a process that is refused changes nothing
            assert f"{folder} is in use by another process that trains there: wait" in refuse("resume", folder)
        empty = tmp_path / "empty"
        empty.mkdir()
        with lock_folder(empty):
            assert f"{empty} is in use by another process" in refuse(*command(empty))
        assert empty.exists()
    resume(folder)
    assert metrics_of(folder) == metrics_of(trained)


@pytest.mark.parametrize("exists", [False, True])
def test_a_failed_start_leaves_no_folder(line_task, tmp_path, monkeypatch, exists):
    folder = tmp_path / "above" / "runs" / "run"
    if exists:
        folder.mkdir(parents=True)

    def fail(*_, **__):
        assert (folder / "config.json").exists()
        raise ValueError("a setting that only the loop knows to be bad")

    monkeypatch.setattr("charax.train._loop.make_optimizer", fail)
    with pytest.raises(ValueError, match="a setting that only the loop knows"):
        train.train(LineConfig(), folder)
    assert not any(folder.iterdir()) if exists else not (tmp_path / "above").exists()


def test_a_run_that_diverges_before_its_first_checkpoint_leaves_no_folder(line_task, tmp_path):
    np.savez(tmp_path / "points.npz", x=np.full((120, 2), np.nan), y=np.zeros(120))
    config = dataclasses.replace(LineConfig(), data=str(tmp_path / "points.npz"), loop=LoopConfig(20, 2))
    with pytest.raises(train.Diverged) as diverged:
        train.train(config, tmp_path / "run")
    assert "checkpoint" not in str(diverged.value)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("error", [KeyError("x"), TypeError("many\nlines"), AssertionError(), IndexError("far")])
def test_an_unforeseen_exception_is_one_sentence_a_log_and_status_1(refuse, command, tmp_path, monkeypatch, error):
    def fail(self):
        raise error

    monkeypatch.setattr(LineConfig, "load_data", fail)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    reason = refuse(*command(tmp_path / "run"), status=1)
    (log,) = tmp_path.glob("charax-*.log")
    assert reason.startswith(f"charax: an unforeseen {type(error).__name__}; please report it with {log}")
    assert "Traceback (most recent call last)" in log.read_text()
    assert "in fail" in log.read_text()


def test_only_the_first_line_of_a_long_message_is_printed(refuse, command, tmp_path, monkeypatch):
    def fail(self):
        raise ValueError("the first line\nthe second line")

    monkeypatch.setattr(LineConfig, "load_data", fail)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    reason = refuse(*command(tmp_path / "run"))
    (log,) = tmp_path.glob("charax-*.log")
    assert reason == f"charax: the first line (more in {log})"
    assert "the second line" in log.read_text()
