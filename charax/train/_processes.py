"""One training over many processes: who they are, and what they do together.

Whatever is not a computation over all devices goes through JAX's coordination service and not through collectives,
which give up on a process that comes half a minute late. Everything here does nothing special in a single process.
"""

import contextlib
import itertools
import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, TypeVar

from charax.train._process import give_up_shared_cores
from charax.train._stopping import Interrupted

T = TypeVar("T")
_PATIENCE = 24 * 60 * 60 * 1_000
"""Milliseconds to wait for another process: a compilation, or a refinement. One that dies ends the wait at once."""
_FAREWELL = 5_000
"""Milliseconds to wait for the others after a failure."""
_COORDINATOR_STAYS = 0.5
"""Seconds that the first process stays longer: the others could not even leave without it."""
_CLUSTERS = {
    "Slurm": ("SLURM_STEP_NODELIST", "SLURM_NTASKS"),
    "Open MPI": ("OMPI_MCA_orte_hnp_uri", "OMPI_COMM_WORLD_SIZE"),
}
"""What is in the environment of the jobs that `jax.distributed` recognizes."""
_NO_PROXY = "no_grpc_proxy"
_numbers = itertools.count()


@dataclass(frozen=True)
class ProcessesConfig:
    """One training over several processes. Nothing need be given inside a job of Slurm, Open MPI or Kubernetes.

    ```python
    from charax.train import ProcessesConfig

    config = ProcessesConfig(coordinator="node1:1234", processes=2, process=0)
    assert config.heartbeat == 100
    ```
    """

    coordinator: str | None = None
    """HOST:PORT of the first process, which all others can reach."""
    processes: int | None = None
    """Number of processes that train together."""
    process: int | None = None
    """Number of this process, from 0."""
    heartbeat: int = 100
    """Seconds after which a process that was not heard of counts as dead."""

    def __post_init__(self):
        given = [value is not None for value in (self.coordinator, self.processes, self.process)]
        if any(given) and not all(given):
            raise ValueError("--coordinator, --processes and --process belong together: give all of them, or none")
        if self.heartbeat < 1:
            raise ValueError(f"--heartbeat must be at least 1 second, got {self.heartbeat}")
        if self.coordinator is None or self.processes is None or self.process is None:
            return
        host, _, port = self.coordinator.rpartition(":")
        if not host or not port.isdecimal() or not 0 < int(port) < 2**16:
            raise ValueError(f"--coordinator must be HOST:PORT, such as node1:1234, got {self.coordinator!r}")
        if not 0 <= self.process < self.processes:
            raise ValueError(f"--process must be from 0 to {self.processes - 1}, got {self.process}")


@contextlib.contextmanager
def join(config: ProcessesConfig) -> Iterator[None]:
    """Join the other processes of a training, if there are any, and leave them when all are done.

    Call it before the first computation of JAX.

    Args:
        config: How to find them.

    Yields:
        Nothing.

    Raises:
        ValueError: If they cannot be found in time.

    ```python
    from charax.train import ProcessesConfig, join

    with join(ProcessesConfig()):  # alone, outside a job of Slurm, Open MPI or Kubernetes
        pass
    ```
    """
    if config.coordinator is None and _find_cluster() is None:
        yield
        return
    import jax

    _bypass_proxies(config.coordinator)
    _keep_standard_output()
    _avoid_preemption()
    give_up_shared_cores()
    jax.config.update("jax_check_proxy_envs", False)
    jax.config.update("jax_cpu_collectives_implementation", "gloo")
    jax.config.update("jax_cpu_enable_async_dispatch", False)  # so that collectives have one order
    try:
        jax.distributed.initialize(
            config.coordinator,
            config.processes,
            config.process,
            heartbeat_timeout_seconds=config.heartbeat,
            shutdown_timeout_seconds=_PATIENCE // 1_000,
        )
    except RuntimeError as error:
        where = config.coordinator or f"the job of {_find_cluster()}"
        reason = str(error).strip().splitlines()[0]
        raise ValueError(f"the other processes of {where} cannot be reached: {reason}") from error
    yield
    barrier()
    jax.distributed.shutdown()


def end(status: int) -> int:
    """End a process that may have failed among others: it must not wait for them to finish.

    Args:
        status: The exit status.

    Returns:
        The exit status, if the process ends as any other.
    """
    if "jax" not in sys.modules or count() == 1:
        return status
    with contextlib.suppress(Exception):  # those that fail for the same reason say so, too
        barrier("end", timeout=_FAREWELL)
        time.sleep(_COORDINATOR_STAYS if is_first() else 0)
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


def count() -> int:
    """The number of processes that train together."""
    import jax

    return jax.process_count() if jax.distributed.is_initialized() else 1


