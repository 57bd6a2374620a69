"""A task small enough to train in a blink, and a real process to kill."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import pytest

from charax.cli import main
from charax.nn import Linear
from charax.solve import Solver
from charax.train import AbstractTask, Problem

ROOT = Path(__file__).parents[2]


class Points(NamedTuple):
    x: np.ndarray
    y: np.ndarray


class LineTask(AbstractTask):
    """Least squares with a linear model: no solve at all, to test the loop alone. Each trace adds to `traces`."""

    solver: Solver = eqx.field(default_factory=Solver)
    traces: list[str] = eqx.field(static=True, default_factory=list)

    @property
    def name(self) -> str:
        return "line"

    @property
    def chosen_by(self) -> str:
        return "loss"

    @property
    def higher_is_better(self) -> bool:
        return False

    def build(self, key):
        return Linear(2, 1, key=key)

    def loss(self, model, batch, key):
        self.traces.append("loss")
        values = self.measure(model, batch)
        return values["loss"].mean(), {"failed": (batch.x > 100).any().astype(float)}

    def measure(self, model: Any, batch):
        self.traces.append("measure")
        return {"loss": jnp.square(model(batch.x)[:, 0] - batch.y)}

    def summarise(self, best, test):
        return {"loss": test["test_loss"]}

    def to_json(self) -> dict[str, Any]:
        return {}

    @classmethod
    def from_json(cls, stored):
        return cls()


def points(n: int, seed: int) -> Points:
    x = np.random.default_rng(seed).normal(size=(n, 2)).astype(np.float32)
    return Points(x, x @ np.array([2.0, -1.0], np.float32) + 0.5)


@pytest.fixture
def line() -> Problem:
    return Problem(LineTask(), points(40, 1), points(13, 2), points(11, 3))


@pytest.fixture(scope="session")
def blobs(tmp_path_factory) -> Path:
    """An .npz with two classes of points in the plane."""
    generator = np.random.default_rng(0)
    y = np.repeat(np.arange(2), 60)
    x = generator.normal(size=(120, 2)) + 2.0 * y[:, None]
    path = tmp_path_factory.mktemp("data") / "blobs.npz"
    np.savez(path, x=x.astype(np.float32), y=y)
    return path


@pytest.fixture
def charax(tmp_path):
    """Start `charax …` in a process of its own; returns it running."""

    def start(*arguments: object, **variables: str) -> subprocess.Popen[str]:
        cache = os.environ.get("JAX_COMPILATION_CACHE_DIR", str(ROOT / ".cache" / "jax"))
        environment = {
            **os.environ,
            "PYTHONPATH": str(ROOT),
            "JAX_COMPILATION_CACHE_DIR": cache,
            "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
            **variables,
        }
        command = [sys.executable, "-m", "charax.cli", *map(str, arguments)]
        return subprocess.Popen(
            command, cwd=tmp_path, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )

    return start


@pytest.fixture
def metrics_of():
    """The metrics of a run's folder, without what the clock says."""

    def read(folder: Path) -> list[dict[str, Any]]:
        rows = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
        return [{name: value for name, value in row.items() if name != "seconds"} for row in rows]

    return read


@pytest.fixture(scope="session")
def command(blobs):
    """The arguments of `charax` that train a tiny classifier in a folder."""
    settings = (
        "--method c-node --width 4 --steps 2 --epochs 4 --batch-size 8 --checkpoint-steps 4 --learning-rate 0.02 --json"
    )

    def arguments(folder: Path) -> list[str]:
        place = ["--data", str(blobs), "--output", str(folder.parent), "--name", folder.name]
        return ["train", "classify", *place, *settings.split()]

    return arguments


@pytest.fixture(scope="session")
def run(command, tmp_path_factory) -> Path:
    """The folder of a finished run that nothing interrupted."""
    folder = tmp_path_factory.mktemp("runs") / "whole"
    assert main(command(folder)) == 0
    return folder
