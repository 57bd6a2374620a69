"""Learned PDEs that learned hardly anything, and are quick to compile."""

from pathlib import Path

import pytest

from charax.cli import main


@pytest.fixture(scope="session")
def learned(tmp_path_factory) -> Path:
    """The folder of a finished run of a plain model."""
    folder = tmp_path_factory.mktemp("runs")
    flags = "--method node-fair --width 2 --epochs 1 --batch-size 20 --points 30 --name one"
    assert main(["train", "pde", "--output", str(folder), *flags.split(), "--json"]) == 0
    return folder / "one"
