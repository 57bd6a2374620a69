import pytest

from charax.train import Devices


def test_two_devices_give_the_result_of_one(charax, command, run, metrics_of, tmp_path):
    folder = tmp_path / "shared"
    process = charax(*command(folder), XLA_FLAGS="--xla_force_host_platform_device_count=2")
    _, errors = process.communicate()
    assert process.returncode == 0, errors
    for two, one in zip(metrics_of(folder), metrics_of(run), strict=True):
        assert two == pytest.approx(one, abs=1e-5)


def test_a_batch_that_cannot_be_shared_is_refused():
    devices = Devices()
    devices.number = 3
    with pytest.raises(ValueError, match="multiple of 3"):
        devices.check(8)
