"""Real processes, really killed."""

import json
import signal
import time
from pathlib import Path

import numpy as np
import pytest

from charax.cli import main
from charax.train._checkpoints import cut_lines


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


def test_a_run_whose_data_changed_is_not_gone_on_with(command, tmp_path, capsys):
    folder, data = tmp_path / "changed", tmp_path / "blobs.npz"
    arguments = command(folder)
    data.write_bytes(Path(arguments[arguments.index("--data") + 1]).read_bytes())
    arguments[arguments.index("--data") + 1] = str(data)
    assert main(arguments) == 0
    cut_lines(folder / "metrics.jsonl", 1)  # as if it had been interrupted
    with np.load(data) as arrays:
        np.savez(data, x=arrays["x"] + 1, y=arrays["y"])
    assert main(["resume", str(folder)]) == 2
    assert "changed since the run began" in capsys.readouterr().err
