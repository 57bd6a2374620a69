"""Data parallelism."""

import json
import os
import subprocess
import sys
from pathlib import Path

import diffrax as dfx
import pytest

from charax.solve import Solver
from charax.tasks.classification import ClassificationConfig
from charax.tasks.regression import RegressionConfig
from charax.train import Devices, SolverConfig

EXCHANGES = """
import json, sys
import numpy as np
from benchmarks.processes.scaling import reduced_sizes
from charax.tasks.classification import ClassificationConfig
from charax.train import LoopConfig, OptimizerConfig, Silent, SolverConfig
from charax.train._loop import _Training

sizes = {}
for name, solver in {"fixed": SolverConfig(), "adaptive": SolverConfig(rtol=1e-2)}.items():
    loop = LoopConfig(epochs=1, batch_size=16)
    config = ClassificationConfig(preset="dense", method="node", width=4, solver=solver, loop=loop)
    data = config.load_data()
    training = _Training(config.build_task(data.spec), data.splits, loop, OptimizerConfig(), None, Silent())
    training._prepare_epoch(np.zeros((1, 16), int))
    program = training.epoch.lower(training.state, *training.feed.step(0)).compile()
    sizes[name] = [reduced_sizes(program.as_text()), training.state.params.size]
print(json.dumps(sizes))
"""


def test_devices_exchange_the_gradient_of_a_step_once():
    flags = f"{os.environ.get('XLA_FLAGS', '')} --xla_force_host_platform_device_count=2"
    done = subprocess.run(
        [sys.executable, "-c", EXCHANGES],
        env={**os.environ, "XLA_FLAGS": flags},
        cwd=Path(__file__).parents[2],
        check=True,
        capture_output=True,
        text=True,
    )
    found = json.loads(done.stdout)
    (sizes, parameters), (adaptive, _) = found["fixed"], found["adaptive"]
    assert sizes == [parameters + 4]  # with the loss and its metrics: accuracy, failed, nfe
    assert len(adaptive) > 1  # the step size is that of all samples


def test_samples_that_need_each_other_are_not_averaged_by_device():
    spec = ClassificationConfig(preset="dense").load_data().spec
    separable = lambda solver: ClassificationConfig(preset="dense", solver=solver).build_task(spec).is_separable
    assert separable(SolverConfig("euler", steps=2))
    assert not separable(SolverConfig("dopri5", rtol=1e-3))
    for solver, expected in ((SolverConfig("midpoint", steps=2), True), (SolverConfig("dopri5", rtol=1e-3), False)):
        config = RegressionConfig(data="diabetes", solver=solver)
        assert config.build_task(config.load_data().spec).is_separable == expected
    assert [Solver(method, steps=2).couples_samples for method in ("euler", dfx.Kvaerno3())] == [False, True]


def test_two_devices_give_the_result_of_one(start, command, trained, metrics_of, tmp_path):
    process = start(*command(tmp_path / "two"), XLA_FLAGS="--xla_force_host_platform_device_count=2")
    _, errors = process.communicate()
    assert process.returncode == 0, errors
    for two, one in zip(metrics_of(tmp_path / "two"), metrics_of(trained), strict=True):
        assert two == pytest.approx(one, abs=1e-5)


def test_a_batch_that_cannot_be_shared_is_refused():
    devices = Devices()
    devices.count = 3
    devices.check(9)
    with pytest.raises(ValueError, match=r"mini-batches of 8 cannot be shared by 3 devices.*multiple of 3"):
        devices.check(8)
