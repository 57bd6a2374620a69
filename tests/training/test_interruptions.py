"""Real processes, really killed."""

import json
import signal
import time

import pytest

SETTINGS = ["--method", "c-node", "--width", 4, "--epochs", 4, "--batch-size", 8, "--steps", 2, "--checkpoint-steps", 4]


def lines(folder) -> int:
    path = folder / "metrics.jsonl"
    return len(path.read_text().splitlines()) if path.exists() else 0


def train(blobs, folder):
    return ["train", "classify", "--data", blobs, "--output", folder.parent, "--name", folder.name, "--json", *SETTINGS]


def wait_until(process, condition, seconds=60):
    end = time.monotonic() + seconds
    while not condition():
        assert process.poll() is None, process.communicate()[1]
        assert time.monotonic() < end
        time.sleep(0.002)


@pytest.fixture(scope="module")
def uninterrupted(blobs, tmp_path_factory):
    """What the metrics are if nothing happens."""
    from charax.cli import main

    folder = tmp_path_factory.mktemp("runs") / "whole"
    assert main([str(argument) for argument in train(blobs, folder)]) == 0
    return folder


@pytest.mark.parametrize("when", ["before the first epoch", "after the first", "in the third", "at the end"])
def test_a_killed_run_ends_with_the_same_metrics(charax, blobs, uninterrupted, metrics_of, tmp_path, when):
    folder = tmp_path / "killed"
    process = charax(*train(blobs, folder))
    conditions = {
        "before the first epoch": lambda: (folder / "config.json").exists(),
        "after the first": lambda: lines(folder) >= 1,
        "in the third": lambda: lines(folder) >= 2 and len(list((folder / "checkpoints").iterdir())) >= 3,
        "at the end": lambda: lines(folder) >= 4,
    }
    wait_until(process, conditions[when])
    process.send_signal(signal.SIGKILL)
    process.communicate()
    resumed = charax("resume", folder, "--json")
    output, errors = resumed.communicate()
    assert resumed.returncode == 0, errors
    assert metrics_of(folder) == metrics_of(uninterrupted)
    assert json.loads(output).keys() == {"run", "accuracy", "validation_accuracy", "nfe", "parameters", "seconds"}
    assert (folder / "model.safetensors").read_bytes() == (uninterrupted / "model.safetensors").read_bytes()


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_polite_signal_saves_and_says_how_to_go_on(charax, blobs, uninterrupted, metrics_of, tmp_path, number, status):
    folder = tmp_path / "stopped"
    process = charax(*train(blobs, folder), "--epochs", 4000)
    wait_until(process, lambda: lines(folder) >= 1)
    process.send_signal(number)
    output, errors = process.communicate()
    assert process.returncode == status, errors
    assert output == ""
    assert f"charax resume {folder}" in errors.replace("\n", "")
    assert list((folder / "checkpoints").iterdir())
