"""One training over many processes gives the metrics of one."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from benchmarks.processes import equality, kills
from benchmarks.processes.runs import checkpoints_of
from charax.train import ProcessesConfig
from charax.train._launch import _free_port
from charax.train._processes import _NO_PROXY, _bypass_proxies, _find_cluster


def start_two(script: Path, *arguments: object) -> list[subprocess.Popen[str]]:
    """Start a program in two processes: its arguments are a number, a port, and those given."""
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    common = [str(_free_port()), *map(str, arguments)]
    return [
        subprocess.Popen(
            [sys.executable, str(script), str(i), *common], env=environment, stdout=subprocess.PIPE, text=True
        )
        for i in range(2)
    ]


@pytest.mark.parametrize(
    ("flags", "reason"),
    [
        ({"processes": 2}, "belong together"),
        ({"coordinator": "here:1", "processes": 2}, "belong together"),
        ({"coordinator": "here", "processes": 2, "process": 0}, "must be HOST:PORT"),
        ({"coordinator": "here:99999", "processes": 2, "process": 0}, "must be HOST:PORT"),
        ({"coordinator": "here:1", "processes": 2, "process": 2}, "must be from 0 to 1, got 2"),
        ({"heartbeat": 0}, "--heartbeat must be at least 1"),
    ],
)
def test_flags_that_do_not_fit_together_are_refused(flags, reason):
    with pytest.raises(ValueError, match=reason):
        ProcessesConfig(**flags)


@pytest.mark.parametrize(
    ("variables", "name"),
    [
        ({"SLURM_STEP_NODELIST": "node[1-2]", "SLURM_NTASKS": "2"}, "Slurm"),
        ({"SLURM_STEP_NODELIST": "node1", "SLURM_NTASKS": "1"}, None),
        ({"OMPI_MCA_orte_hnp_uri": "1.0;tcp://10.0.0.1:1", "OMPI_COMM_WORLD_SIZE": "4"}, "Open MPI"),
        ({"KUBERNETES_SERVICE_HOST": "10.0.0.1"}, None),
        ({"KUBERNETES_SERVICE_HOST": "10.0.0.1", "JOB_COMPLETION_INDEX": "1"}, "Kubernetes"),
        ({}, None),
    ],
)
def test_jobs_of_several_processes_are_recognized(monkeypatch, variables, name):
    for variable, value in variables.items():
        monkeypatch.setenv(variable, value)
    assert _find_cluster() == name


def test_proxies_of_the_environment_are_bypassed(monkeypatch):
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    monkeypatch.setenv("no_proxy", "example.org")
    monkeypatch.setenv(_NO_PROXY, "")
    monkeypatch.delenv(_NO_PROXY)
    _bypass_proxies("node1:1234")
    assert os.environ[_NO_PROXY] == "example.org,node1"


def test_two_processes_give_the_result_of_one(start, command, trained, metrics_of, tmp_path):
    # A proxy that does not answer, which gRPC would wait for.
    process = start("launch", "-n", 2, "--", *command(tmp_path / "two"), http_proxy="http://127.0.0.1:9")
    out, errors = process.communicate(timeout=300)
    assert process.returncode == 0, errors
    assert json.loads(out)["parameters"] == 3
    assert "[0] epoch 1/4" in errors
    assert "[1] epoch" not in errors
    assert not (tmp_path / "two" / "data-of-processes").exists()
    for two, one in zip(metrics_of(tmp_path / "two"), metrics_of(trained), strict=True):
        assert two == pytest.approx(one, abs=1e-5)


def slurm_job(number: int, port: int) -> dict[str, str]:
    """The variables of a task of a Slurm job on this machine, which JAX makes the port of: 61440 and the job's id."""
    job = {"SLURM_JOB_ID": str(port - 61440), "SLURM_STEP_NODELIST": "localhost", "SLURM_NTASKS": "2"}
    return {**job, "SLURM_PROCID": str(number), "SLURM_LOCALID": str(number)}


def mpi_job(number: int, port: int) -> dict[str, str]:
    """The variables of a rank of Open MPI on this machine; its job id is a multiple of 4096."""
    job = {"OMPI_MCA_orte_hnp_uri": f"{4096 * (port - 61440)}.0;tcp://127.0.0.1:1", "OMPI_COMM_WORLD_SIZE": "2"}
    return {**job, "OMPI_COMM_WORLD_RANK": str(number), "OMPI_COMM_WORLD_LOCAL_RANK": str(number)}


