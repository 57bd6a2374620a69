"""Tables, and flows that were trained on them."""

from pathlib import Path

import numpy as np
import pytest

from charax.cli import main

FLAGS = "--width 4 --characteristic-dim 2 --solver euler --steps 4 --epochs 2 --batch-size 16"


@pytest.fixture(scope="session")
def blob(tmp_path_factory) -> Path:
    """A table of two correlated columns and one of classes, which is left out unless classes are asked for."""
    x = np.random.default_rng(0).normal(size=(80, 2)) @ np.array([[3.0, 1.0], [0.0, 0.5]]) + 10
    path = tmp_path_factory.mktemp("data") / "blob.csv"
    rows = [f"{a},{b},{'ab'[i % 2]}" for i, (a, b) in enumerate(x)]
    path.write_text("\n".join(["a,b,target", *rows]) + "\n")
    return path


@pytest.fixture(scope="session")
def flow(blob, tmp_path_factory) -> Path:
    """The folder of a finished run."""
    folder = tmp_path_factory.mktemp("runs")
    place = ["--data", str(blob), "--output", str(folder), "--name", "run"]
    assert main(["train", "density", *place, *FLAGS.split()]) == 0
    return folder / "run"


@pytest.fixture(scope="session")
def pair(tmp_path_factory) -> Path:
    """A table of two classes far from each other: `low` around 0, `high` around 10."""
    generator = np.random.default_rng(0)
    path = tmp_path_factory.mktemp("data") / "pair.csv"
    rows = [f"{10 * (i % 2) + generator.normal()},{generator.normal()},{['low', 'high'][i % 2]}" for i in range(200)]
    path.write_text("\n".join(["a,b,target", *rows]) + "\n")
    return path


@pytest.fixture(scope="session")
def conditional(pair, tmp_path_factory) -> Path:
    """The folder of a finished run with one density per class, and a penalty on the kinetic energy."""
    folder = tmp_path_factory.mktemp("runs")
    flags = "--conditional --method node --width 8 --solver euler --steps 4 --epochs 12 --batch-size 32"
    place = ["--data", str(pair), "--output", str(folder), "--name", "run"]
    weights = ["--learning-rate", "0.05", "--kinetic-penalty", "0.001"]
    assert main(["train", "density", *place, *flags.split(), *weights]) == 0
    return folder / "run"
