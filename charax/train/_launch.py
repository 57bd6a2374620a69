"""Start the processes of one training on this machine, watch over them, and start them again when one dies."""

import contextlib
import ctypes
import os
import selectors
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from charax.train._progress import AbstractProgress

if TYPE_CHECKING:
    from charax.train._step import StepMetrics

_PIPE, _LAUNCHER = "CHARAX_LAUNCH_PIPE", "CHARAX_LAUNCHER"
_EVERY = 0.5
"""Seconds between two signs of life."""
_GRACE = 3.0
"""Seconds that the others have to say why they fail, too, when one process has ended."""
_STARTING = 600.0
"""Seconds that the processes have at least to load the data."""
_SAVING = 60.0
"""Seconds that the processes have to save the run after a signal."""
_DEATH_SIGNAL = 1
"""PR_SET_PDEATHSIG of Linux."""
_BAD_INPUT = 2
"""The exit status that starting again would not change."""


class _Watched(AbstractProgress):
    """Tells the launcher of every step, and passes everything on to another progress."""

    def __init__(self, progress: AbstractProgress, pipe: int):
        self._progress, self._pipe, self._told = progress, pipe, 0.0

    def start(self, epochs: int, steps_per_epoch: int, batch_size: int) -> None:
        self._tell("alive")
        self._progress.start(epochs, steps_per_epoch, batch_size)

    def step(self, epoch: int, step: int, metrics: "StepMetrics") -> None:
        if time.monotonic() - self._told > _EVERY:
            self._tell("alive")
        self._progress.step(epoch, step, metrics)

    def epoch(self, row: dict[str, Any]) -> None:
        self._tell("alive")
        self._progress.epoch(row)

    def say(self, message: str) -> None:
        self._tell("alive")
        self._progress.say(message)

    def stop(self) -> None:
        self._tell("trained")
        self._progress.stop()

    def child(self, label: str) -> AbstractProgress:
        return self._progress.child(label)

    def _tell(self, text: str) -> None:
        self._told = time.monotonic()
        with contextlib.suppress(OSError):
            os.write(self._pipe, f"{text}\n".encode())


def watch(progress: AbstractProgress, folder: Path) -> AbstractProgress:
    """Let `charax launch` know the folder of a run and each of its steps.

    Args:
        progress: Where to report.
        folder: The folder of the run.

    Returns:
        The same progress if this process was not started by `charax launch`.
    """
    if _PIPE not in os.environ:
        return progress
    pipe = int(os.environ[_PIPE])
    os.write(pipe, f"folder {folder.absolute()}\n".encode())
    return _Watched(progress, pipe)


def die_with_launcher() -> None:
    """End this process when `charax launch`, which started it, ends in whatever way. Linux only."""
    if _LAUNCHER not in os.environ:
        return
    launcher = int(os.environ[_LAUNCHER])
    prctl = getattr(ctypes.CDLL(None), "prctl", None) if sys.platform == "linux" else None
    if prctl is not None:
        prctl(_DEATH_SIGNAL, signal.SIGKILL)
    if os.getppid() != launcher:  # it ended before
        os._exit(128 + signal.SIGKILL)


def launch(
    arguments: Sequence[str],
    processes: int,
    *,
    restarts: int = 0,
    step_timeout: float = 600.0,
    heartbeat: int = 100,
) -> int:
    """Run a command of `charax` in several processes of this machine that train together.

    Args:
        arguments: The command: `train …` or `resume …`.
        processes: Number of processes, each with one device, and its share of the cores if there are enough.
        restarts: How often the run is resumed, from its last checkpoint, after a process has died.
        step_timeout: Seconds without a step, of any process, after which it counts as dead.
        heartbeat: Seconds after which the processes give up on one that was not heard of.

    Returns:
        The exit status: that of the process that ended first without success, else 0.

    Raises:
        ValueError: If the command cannot be run in several processes.

    ```python
    from charax.train import launch

    try:
        launch(["report", "runs/mine"], processes=2)
    except ValueError as error:
        assert "charax launch -n 2 -- train classify" in str(error)
    ```
    """
    arguments = list(arguments)
    if not arguments or arguments[0] not in ("train", "resume"):
        raise ValueError("after -- give a command that trains, as in: charax launch -n 2 -- train classify")
    if processes < 1:
        raise ValueError(f"-n must be at least 1, got {processes}")
    if restarts < 0 or step_timeout <= 0:
        raise ValueError(f"--restarts must be at least 0 and --step-timeout above 0, got {restarts} and {step_timeout}")
    with _forward_signals() as received:
        folder, status = None, 0
        for attempt in range(restarts + 1):
            group = _Group(_command(arguments, folder), processes, heartbeat)
            status, reason = group.wait(received, step_timeout)
            folder = group.folder or folder
            if status in (0, _BAD_INPUT) or received:
                return status
            _say(f"{reason}: all processes are stopped")
            if attempt < restarts:
                _say(f"starting again, {attempt + 1} of {restarts}")
    return status


