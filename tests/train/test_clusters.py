"""Sweeps on a cluster: dask's, ray's, and Slurm's by submitit, which has a stand-in that runs on this machine."""

import os

import pytest

from charax.train import Sweep, SweepConfig, SweepError, seed_jobs
from tests.train.line_task import LineConfig
from tests.train.test_sweep import Odd

CONFIG = LineConfig()


@pytest.fixture
def importable(monkeypatch):
    """Processes of a cluster find the tests."""
    root = os.fspath(pytest.importorskip("tests").__path__[0]).rpartition("/")[0]
    monkeypatch.setenv("PYTHONPATH", root)


def sweep_and_compare(config: SweepConfig, folder, metrics_of) -> None:
    """Two runs and one that fails; then the same here, for comparison."""
    jobs = [*seed_jobs(CONFIG, folder / "cluster", range(2)), Odd(folder / "cluster" / "odd.json", "raise")]
    with pytest.raises(SweepError, match="1 of 3 runs failed: odd: no such luck"):
        Sweep(config).run(jobs)
    for job in seed_jobs(CONFIG, folder / "here", range(2)):
        Sweep().run([job])
        assert metrics_of(folder / "cluster" / job.place.name) == metrics_of(job.place)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_a_sweep_on_two_workers_of_dask(tmp_path, line_task, metrics_of, importable):
    distributed = pytest.importorskip("distributed", reason="pip install 'charax[dask]'")
    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None) as cluster:
        sweep_and_compare(SweepConfig(backend="dask", address=cluster.scheduler_address), tmp_path, metrics_of)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_a_sweep_by_submitit(tmp_path, line_task, metrics_of, importable):
    pytest.importorskip("submitit", reason="pip install 'charax[slurm]'")
    sweep_and_compare(SweepConfig(slurm="local", minutes=10), tmp_path, metrics_of)


def test_slurm_is_asked_for_the_partition_the_time_and_the_jobs_at_the_same_time(tmp_path, monkeypatch):
    pytest.importorskip("submitit", reason="pip install 'charax[slurm]'")
    for name in ("srun", "sbatch"):  # which keeps what it is given, and refuses
        (tmp_path / name).write_text(f'#!/bin/sh\ncp "$1" "{tmp_path}/asked"\necho closed today >&2\nexit 1\n')
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    jobs = [Odd(tmp_path / f"{number}.json", "raise") for number in range(4)]
    with pytest.raises(Exception, match="closed today"):
        Sweep(SweepConfig(slurm="gpu", minutes=7, jobs=3)).run(jobs)
    asked = (tmp_path / "asked").read_text().splitlines()
    assert {"#SBATCH --partition=gpu", "#SBATCH --time=7", "#SBATCH --array=0-3%3"} <= set(asked)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_a_sweep_on_ray(tmp_path, line_task, metrics_of, importable, monkeypatch):
    pytest.importorskip("ray", reason="pip install 'charax[ray]'")
    monkeypatch.setenv("RAY_raylet_start_wait_time_s", "300")  # on a machine that does other things, too
    sweep_and_compare(SweepConfig(backend="ray", address="local"), tmp_path, metrics_of)
