"""`charax launch` with programs that need no JAX: output, deaths, hangs, signals, and no orphans."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from charax.train import launch
from charax.train._launch import _LAUNCHER, _PIPE, watch
from charax.train._progress import Silent

PREAMBLE = """
import os, pathlib, signal, sys, time
number = int(sys.argv[sys.argv.index("--process") + 1])
tell = lambda text: os.write(int(os.environ["CHARAX_LAUNCH_PIPE"]), f"{text}\\n".encode())
here = pathlib.Path(sys.argv[2])
(here / f"pid{number}").write_text(str(os.getpid()))
"""


@pytest.fixture
def run(monkeypatch, tmp_path):
    """Launch two processes of a small program; returns the exit status."""

    def run(program: str, **options) -> int:
        script = tmp_path / "program.py"
        script.write_text(PREAMBLE + program)
        monkeypatch.setattr("charax.train._launch._program", lambda: [sys.executable, "-S", str(script)])
        return launch(["train", str(tmp_path)], 2, **options)

    return run


def pids(folder: Path) -> list[int]:
    return [int(path.read_text()) for path in sorted(folder.glob("pid*"))]


def has_ended(pid: int) -> bool:
    for _ in range(200):
        try:
            if Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] == "Z":
                return True  # nobody is left to wait for it
        except OSError:
            return True
        time.sleep(0.05)
    return False


def test_standard_error_has_a_prefix_and_standard_output_is_that_of_the_first(run, capfd):
    assert run("print('{\"answer\": %d}' % number); print('said', file=sys.stderr)") == 0
    out, err = capfd.readouterr()
    assert out == '{"answer": 0}\n'
    assert sorted(err.splitlines()) == ["[0] said", "[1] said", '[1] {"answer": 1}']


def test_when_one_dies_all_are_stopped_and_the_status_tells_how(run, capfd, tmp_path):
    assert run("os.kill(os.getpid(), signal.SIGKILL) if number else time.sleep(100)") == 128 + signal.SIGKILL
    assert "process 1 was ended by SIGKILL: all processes are stopped" in capfd.readouterr().err
    assert all(map(has_ended, pids(tmp_path)))


def test_a_process_without_a_step_counts_as_dead(run, capfd, tmp_path):
    steps = "tell('alive')\nwhile number == 0: tell('alive'); time.sleep(0.1)\ntime.sleep(100)"
    assert run(steps, step_timeout=1.0) == 1
    assert "process 1 made no step for 1 s" in capfd.readouterr().err
    assert all(map(has_ended, pids(tmp_path)))


def test_a_run_that_has_begun_is_resumed_and_one_that_has_not_is_started_again(run, capfd, tmp_path):
    program = """
began = here / f"attempt{number}"
tries = len(began.read_text()) if began.exists() else 0
began.write_text("x" * (tries + 1))
print(sys.argv[1:4], file=sys.stderr)
tell(f"folder {here}")
if tries == 0: os._exit(1)
if tries == 1:
    (here / "config.json").write_text("{}")
    os._exit(1)
"""
    assert run(program, restarts=2) == 0
    lines = [line for line in capfd.readouterr().err.splitlines() if line.startswith("[0]")]
    assert [line.split("'")[1] for line in lines] == ["train", "train", "resume"]


@pytest.mark.skipif(not hasattr(os, "sched_getaffinity"), reason="no affinity on this system")
def test_processes_have_their_share_of_the_cores_if_there_are_enough(run, capfd, monkeypatch):
    asked = []
    monkeypatch.setattr(os, "sched_setaffinity", lambda pid, cores: asked.append(sorted(cores)))
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {0, 1, 2, 3})
    assert run("") == 0
    assert asked == [[0, 2], [1, 3]]
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {0, 1})
    assert run("") == 0
    assert asked[2:] == [[0], [1]]
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {0})
    assert run("") == 0
    assert len(asked) == 4


def test_bad_input_is_not_tried_again(run, capfd):
    assert run("sys.exit(2)", restarts=3) == 2
    assert "starting again" not in capfd.readouterr().err


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_signals_are_passed_on_and_nothing_is_started_again(run, number, tmp_path):
    program = f"""
signal.signal({int(number)}, lambda *_: sys.exit({128 + number}))
if number == 0: os.kill(os.getppid(), {int(number)})
time.sleep(100)
"""
    # Both must listen before the signal comes.
    program = program.replace("if number == 0:", "time.sleep(0.5)\nif number == 0:")
    assert run(program, restarts=1) == 128 + number


def test_no_orphan_survives_a_launcher_that_is_killed(tmp_path):
    steps = "import time", "from charax.train._launch import die_with_launcher as die", "die()", "print(1, flush=True)"
    child = "; ".join((*steps, "time.sleep(100)"))
    parent = f"""
import os, subprocess, sys
child = subprocess.Popen([sys.executable, "-c", {child!r}], env={{**os.environ, {_LAUNCHER!r}: str(os.getpid())}},
                         stdout=subprocess.PIPE, start_new_session=True)
child.stdout.readline()
print(child.pid, flush=True)
child.wait()
"""
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    launcher = subprocess.Popen([sys.executable, "-c", parent], stdout=subprocess.PIPE, text=True, env=environment)
    assert launcher.stdout is not None
    pid = int(launcher.stdout.readline())
    launcher.kill()
    launcher.wait()
    launcher.stdout.close()
    assert has_ended(pid)


def test_every_step_is_a_sign_of_life(monkeypatch, tmp_path):
    assert isinstance(watch(Silent(), tmp_path), Silent)
    reader, writer = os.pipe()
    monkeypatch.setenv(_PIPE, str(writer))
    progress = watch(Silent(), tmp_path)
    progress.start(1, 1, 1)
    progress.epoch({})
    progress.stop()
    os.close(writer)
    with os.fdopen(reader) as told:
        assert told.read().splitlines() == [f"folder {tmp_path}", "alive", "alive", "trained"]


@pytest.mark.parametrize(
    ("arguments", "options", "reason"),
    [
        ([], {}, "after -- give a command that trains"),
        (["models"], {}, "after -- give a command that trains"),
        (["train"], {"processes": 0}, "-n must be at least 1"),
        (["train"], {"restarts": -1}, "--restarts must be at least 0"),
        (["train"], {"step_timeout": 0.0}, "--step-timeout above 0"),
    ],
)
def test_what_cannot_be_launched_is_refused(arguments, options, reason):
    with pytest.raises(ValueError, match=reason):
        launch(arguments, **{"processes": 2, **options})
