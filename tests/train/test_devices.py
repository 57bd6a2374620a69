"""Data parallelism."""

import pytest

from charax.train import Devices


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
