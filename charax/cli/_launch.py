"""`charax launch`: several processes of this machine that train together."""

import sys
from collections.abc import Callable, Sequence
from typing import Annotated

import tyro

from charax import train


def split_command(arguments: Sequence[str]) -> tuple[list[str], list[str]]:
    """The arguments of `charax launch`, and the command after `--`, whose flags are not its own."""
    cut = list(arguments).index("--") if arguments[:1] == ["launch"] and "--" in arguments else len(arguments)
    return list(arguments[:cut]), list(arguments[cut + 1 :])


def launch_command(command: Sequence[str]) -> Callable[..., None]:
    """The command that starts another in several processes."""

    def launch(
        *,
        number: Annotated[int, tyro.conf.arg(aliases=["-n"])] = 2,
        restarts: int = 0,
        step_timeout: float = 600.0,
        heartbeat: int = 100,
    ) -> None:
        """Train in several processes of this machine: `charax launch -n 2 -- train classify --batch-size 64`.

        After -- comes the command, train or resume, with its flags. Each process has one device, a CPU or a GPU, and
        its share of the cores, if there are enough. Signals are passed on; standard error of process I has the
        prefix [I], and standard output is that of the first. If one process dies, all are stopped.

        Args:
            number: Number of processes.
            restarts: After a process has died, resume the run from its last checkpoint, this many times.
            step_timeout: Seconds without a step after which a process counts as dead; compilation and evaluation are
                part of them.
            heartbeat: Seconds after which the processes give up on one that was not heard of.
        """
        status = train.launch(command, number, restarts=restarts, step_timeout=step_timeout, heartbeat=heartbeat)
        if status:
            sys.exit(status)

    return launch