def is_first() -> bool:
    """Whether this is the process that writes: metrics, figures, the model, and what is printed.

    Returns:
        True in the first of several processes, and if there is only one.

    ```python
    from charax.train import is_first

    if is_first():
        print("one line, however many processes there are")
    ```
    """
    import jax

    return count() == 1 or jax.process_index() == 0


def barrier(name: str | None = None, *, timeout: int = _PATIENCE) -> None:
    """Wait until all processes have come here."""
    if count() > 1:
        _client().wait_at_barrier(f"charax/{name or next(_numbers)}", timeout)


def on_first(function: Callable[[], T]) -> T:
    """Call a function in the first process only, and hand its result to all of them.

    Args:
        function: A function that returns something that JSON can hold.

    Returns:
        The result.

    Raises:
        ValueError: If it was bad input that stopped the first process.
        RuntimeError: If it was anything else.

    ```python
    from charax.train import on_first

    assert on_first(lambda: 3) == 3
    ```
    """
    if count() == 1:
        return function()
    key = f"charax/{next(_numbers)}"
    if not is_first():
        return _unpack(json.loads(_client().blocking_key_value_get(key, _PATIENCE)))
    try:
        result = function()
    except BaseException as error:
        failure = {"error": str(error), "input": isinstance(error, ValueError | OSError)}
        _client().key_value_set(key, json.dumps({**failure, "signal": getattr(error, "signal", None)}))
        raise
    _client().key_value_set(key, json.dumps({"result": result}))
    return result


def agree(answer: bool) -> bool:
    """Whether all processes say yes."""
    if count() == 1:
        return answer
    import jax

    folder = f"charax/{next(_numbers)}"
    _client().key_value_set(f"{folder}/{jax.process_index()}", str(int(answer)))
    barrier()
    return all(value == "1" for _, value in _client().key_value_dir_get(folder))


def broadcast(array: Any) -> Any:
    """The array of the first process, in all of them. They must come here within seconds of each other."""
    if count() == 1:
        return array
    from jax.experimental.multihost_utils import broadcast_one_to_all

    return broadcast_one_to_all(array)


def only_first(context: contextlib.AbstractContextManager[T]) -> contextlib.AbstractContextManager[T | None]:
    """A context in the first process, and nothing in the others."""
    return context if is_first() else contextlib.nullcontext()


def compile_together(function: Any) -> Callable[..., Any]:
    """A jitted function of arguments of one shape, which no process calls before all have compiled it."""
    return function if count() == 1 else _Together(function)


class _Together:
    def __init__(self, function: Any):
        self._function, self._compiled = function, None

    def __call__(self, *args: Any) -> Any:
        if self._compiled is None:
            self._compiled = self._function.lower(*args).compile()
            barrier()
        return self._compiled(*args)


def _client() -> Any:
    from jax._src.distributed import global_state  # JAX has no public way to its coordination service

    return global_state.client


def _unpack(answer: dict[str, Any]) -> Any:
    if "result" in answer:
        return answer["result"]
    if answer["signal"] is not None:
        raise Interrupted(answer["error"], answer["signal"])
    raise (ValueError if answer["input"] else RuntimeError)(answer["error"])


def _find_cluster() -> str | None:
    """The kind of job that this process is one of several of."""
    for name, (mark, size) in _CLUSTERS.items():
        if mark in os.environ and os.environ.get(size, "1") != "1":
            return name
    has_index = {"KUBERNETES_SERVICE_HOST", "JOB_COMPLETION_INDEX"} <= os.environ.keys()
    return "Kubernetes" if has_index else None


def _bypass_proxies(coordinator: str | None) -> None:
    """Connections between processes must not go through a proxy of the environment: gRPC would wait for ever."""
    if any(name.lower() in ("http_proxy", "https_proxy", "grpc_proxy", "all_proxy") for name in os.environ):
        before = next((os.environ[name] for name in (_NO_PROXY, "no_proxy", "NO_PROXY") if name in os.environ), "")
        host = "*" if coordinator is None else coordinator.rpartition(":")[0]
        os.environ[_NO_PROXY] = ",".join(filter(None, (before, host)))


def _avoid_preemption() -> None:
    """Schedule this process, with the threads that it will start, as a batch job: waking preempts nothing.

    gloo's thread polls its socket without pause while another thread holds the lock of the connection. On the core of
    that thread, which it preempts when a message comes, it does so for its whole time slice, several times for each
    array of an all-reduce. Linux only.
    """
    if hasattr(os, "SCHED_BATCH") and os.sched_getscheduler(0) == os.SCHED_OTHER:
        os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))


def _keep_standard_output() -> None:
    """Let libraries below Python, such as gloo, print to standard error: standard output may be one JSON object."""
    sys.stdout.flush()
    answers = os.dup(1)
    os.dup2(2, 1)
    sys.stdout = os.fdopen(answers, "w", buffering=1)