def _command(arguments: list[str], folder: Path | None) -> list[str]:
    """The command to start: `resume` once there is a run."""
    if folder is None or not (folder / "config.json").exists():
        if folder is not None:
            with contextlib.suppress(OSError):  # empty: its name is to be free again
                folder.rmdir()
        return arguments
    return ["resume", str(folder), *(flag for flag in ("--json", "--tensorboard") if flag in arguments)]


@dataclass
class _Process:
    number: int
    popen: "subprocess.Popen[bytes]"
    alive: float
    """When its last sign of life came."""
    has_begun: bool = False
    is_trained: bool = False
    rests: dict[str, bytes] = field(default_factory=dict)
    """What came after the last end of a line, by stream."""


class _Group:
    """The processes of one attempt. However it ends, none of them is left."""

    def __init__(self, command: list[str], count: int, heartbeat: int):
        self.folder: Path | None = None
        self._selector = selectors.DefaultSelector()
        self._processes: list[_Process] = []
        self._signalled: float | None = None
        together = ["--coordinator", f"127.0.0.1:{_free_port()}", "--processes", str(count)]
        cores = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []
        if len(cores) < count:
            cores = []
        for number in range(count):
            flags = [*together, "--process", str(number), "--heartbeat", str(heartbeat)]
            self._start([*_program(), *command, *(flags if count > 1 else [])], number, cores[number::count])

    def _start(self, command: list[str], number: int, cores: list[int]) -> None:
        reader, writer = os.pipe()
        # A group of its own: a Ctrl-C in the terminal comes once, from the launcher.
        popen = subprocess.Popen(
            command,
            env={
                **os.environ,
                _PIPE: str(writer),
                _LAUNCHER: str(os.getpid()),
                "JAX_LOCAL_DEVICE_IDS": str(number),
                "PYTHONUNBUFFERED": "1",
            },
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            pass_fds=[writer],
            process_group=0,
        )
        os.close(writer)
        if cores and hasattr(os, "sched_setaffinity"):
            with contextlib.suppress(OSError):  # it has ended already
                os.sched_setaffinity(popen.pid, cores)
        process = _Process(number, popen, time.monotonic())
        self._processes.append(process)
        assert popen.stdout is not None
        assert popen.stderr is not None
        for stream, name in ((popen.stdout, "out"), (popen.stderr, "err"), (os.fdopen(reader, "rb"), "pipe")):
            os.set_blocking(stream.fileno(), False)
            self._selector.register(stream, selectors.EVENT_READ, (process, name))

    def wait(self, received: list[int], step_timeout: float) -> tuple[int, str]:
        """The exit status of the first that ended without success, and what happened."""
        status, reason, passed = 0, "", 0
        try:
            while True:
                self._read(0.2)
                for number in received[passed:]:
                    self._send(signal.SIGKILL if passed else number)
                    passed, self._signalled = passed + 1, self._signalled or time.monotonic()
                failed = [process for process in self._processes if process.popen.poll() not in (None, 0)]
                if failed:
                    status, reason = _describe(failed[0])
                    self._linger(_SAVING if received else _GRACE)
                    break
                if all(process.popen.poll() == 0 for process in self._processes):
                    break
                hanging = [process for process in self._processes if self._is_hanging(process, step_timeout)]
                if hanging:
                    # The others wait for the one that hangs: it is the one that was heard of first of all.
                    first = min(hanging, key=lambda process: process.alive)
                    status, reason = 1, f"process {first.number} made no step for {step_timeout:g} s"
                    break
                if self._signalled is not None and time.monotonic() - self._signalled > _SAVING:
                    status, reason = 128 + received[0], f"the run was not saved within {_SAVING:g} s of the signal"
                    break
        finally:
            self._send(signal.SIGKILL)
            for process in self._processes:
                process.popen.wait()
            self._read(0)
            self._close()
        return status, reason

    def _is_hanging(self, process: _Process, step_timeout: float) -> bool:
        limit = step_timeout if process.has_begun else max(step_timeout, _STARTING)
        running = process.popen.poll() is None and not process.is_trained
        return running and time.monotonic() - process.alive > limit

    def _linger(self, seconds: float) -> None:
        until = time.monotonic() + seconds
        while time.monotonic() < until and any(process.popen.poll() is None for process in self._processes):
            self._read(0.1)

    def _send(self, number: int) -> None:
        for process in self._processes:
            with contextlib.suppress(OSError):
                if number == signal.SIGKILL:  # with whatever it has started
                    os.killpg(process.popen.pid, number)
                elif process.popen.poll() is None:
                    process.popen.send_signal(number)

    def _read(self, seconds: float) -> None:
        for key, _ in self._selector.select(seconds) if self._selector.get_map() else ():
            process, name = key.data
            stream: Any = key.fileobj
            self._read_stream(process, name, stream)
        if not self._selector.get_map():
            time.sleep(min(seconds, 0.05))

    def _read_stream(self, process: _Process, name: str, stream: BinaryIO) -> None:
        while True:
            try:
                chunk = os.read(stream.fileno(), 1 << 16)
            except BlockingIOError:
                return
            if not chunk:
                self._selector.unregister(stream)
                stream.close()
                if process.rests.get(name):
                    self._take_line(process, name, process.rests.pop(name))
                return
            *lines, process.rests[name] = (process.rests.get(name, b"") + chunk).split(b"\n")
            for line in lines:
                self._take_line(process, name, line)

    def _take_line(self, process: _Process, name: str, line: bytes) -> None:
        if name == "pipe":
            process.alive = time.monotonic()
            word, _, rest = line.decode().partition(" ")
            process.has_begun, process.is_trained = word == "alive", word == "trained"
            if word == "folder":
                self.folder = Path(rest)
        elif name == "out" and process.number == 0:  # the answer, which may be JSON
            sys.stdout.write(line.decode(errors="replace") + "\n")
            sys.stdout.flush()
        else:
            _say(line.decode(errors="replace"), f"[{process.number}]")

    def _close(self) -> None:
        for key in list(self._selector.get_map().values()):
            stream: Any = key.fileobj
            stream.close()
        self._selector.close()


@contextlib.contextmanager
def _forward_signals() -> Iterator[list[int]]:
    """The numbers of the signals that come."""
    received: list[int] = []
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP) if hasattr(signal, "SIGHUP") else (signal.SIGINT,)
    note: Callable[[int, Any], None] = lambda number, frame: received.append(number)
    before = {number: signal.signal(number, note) for number in numbers}
    try:
        yield received
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _describe(process: _Process) -> tuple[int, str]:
    code = process.popen.returncode
    if code < 0:
        return 128 - code, f"process {process.number} was ended by {signal.Signals(-code).name}"
    return code, f"process {process.number} ended with exit status {code}"


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def _program() -> list[str]:
    """How this program was started, without its arguments."""
    if sys.argv[1:2] == ["launch"]:
        return [*sys.orig_argv[: len(sys.orig_argv) - len(sys.argv) + 1]]
    return [sys.executable, "-m", "charax"]


def _say(text: str, prefix: str = "charax launch:") -> None:
    sys.stderr.write(f"{prefix} {text}\n")
    sys.stderr.flush()
