"""Data parallelism."""

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import diffrax as dfx
import jax
import numpy as np
import pytest

from charax.data import Standardizer
from charax.models import find_design
from charax.solve import Solver
from charax.tasks.classification import ClassificationConfig, ClassificationSpec, ClassificationTask
from charax.tasks.regression import RegressionConfig
from charax.train import AbstractJob, AbstractProgress, Devices, SolverConfig, Sweep
from charax.train._feed import HostFeed, ResidentFeed, make_feed
from charax.train._process import _Cores, share_cores

ROOT = str(Path(__file__).parents[2])

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
    training._start_epoch(0)
    program = training.epoch.lower(training.state, *training.feed.step(0)).compile()
    sizes[name] = [reduced_sizes(program.as_text()), training.state.params.size]
print(json.dumps(sizes))
"""


def test_devices_exchange_the_gradient_of_a_step_once():
    flags = f"{os.environ.get('XLA_FLAGS', '')} --xla_force_host_platform_device_count=2"
    found = json.loads("".join(run(EXCHANGES, XLA_FLAGS=flags)))
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


def run(script: str, **variables: str) -> list[str]:
    """The lines that a script prints in a process of its own, where JAX has not computed yet."""
    environment = {**os.environ, "PYTHONPATH": ROOT, "JAX_PLATFORMS": "cpu", **variables}
    command = [sys.executable, "-c", script]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout.splitlines()


CHOOSE = """
import jax
from charax.train import tune_process
from charax.train._process import give_up_shared_cores, on_one_device, share_cores

tune_process()
if {alone}:
    give_up_shared_cores()
chosen = [share_cores(size, wanted=wanted) for size, wanted in ((128, True), (48, True), (8, True), (128, False))]
with on_one_device():
    chosen.append(share_cores(128, wanted=True))
print(jax.device_count(), *chosen, share_cores(128, wanted=True))
"""


@pytest.mark.parametrize(
    ("variables", "alone", "expected"),
    [
        ({"NPROC": "4"}, False, "4 4 3 1 1 1 4"),  # 16 images for each core, or more
        ({"NPROC": "32"}, False, "8 8 3 1 1 1 8"),
        ({"NPROC": "4"}, True, "1 None None None None None None"),  # the devices are those of all processes
        (
            {"XLA_FLAGS": "--xla_force_host_platform_device_count=2"},
            False,
            "2 None None None None None None",
        ),  # all of them
        ({"JAX_NUM_CPU_DEVICES": "3"}, False, "3 None None None None None None"),
    ],
)
def test_cores_share_images_unless_the_user_has_chosen_the_devices(variables, alone, expected):
    assert run(CHOOSE.format(alone=alone), **{"XLA_FLAGS": "", **variables}) == [expected]


COMPARE = """
import re
import jax
from charax import ClassificationConfig
from charax.train import Devices, tune_process
from charax.train._step import clipped_adamw, initial_state, make_epoch

tune_process()
jax.config.update("jax_enable_x64", True)
config = ClassificationConfig(width=4)
data = config.load_data()
task, optimizer = config.build_task(data.spec), clipped_adamw(1e-3, 0.0, 1.0)
batch = jax.tree.map(lambda leaf: leaf[:32].astype("int" if leaf.dtype.kind == "i" else "float64"), data.splits.train)
states = []
for count in (1, 2):
    devices = Devices(most=count)
    state, unflatten = initial_state(task, batch, optimizer, seed=0, ema=None)
    step = jax.jit(make_epoch(task, unflatten, optimizer, None, devices.average), out_shardings=devices.replicated)
    arguments = devices.replicate(state), devices.assemble(batch), None
    states.append(devices.localize(step(*arguments)[0]))
    print(len(re.findall(r" all-(?:reduce|gather)[-(]", step.lower(*arguments).compile().as_text())))
one, two = states
print(task.spec.augmentation, float(abs(one.params - two.params).max()), float(abs(one.params).max()) > 0)
print(max(abs(float(one.sums[name] - two.sums[name])) for name in one.sums))
"""


def test_cores_exchange_all_gradients_at_once_and_change_nothing_but_rounding():
    none, once, parameters, metrics = run(COMPARE, NPROC="2", XLA_FLAGS="")
    assert (none, once) == ("0", "1")
    augmentation, difference, moved = parameters.split()
    assert augmentation == "affine"  # drawn for the whole mini-batch
    assert moved == "True"
    assert float(difference) < 1e-12
    assert float(metrics) < 1e-12


@dataclass
class DeviceJob(AbstractJob[int | None]):
    """How many cores the run of a sweep would share."""

    place: Path

    def is_finished(self) -> bool:
        return False

    def compute(self, progress: AbstractProgress) -> int | None:
        return share_cores(128, wanted=True)

    def load(self) -> int | None:
        raise NotImplementedError


def test_runs_of_a_sweep_share_no_cores(monkeypatch, tmp_path):
    monkeypatch.setattr(_Cores, "are_devices", True)
    monkeypatch.setattr(jax, "local_device_count", lambda: 4)
    assert share_cores(128, wanted=True) == 4
    assert Sweep().run([DeviceJob(tmp_path / "one")]) == [1]


def test_cores_share_small_images_only():
    shares = lambda data, preset: (
        ClassificationTask(
            find_design(preset, "c-node", data, dataset="mnist").architecture,
            Solver("euler", steps=2),
            ClassificationSpec(data, ("a", "b"), Standardizer((0.0,), (1.0,))),
        ).shares_cores
    )
    assert [shares((28, 28, 1), preset) for preset in ("small", "cpu", "ode", "dense", "paper")] == [True] * 4 + [False]
    assert not shares((4,), "small")


def test_samples_stay_on_the_host_where_cores_share_them(monkeypatch):
    split = {"x": np.zeros((4, 2), np.float32)}
    assert isinstance(make_feed(Devices(), split), ResidentFeed)
    monkeypatch.setattr(Devices, "share_memory", True)
    assert isinstance(make_feed(Devices(), split), HostFeed)
