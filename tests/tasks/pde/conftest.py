"""Learned PDEs that learned hardly anything, and are quick to compile."""

from pathlib import Path

import numpy as np
import pytest

from charax.cli import main


@pytest.fixture(scope="session")
def learned(tmp_path_factory) -> Path:
    """The folder of a finished run of a plain model."""
    folder = tmp_path_factory.mktemp("runs")
    random = np.random.default_rng(0)
    x, t = random.uniform(1, 2, 60), random.uniform(0, 1, 60)
    np.savez(folder / "samples.npz", x=x, t=t, u=np.sin(x - t))
    flags = "--method node-fair --width 2 --epochs 1 --batch-size 20 --name one"
    place = ["--data", str(folder / "samples.npz"), "--output", str(folder)]
    assert main(["train", "pde", *place, *flags.split(), "--json"]) == 0
    return folder / "one"
