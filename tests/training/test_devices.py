import json

import pytest

from charax.training import Devices


def test_two_devices_give_the_result_of_one(charax, blobs, tmp_path):
    answers = []
    for number in (1, 2):
        process = charax(
            *("train", "classify", "--data", blobs, "--method", "c-node", "--width", 4, "--solver", "dopri5"),
            *("--rtol", 1e-3, "--epochs", 3, "--batch-size", 8, "--name", f"on-{number}", "--output", tmp_path),
            "--json",
            XLA_FLAGS=f"--xla_force_host_platform_device_count={number}",
        )
        output, errors = process.communicate()
        assert process.returncode == 0, errors
        rows = [json.loads(line) for line in (tmp_path / f"on-{number}" / "metrics.jsonl").read_text().splitlines()]
        answers.append((json.loads(output), rows))
    (first, first_rows), (second, second_rows) = answers
    assert first["nfe"] == second["nfe"]
    for one, two in zip(first_rows, second_rows, strict=True):
        assert {**one, "seconds": 0} == pytest.approx({**two, "seconds": 0}, abs=1e-5)


def test_a_batch_that_cannot_be_shared_is_refused():
    devices = Devices()
    devices.number = 3
    with pytest.raises(ValueError, match="multiple of 3"):
        devices.check(8)
