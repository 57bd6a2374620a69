"""A classifier of points in the plane, trained."""

from pathlib import Path

import numpy as np
import pytest

from charax.cli import main

FLAGS = (
    "--members 1 --width 4 --characteristic-dim 2 --solver euler --steps 3 --epochs 3 --batch-size 8 "
    "--learning-rate 0.05"
)


@pytest.fixture(scope="session")
def blobs(tmp_path_factory) -> Path:
    """An .npz with two classes of points in the plane."""
    y = np.repeat(np.arange(2), 60)
    x = np.random.default_rng(0).normal(size=(120, 2)) + 2.0 * y[:, None]
    path = tmp_path_factory.mktemp("data") / "blobs.npz"
    np.savez(path, x=x.astype(np.float32), y=y)
    return path


@pytest.fixture(scope="session")
def classifier(blobs, tmp_path_factory) -> Path:
    """The folder of a finished run."""
    folder = tmp_path_factory.mktemp("runs")
    place = ["--data", str(blobs), "--output", str(folder), "--name", "run"]
    assert main(["train", "classify", *place, *FLAGS.split(), "--json"]) == 0
    return folder / "run"
