"""Real processes, really killed."""

import json
import signal
import time

import pytest


def lines(folder) -> int:
    path = folder / "metrics.jsonl"
    return len(path.read_text().splitlines()) if path.exists() else 0


def wait_until(process, condition, seconds=100):
    end = time.monotonic() + seconds
    while not condition():
        assert process.poll() is None, process.communicate()[1]
        assert time.monotonic() < end
        time.sleep(0.002)


def test_a_run_killed_at_several_points_ends_with_the_same_metrics(charax, command, run, metrics_of, tmp_path):
    folder = tmp_path / "killed"
    points = [
        lambda: (folder / "config.json").exists(),  # before there is any checkpoint
        lambda: lines(folder) >= 1,  # while the first one is written, or soon after
        lambda: lines(folder) >= 3,
    ]
    arguments = command(folder)
    for point in points:
        process = charax(*arguments)
        wait_until(process, point)
        process.send_signal(signal.SIGKILL)
        process.communicate()
        arguments = ["resume", folder, "--json"]
    process = charax(*arguments)
    output, errors = process.communicate()
    assert process.returncode == 0, errors
    assert metrics_of(folder) == metrics_of(run)
    assert (folder / "model.safetensors").read_bytes() == (run / "model.safetensors").read_bytes()
    assert json.loads(output).keys() == {"run", "accuracy", "validation_accuracy", "nfe", "parameters", "seconds"}


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_polite_signal_saves_and_says_how_to_go_on(charax, command, tmp_path, number, status):
    folder = tmp_path / "stopped"
    process = charax(*command(folder), "--epochs", 4000, "--checkpoint-steps", 100_000)
    wait_until(process, lambda: lines(folder) >= 1)
    process.send_signal(number)
    output, errors = process.communicate()
    assert process.returncode == status, errors
    assert output == ""
    assert f"charax resume {folder}" in errors.replace("\n", "")
    assert list((folder / "checkpoints").iterdir())