@pytest.mark.slow
@pytest.mark.parametrize("job", [slurm_job, mpi_job])
def test_the_processes_of_a_job_find_each_other_without_flags(job, start, command, trained, metrics_of, tmp_path):
    with socket.socket() as probe:
        port = next(port for port in range(61500, 65535) if probe.connect_ex(("127.0.0.1", port)))
    both = [start(*command(tmp_path / "job"), **job(number, port)) for number in range(2)]
    for process in both:
        _, errors = process.communicate(timeout=300)
        assert process.returncode == 0, errors
    for two, one in zip(metrics_of(tmp_path / "job"), metrics_of(trained), strict=True):
        assert two == pytest.approx(one, abs=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("task", equality.TASKS)
def test_processes_give_the_metrics_of_devices(task, tmp_path):
    for row in equality.compare([task], tmp_path):
        assert row["from_devices"] < 1e-5, row
        assert row["from_one"] < 1e-4, row


@pytest.mark.slow
def test_a_run_is_resumed_with_another_number_of_processes(tmp_path):
    for row in equality.resume_with_others(tmp_path):
        assert row["difference"] < 1e-4, row


@pytest.mark.slow
def test_killed_processes_are_started_again_to_the_same_metrics(tmp_path):
    assert all(kill["same"] for kill in kills.kill_many(5, tmp_path))


@pytest.mark.slow
def test_a_signal_to_one_process_saves_the_run_of_all(start, command, tmp_path):
    folder = tmp_path / "stopped"
    arguments = [each if each != "4" else "100000" for each in command(folder)]
    process = start("launch", "-n", 2, "--", *arguments)
    while not checkpoints_of(folder):
        assert process.poll() is None, process.communicate()[1]
        time.sleep(0.05)
    victim = kills.rank_of(process.pid, 1)
    assert victim is not None
    os.kill(victim, signal.SIGTERM)
    _, errors = process.communicate(timeout=200)
    assert process.returncode == 128 + signal.SIGTERM, errors
    assert f"charax resume {folder}" in errors


@pytest.mark.slow
def test_a_process_that_stops_is_dead_after_its_heartbeats(start, command, tmp_path):
    folder = tmp_path / "stopped"
    arguments = [each if each != "4" else "100000" for each in command(folder)]
    process = start("launch", "-n", 2, "--heartbeat", 4, "--", *arguments)
    while not checkpoints_of(folder):
        assert process.poll() is None, process.communicate()[1]
        time.sleep(0.05)
    victim = kills.rank_of(process.pid, 1)
    assert victim is not None
    os.kill(victim, signal.SIGSTOP)
    _, errors = process.communicate(timeout=90)  # by default they would wait for 100 s
    assert process.returncode not in (0, 2), errors
    assert "heartbeat" in errors, errors
    assert not Path(f"/proc/{victim}").exists()


@pytest.mark.slow
def test_a_batch_that_the_processes_cannot_share_is_refused(start, command, tmp_path):
    process = start("launch", "-n", 2, "--restarts", 2, "--", *command(tmp_path / "odd"), "--batch-size", 7)
    _, errors = process.communicate(timeout=200)
    assert process.returncode == 2, errors
    assert errors.count("mini-batches of 7 cannot be shared by 2 devices") == 2, errors  # each says the same
    assert "starting again" not in errors
    assert not (tmp_path / "odd").exists()


@pytest.mark.slow
def test_a_damaged_checkpoint_is_skipped_by_all_processes(start, command, trained, metrics_of, tmp_path):
    folder = tmp_path / "damaged"
    process = start("launch", "-n", 2, "--", *command(folder))
    process.communicate(timeout=300)
    rows = (folder / "metrics.jsonl").read_text().splitlines(keepends=True)
    (folder / "metrics.jsonl").write_text("".join(rows[:-1]))  # as if it had not been finished
    newest = folder / "checkpoints" / max(checkpoints_of(folder), key=int)
    for path in newest.rglob("*"):
        if path.is_file() and "position" not in str(path.relative_to(newest)):
            path.write_bytes(b"damaged")
    copy = folder / "data-of-processes"
    copy.mkdir()  # as a killed process would leave it
    (copy / "0.array").write_bytes(b"of another attempt")
    process = start("launch", "-n", 2, "--", "resume", folder)
    _, errors = process.communicate(timeout=300)
    assert process.returncode == 0, errors
    assert "is damaged" in errors
    assert not copy.exists()
    for two, one in zip(metrics_of(folder), metrics_of(trained), strict=True):
        assert two == pytest.approx(one, abs=1e-5)


@pytest.mark.slow
def test_the_first_process_reads_the_data_and_each_takes_its_own_rows(tmp_path):
    script = tmp_path / "shares.py"
    script.write_text(
        """
import json, sys
from collections import defaultdict
import numpy as np
from charax.train import LoopConfig, ProcessesConfig, join, train
from charax.train._sharing import CopiedRows
from tests.train.line_task import LineConfig
from tests.train.registration import registered_line

taken, loaded = defaultdict(list), []
read, load = CopiedRows.__getitem__, LineConfig.load_data

def take(rows, index):
    if isinstance(index, np.ndarray):
        taken[rows.path.name].append(index.tolist())
    return read(rows, index)

def count(config):
    loaded.append(1)
    return load(config)

CopiedRows.__getitem__, LineConfig.load_data = take, count
with registered_line(), join(ProcessesConfig(f"127.0.0.1:{sys.argv[2]}", 2, int(sys.argv[1]))):
    train(LineConfig(loop=LoopConfig(epochs=1, batch_size=8)), sys.argv[3])
print(json.dumps([len(loaded), taken["0.array"]]))
"""
    )
    answers = [process.communicate(timeout=200)[0] for process in start_two(script, tmp_path / "run")]
    (loads, mine), (others, theirs) = (json.loads(answer.splitlines()[-1]) for answer in answers)
    assert (loads, others) == (1, 0)
    assert {len(rows) for rows in (*mine, *theirs)} == {4}  # of mini-batches of 8
    of_first, of_second = ({row for rows in each for row in rows} for each in (mine, theirs))
    assert not of_first & of_second
    assert len(of_first) == len(of_second) == 4 * len(mine)


@pytest.mark.slow
def test_a_process_that_comes_later_than_gloo_waits_is_waited_for(tmp_path):
    """The one that compiles longest: half a minute is gloo's patience, and the coordination service has more."""
    script = tmp_path / "late.py"
    script.write_text(
        """
import sys, time
import jax, jax.numpy as jnp, numpy as np
from charax.train import Devices, ProcessesConfig, join
from charax.train._processes import compile_together
number = int(sys.argv[1])
with join(ProcessesConfig(f"127.0.0.1:{sys.argv[2]}", 2, number)):
    devices = Devices()
    batch = devices.take(np.arange(8.0), np.arange(8))
    late = lambda x: (time.sleep(40 * number), x.sum())[1]  # while it is traced
    print(float(compile_together(jax.jit(late))(batch)))
"""
    )
    answers = [process.communicate(timeout=200)[0].strip() for process in start_two(script)]
    assert answers == ["28.0", "28.0"]


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "SCHED_BATCH"), reason="processes cannot be scheduled as batch jobs")
def test_processes_of_one_training_are_batch_jobs_with_the_threads_that_they_start(tmp_path):
    """Otherwise gloo's thread preempts the one that it waits for; `benchmarks.processes scaling` measures it."""
    script = tmp_path / "reduce.py"
    script.write_text(
        """
import os, sys
import jax, numpy as np
from charax.train import Devices, ProcessesConfig, join
from charax.train._processes import compile_together
threads = lambda: {int(name) for name in os.listdir("/proc/self/task")}
before = threads() - {os.getpid()}
with join(ProcessesConfig(f"127.0.0.1:{sys.argv[2]}", 2, int(sys.argv[1]))):
    array = Devices().take(np.ones((2, 7), np.float32), np.arange(2))
    compile_together(jax.jit(lambda array: array.sum(axis=0)))(array).block_until_ready()
    started = threads() - before
    print(len(started) > 1, {os.sched_getscheduler(thread) for thread in started} == {os.SCHED_BATCH})
"""
    )
    assert [process.communicate(timeout=200)[0].splitlines()[-1] for process in start_two(script)] == ["True True"] * 2
